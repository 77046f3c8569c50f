//! `kcm doctor` beside what is really there.

use kcp_provider_runtime::api::manifest::{export, rbac};
use kcp_provider_runtime::cli::connect::ConnectArgs;
use kcp_provider_runtime::cli::doctor::{DoctorArgs, Report, Status};
use kcp_provider_runtime::cli::kcp_admin::Resource;
use kcp_provider_runtime::cli::virtual_workspaces::EndpointArgs;
use serde_json::{Value, json};

use crate::support::platform::{BINDINGS, EXPORTS, Platform, eventually};

const ROLE_BINDINGS: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "clusterrolebindings");

async fn examine(platform: &Platform, provider: Option<&str>) -> Report {
    let connect = ConnectArgs { kubeconfig: Some(platform.folder().join("admin.kubeconfig")), workspace: None };
    DoctorArgs { connect, provider: provider.map(Into::into), ..DoctorArgs::default() }.examine().await.unwrap()
}

fn actions(report: &Report) -> Vec<String> {
    report.checks.iter().filter(|check| check.status == Status::Action).map(ToString::to_string).collect()
}

/// Waits until the only thing that needs action is this.
async fn only(platform: &Platform, words: &str) {
    let mut seen = Vec::new();
    eventually(&format!("only this needs action: {words}"), async || {
        seen = actions(&examine(platform, None).await);
        seen.len() == 1 && seen[0].contains(words)
    })
    .await;
}

#[tokio::test]
async fn a_fresh_platform_is_well_and_what_is_taken_from_it_is_named() {
    let platform = Platform::new().await;
    let empty = examine(&platform, None).await;
    assert!(empty.is_well() && empty.to_string().contains("nobody binds export"), "{empty}");
    let tenant = platform.tenant().await;
    let place = tenant.workspace.logical_cluster.as_str();
    eventually("a bound tenant is well", async || {
        let report = examine(&platform, None).await;
        report.is_well() && report.checks.iter().any(|check| check.workspace.as_deref() == Some(place) && check.status == Status::Ok)
    })
    .await;

    let accepted = tenant.client().get(&BINDINGS, "", export::EXPORT).await.unwrap()["spec"]["permissionClaims"].clone();
    let answer = async |claims: Value| {
        drop(tenant.client().patch(&BINDINGS, "", export::EXPORT, &json!({"spec": {"permissionClaims": claims}})).await.unwrap());
    };
    let without: Vec<Value> = accepted.as_array().unwrap().iter().filter(|claim| claim["resource"] != "events").cloned().collect();
    answer(without.into()).await;
    only(&platform, &format!("workspace {place}: claim events (create, patch) is missing")).await;
    let mut narrow = accepted.clone();
    for claim in narrow.as_array_mut().unwrap().iter_mut().filter(|claim| claim["resource"] == "events") {
        claim["verbs"] = json!(["create"]);
    }
    answer(narrow.clone()).await;
    only(&platform, "claim events (create, patch) is accepted without patch").await;
    for claim in narrow.as_array_mut().unwrap().iter_mut().filter(|claim| claim["resource"] == "events") {
        claim["verbs"] = json!(["create", "patch"]);
        claim["state"] = json!("Rejected");
    }
    answer(narrow).await;
    eventually("a rejected claim is the tenant's choice", async || examine(&platform, None).await.is_well()).await;
    answer(accepted).await;

    platform.client().delete(&ROLE_BINDINGS, "", rbac::MANAGER_ROLE).await.unwrap();
    only(&platform, "may not get apiexportendpointslices.apis.kcp.io").await;
    platform.client().create(&ROLE_BINDINGS, "", &rbac::manager()[1]).await.unwrap();
    eventually("all is well again", async || examine(&platform, None).await.is_well()).await;

    let elsewhere = EndpointArgs { endpoint_override: vec![("https://".into(), "https://127.0.0.1:1/".into())] };
    let connect = ConnectArgs { kubeconfig: Some(platform.folder().join("admin.kubeconfig")), workspace: None };
    let blind = DoctorArgs { connect, endpoints: elsewhere, ..DoctorArgs::default() }.examine().await.unwrap();
    assert!(actions(&blind).len() == 1 && actions(&blind)[0].contains("cannot read the bindings behind https://127.0.0.1:1/"), "{blind}");
}

#[tokio::test]
async fn the_manager_itself_may_ask_and_a_missing_export_is_named() {
    let platform = Platform::new().await;
    let connect = ConnectArgs { kubeconfig: Some(platform.identity().await), workspace: Some(platform.connection.path.clone()) };
    // The identity of `init` may not read the workspace's LogicalCluster, nor the export: what it sees is told, the rest is said to be unseen.
    let own = DoctorArgs { connect, ..DoctorArgs::default() }.examine().await.unwrap();
    assert!(own.checks.iter().any(|check| check.check == "rights" && check.status == Status::Ok), "{own}");
    assert!(examine(&platform, Some("otc")).await.to_string().contains("there is no export otc.provider.kubernetes.edge-connect.eu"));
    platform.door("otc").await;
    eventually("a door is well", async || examine(&platform, Some("otc")).await.is_well()).await;
    platform.client().delete(&EXPORTS, "", export::EXPORT).await.unwrap();
    let gone = examine(&platform, None).await;
    assert!(actions(&gone)[0].contains("there is no export kubernetes.edge-connect.eu: kcm init makes it"), "{gone}");
}
