//! The disconnect guard: what the real server enforces of it.

use kcp_provider_runtime::api::manifest::export;
use kcp_provider_runtime::cli::connect::ConnectArgs;
use kcp_provider_runtime::cli::init::{self, Extras, Options};
use kcp_provider_runtime::cli::kcp_admin::{AdminError, Resource, WORKSPACES};
use kcp_provider_runtime::cli::uninstall::{Outcome, UninstallArgs};
use kcp_provider_runtime::cli::virtual_workspaces::EndpointArgs;
use serde_json::{Value, json};

use crate::support::kcp;
use crate::support::platform::{BINDINGS, CLUSTERS, Platform, SOON, eventually};

const POLICIES: Resource = Resource::new("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies");
const POLICY_BINDINGS: Resource = Resource::new("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings");
const GUARD: &str = "disconnect-guard.kubernetes.edge-connect.eu";

async fn guarded_platform() -> Platform {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let options = Options { connection: platform.connection.clone(), provider: None, manage_exports: false, dry_run: false };
    let extras = Extras { disconnect_guard: true, ..Extras::default() };
    assert_eq!(init::init_with(&options, &extras, &EndpointArgs::default()).await.unwrap().changes(), 1);
    platform
}

fn refused(result: &Result<(), AdminError>) -> bool {
    result.as_ref().is_err_and(|error| error.code() == Some(403) && error.to_string().contains("delete them and wait until they are gone"))
}

#[tokio::test]
async fn a_tenant_cannot_unbind_while_its_clusters_live_and_can_once_they_are_gone() {
    let platform = guarded_platform().await;
    let manager = platform.manager().await;
    let tenant = platform.tenant().await;
    tenant.provider("otc").await;
    let client = tenant.client();
    assert!(client.find(&POLICIES, "", GUARD).await.unwrap().is_none(), "nobody lives there yet");
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("demo").await;
    client.wait_for(&POLICY_BINDINGS, "", GUARD, "to be there", SOON, |_| true).await.unwrap();

    // A policy is in force a moment after it was written. A dry run asks the same admission and deletes nothing where it is not yet.
    let unbind = Resource { plural: format!("{}/{}?dryRun=All", BINDINGS.plural, export::EXPORT).into(), ..BINDINGS };
    eventually("unbinding is refused", async || refused(&client.delete_collection(&unbind).await)).await;
    assert!(refused(&client.delete(&BINDINGS, "", export::EXPORT).await));
    assert!(refused(&client.delete_collection(&BINDINGS).await), "nor with all bindings at once");
    let binding = client.get(&BINDINGS, "", export::EXPORT).await.unwrap();
    assert!(binding["metadata"]["deletionTimestamp"].is_null(), "{binding}");
    client.patch(&BINDINGS, "", export::EXPORT, &json!({"metadata": {"labels": {"a": "b"}}})).await.expect("all else is the tenant's");

    client.delete(&CLUSTERS, "default", "demo").await.unwrap();
    client.wait_gone(&POLICIES, "", GUARD, SOON).await.unwrap();
    client.wait_gone(&POLICY_BINDINGS, "", GUARD, SOON).await.unwrap();
    eventually("unbinding goes through", async || client.delete(&BINDINGS, "", export::EXPORT).await.is_ok()).await;
    client.wait_gone(&BINDINGS, "", export::EXPORT, SOON).await.unwrap();
    manager.stop().await;
}

#[tokio::test]
async fn a_whole_workspace_is_deleted_past_its_guard() {
    let platform = guarded_platform().await;
    let manager = platform.manager().await;
    let parent = kcp().await.workspace("parent").await;
    let workspace = kcp().await.workspace_below(&parent, "tenant").await;
    platform.bind(&workspace).await;
    let client = workspace.client();
    eventually("the kind is served", async || client.list(&CLUSTERS, "").await.is_ok()).await;
    let order = kcp_provider_runtime::api::manifest::samples::tenant()[1].clone();
    eventually("a cluster is ordered", async || client.create(&CLUSTERS, "default", &order).await.is_ok()).await;
    client.wait_for(&POLICY_BINDINGS, "", GUARD, "to be there", SOON, |_| true).await.unwrap();
    eventually("unbinding is refused", async || {
        let unbind = Resource { plural: format!("{}/{}?dryRun=All", BINDINGS.plural, export::EXPORT).into(), ..BINDINGS };
        refused(&client.delete_collection(&unbind).await)
    })
    .await;

    let names: Vec<Value> = parent.client().list(&WORKSPACES, "").await.unwrap();
    let name = names[0]["metadata"]["name"].as_str().unwrap();
    parent.client().delete(&WORKSPACES, "", name).await.unwrap();
    parent.client().wait_gone(&WORKSPACES, "", name, SOON).await.unwrap();
    manager.stop().await;
}

#[tokio::test]
async fn a_forced_uninstall_takes_the_guards_out_of_the_tenants_workspaces() {
    let platform = guarded_platform().await;
    let manager = platform.manager().await;
    let tenant = platform.tenant().await;
    tenant.provider("otc").await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    let client = tenant.client();
    client.wait_for(&POLICY_BINDINGS, "", GUARD, "to be there", SOON, |_| true).await.unwrap();
    manager.stop().await;
    let connect = ConnectArgs { kubeconfig: Some(platform.folder().join("admin.kubeconfig")), workspace: None };
    let uninstall = UninstallArgs { connect, force: true, ..UninstallArgs::default() };
    let done = uninstall.uninstall().await.unwrap();
    let taken = done.steps.iter().filter(|step| step.object.contains(GUARD) && step.outcome == Outcome::Removed).count();
    assert_eq!(taken, 2, "{done}");
    for kind in [&POLICIES, &POLICY_BINDINGS] {
        assert!(client.find(kind, "", GUARD).await.unwrap().is_none());
    }
    eventually("nothing refuses to unbind", async || client.delete(&BINDINGS, "", export::EXPORT).await.is_ok()).await;
}

#[tokio::test]
async fn a_tenant_that_does_not_accept_the_guard_has_none_and_its_binding_waits_for_the_finalizers() {
    let platform = guarded_platform().await;
    let manager = platform.manager().await;
    let tenant = platform.tenant().await;
    let client = tenant.client();
    let mut claims = client.get(&BINDINGS, "", export::EXPORT).await.unwrap()["spec"]["permissionClaims"].clone();
    for claim in claims.as_array_mut().unwrap().iter_mut().filter(|claim| claim["group"] == "admissionregistration.k8s.io") {
        claim["state"] = json!("Rejected");
    }
    client.patch(&BINDINGS, "", export::EXPORT, &json!({"spec": {"permissionClaims": claims}})).await.unwrap();
    eventually("the claims are in force no more", async || {
        let applied = client.get(&BINDINGS, "", export::EXPORT).await.unwrap()["status"]["appliedPermissionClaims"].to_string();
        !applied.contains("admissionregistration")
    })
    .await;
    tenant.provider("otc").await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("demo").await;
    assert!(client.find(&POLICY_BINDINGS, "", GUARD).await.unwrap().is_none());
    client.delete(&BINDINGS, "", export::EXPORT).await.expect("nothing refuses it");
    client.wait_gone(&BINDINGS, "", export::EXPORT, SOON).await.unwrap();
    manager.stop().await;
}
