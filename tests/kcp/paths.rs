//! Who is served, by path: resolved through the parents' workspaces with the platform's identity.

use kcp_provider_runtime::cli::kcp_admin::Resource;
use kcp_provider_runtime::runtime::{Credentials, Options};
use serde_json::json;

use crate::support::platform::{CONFIGS, Manager, Platform, Tenant, condition};
use crate::support::{Workspace, kcp};

const LOGICAL_CLUSTERS: Resource = Resource::new("core.kcp.io", "v1alpha1", "logicalclusters");

/// A manager that may read the parents, as a platform's identity that an administrator has granted it may.
async fn manager(platform: &Platform) -> Manager {
    let options = platform.options().await;
    let admin = platform.folder().join("admin.kubeconfig");
    Manager::start(Options { credentials: Credentials::File(admin), ..options }, None).await
}

#[tokio::test]
async fn a_path_rule_admits_who_is_below_it_and_a_forged_path_does_not_help() {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let orgs: Workspace = kcp().await.workspace("orgs").await;
    let orgs_path = platform.path_of(&orgs).await;
    let inside = Tenant { workspace: kcp().await.workspace_below(&orgs, "acme").await };
    platform.bind(&inside.workspace).await;
    inside.served().await;
    let outside = platform.tenant().await;
    let rules = json!({"spec": {"kcp": {"allowedWorkspaces": [format!("{orgs_path}:*")]}}});
    platform.client().patch(&CONFIGS, "", "kcm", &rules).await.unwrap();
    let manager = manager(&platform).await;
    for tenant in [&inside, &outside] {
        tenant.provider("otc").await;
    }
    // A workspace's administrator can write this annotation; it must not count.
    let forged = json!({"metadata": {"annotations": {"kcp.io/path": format!("{orgs_path}:forged")}}});
    let _ = outside.client().patch(&LOGICAL_CLUSTERS, "", "cluster", &forged).await;

    inside.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    outside.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;

    inside.scheduled("demo").await;
    let refused = outside.wait("demo", "Scheduled", "False", "NotEntitled").await;
    let message = condition(&refused, "Scheduled").unwrap()["message"].as_str().unwrap().to_owned();
    assert!(message.contains(&format!("{orgs_path}:*")), "{message}");

    // The rule goes, and with it the refusal.
    platform.client().patch(&CONFIGS, "", "kcm", &json!({"spec": {"kcp": {"allowedWorkspaces": null}}})).await.unwrap();
    outside.scheduled("demo").await;
    manager.stop().await;
}
