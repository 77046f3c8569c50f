//! The main job: a tenant orders a cluster in its workspace and sees it scheduled.

use serde_json::json;

use crate::support::platform::served;

#[tokio::test]
async fn a_tenants_cluster_is_scheduled_and_projected() {
    let (_platform, manager, tenant) = served().await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;

    let cluster = tenant.scheduled("demo").await;

    assert_eq!(cluster["spec"]["providerRef"]["name"], "otc");
    let projection = tenant.projection("demo").await.unwrap();
    assert_eq!(projection["spec"]["nodePools"], json!([{"name": "workers", "replicas": 3, "type": "m-4-16"}]));
    assert_eq!(projection["metadata"]["ownerReferences"][0]["uid"], cluster["metadata"]["uid"]);
    manager.stop().await;
}
