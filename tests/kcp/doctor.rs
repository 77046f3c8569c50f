//! `kcm doctor` beside what is really there.

use kcp_provider_runtime::api::manifest::export::{Claim, access_claims};
use kcp_provider_runtime::api::manifest::{export, rbac};
use kcp_provider_runtime::cli::connect::ConnectArgs;
use kcp_provider_runtime::cli::doctor::{DoctorArgs, Report, Status};
use kcp_provider_runtime::cli::kcp_admin::Resource;
use kcp_provider_runtime::cli::virtual_workspaces::EndpointArgs;
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::backend::COURIER;
use crate::support::Workspace;
use crate::support::platform::{BINDINGS, EXPORTS, Platform, eventually};
use crate::workload::{ROLE_BINDINGS as BINDINGS_OF_ROLES, ROLES};

const CLUSTER_ROLES: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "clusterroles");
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
    // One of an earlier version, which claimed no events.
    let door = Platform::door_export("otc");
    let mut claims = platform.client().get(&EXPORTS, "", &door).await.unwrap()["spec"]["permissionClaims"].clone();
    claims.as_array_mut().unwrap().retain(|claim| claim["resource"] != "events");
    platform.client().patch(&EXPORTS, "", &door, &json!({"spec": {"permissionClaims": claims}})).await.unwrap();
    let earlier = actions(&examine(&platform, Some("otc")).await);
    assert!(
        earlier.len() == 1 && earlier[0].contains("claim events (create, patch) is not in the export: kcm init adds it"),
        "{earlier:?}"
    );
    platform.door("otc").await;
    assert!(examine(&platform, Some("otc")).await.is_well());
    platform.client().delete(&EXPORTS, "", export::EXPORT).await.unwrap();
    let gone = examine(&platform, None).await;
    assert!(actions(&gone)[0].contains("there is no export kubernetes.edge-connect.eu: kcm init makes it"), "{gone}");
}

/// What is said of access: of the export, or of this workspace.
fn access(report: &Report, workspace: Option<&Workspace>) -> Vec<(Status, String)> {
    let place = workspace.map(|workspace| workspace.logical_cluster.as_str());
    let of = report.checks.iter().filter(|check| check.check == "access" && check.workspace.as_deref() == place);
    of.map(|check| (check.status, check.message.clone())).collect()
}

/// Grants a user this in a workspace, beside being let in.
async fn grant(workspace: &Workspace, user: &str, rules: &[Value]) {
    let rules = [rules, &[json!({"nonResourceURLs": ["/"], "verbs": ["access"]})]].concat();
    let named = |kind: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "courier"}});
    let (mut role, mut binding) = (named("ClusterRole"), named("ClusterRoleBinding"));
    role["rules"] = rules.into();
    binding["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "courier"});
    binding["subjects"] = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]);
    workspace.client().create(&CLUSTER_ROLES, "", &role).await.unwrap();
    workspace.client().create(&ROLE_BINDINGS, "", &binding).await.unwrap();
}

#[tokio::test]
async fn which_way_tokens_come_is_said_of_the_export_and_of_each_workspace_that_accepts_access() {
    let platform = Platform::new().await;
    let plain = examine(&platform, None).await;
    let [(status, message)] = <[_; 1]>::try_from(access(&plain, None)).unwrap();
    assert!(status == Status::Ok && message.starts_with("way 1: ") && message.contains("offers no claims for access"), "{plain}");

    // The operator of a platform whose provider hands out kubeconfigs.
    let more = access_claims();
    let offered: Vec<Value> = export::claims().iter().chain(&more).map(Claim::to_value).collect();
    platform.client().patch(&EXPORTS, "", export::EXPORT, &json!({"spec": {"permissionClaims": offered}})).await.unwrap();
    let (tenant, open) = (platform.tenant().await, platform.tenant().await);
    let (tenant, open) = (&tenant.workspace, &open.workspace);
    // A tenant's own account of the manager's name is somebody else.
    let tokens = json!({"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]});
    grant(tenant, &format!("system:serviceaccount:{}:{}", rbac::MANAGER_NAMESPACE, rbac::MANAGER), std::slice::from_ref(&tokens)).await;
    eventually("the identity of init has the chain alone", async || {
        let report = examine(&platform, None).await;
        let both = [tenant, open].iter().all(|workspace| {
            let [(Status::Ok, message)] = &access(&report, Some(workspace))[..] else { return false };
            message.starts_with("way 2: system:serviceaccount:kcm-system:kcm may not create serviceaccounts/token there")
        });
        both && report.is_well()
    })
    .await;

    // A manager who is another user than the account of init, and is let into one of the two workspaces by itself.
    let content = json!({"apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "verbs": ["get", "list", "watch"]});
    let slices = json!({"apiGroups": ["apis.kcp.io"], "resources": ["apiexportendpointslices"], "verbs": ["get", "list", "watch"]});
    grant(&platform.workspace, COURIER, &[content, slices]).await;
    grant(open, COURIER, &[tokens]).await;
    let kubeconfig = platform.folder().join("courier.kubeconfig");
    platform.client().as_bearer(SecretString::from(COURIER)).unwrap().write_kubeconfig(&kubeconfig).unwrap();
    let connect = ConnectArgs { kubeconfig: Some(kubeconfig), workspace: None };
    eventually("each workspace has its way, by the claims that bindings show", async || {
        let report = DoctorArgs { connect: connect.clone(), ..DoctorArgs::default() }.examine().await.unwrap();
        let way = |workspace, words: &str| access(&report, Some(workspace)).iter().any(|(_, message)| message.starts_with(words));
        let offers = access(&report, None).iter().any(|(status, message)| *status == Status::Ok && message.contains("offers the claims"));
        offers && way(open, "way 3: this user may create serviceaccounts/token there") && way(tenant, "way 2: this user may not")
    })
    .await;
    let stranger = platform.client().as_bearer(SecretString::from(COURIER)).unwrap();
    let mint = Resource::new("", "v1", "serviceaccounts").subresource("token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}});
    let ask = async |workspace: &Workspace| {
        let client = stranger.in_workspace(workspace.logical_cluster.as_str()).unwrap();
        client.create_in(&mint, "default", "default", &request).await
    };
    assert!(ask(open).await.is_ok() && ask(tenant).await.unwrap_err().is_forbidden(), "what was said is so");
}

#[tokio::test]
async fn who_was_given_an_opt_in_role_is_asked_for_all_of_it_and_nobody_else_is() {
    let platform = Platform::new().await;
    let right = |report: &Report| report.checks.iter().find(|check| check.check == "rights").unwrap().to_string();
    let before = right(&examine(&platform, None).await);
    let [mut role, binding] = rbac::secured(rbac::MANAGER_NAMESPACE, (rbac::MANAGER_NAMESPACE, rbac::MANAGER));
    // As a role that was made for an earlier version would be.
    role["rules"][0]["verbs"] = json!(["get", "list", "watch"]);
    for (resource, object) in [(&ROLES, &role), (&BINDINGS_OF_ROLES, &binding)] {
        platform.client().create(resource, rbac::MANAGER_NAMESPACE, object).await.unwrap();
    }
    only(&platform, "may not create secrets in kcm-system; update secrets in kcm-system").await;
    only(&platform, "config/rbac/secured-work.yaml has the role").await;
    let [role, _] = rbac::secured(rbac::MANAGER_NAMESPACE, (rbac::MANAGER_NAMESPACE, rbac::MANAGER));
    platform.client().patch(&ROLES, rbac::MANAGER_NAMESPACE, rbac::SECURED_ROLE, &role).await.unwrap();
    eventually("all is well, and more was asked", async || {
        let report = examine(&platform, None).await;
        report.is_well() && right(&report) != before
    })
    .await;
}
