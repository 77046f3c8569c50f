//! Two workspaces may use the same names: what happens in one is nothing to the other.

use crate::support::platform::{CLUSTERS, PROJECTIONS, Platform, SOON};

#[tokio::test]
async fn equal_names_in_two_workspaces_have_independent_histories() {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    platform.offering("aws-standard", "aws", &["eu-de"], &["1.34.2"], &["m-8-32"]).await;
    let manager = platform.manager().await;
    let (one, other) = tokio::join!(platform.tenant(), platform.tenant());
    one.provider("otc").await;
    other.provider("aws").await;
    for tenant in [&one, &other] {
        tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    }

    let (first, second) = (one.scheduled("demo").await, other.scheduled("demo").await);

    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    for (tenant, cluster, provider, type_) in [(&one, &first, "otc", "m-4-16"), (&other, &second, "aws", "m-8-32")] {
        let projection = tenant.projection("demo").await.unwrap();
        assert_eq!(cluster["spec"]["providerRef"]["name"], provider, "each workspace has its own Provider");
        assert_eq!(projection["spec"]["providerRef"]["name"], provider);
        assert_eq!(projection["spec"]["nodePools"][0]["type"], type_);
        assert_eq!(projection["metadata"]["ownerReferences"][0]["uid"], cluster["metadata"]["uid"]);
    }
    let before = other.projection("demo").await.unwrap();

    one.client().delete(&CLUSTERS, "default", "demo").await.unwrap();
    one.client().wait_gone(&CLUSTERS, "default", "demo", SOON).await.unwrap();

    assert!(one.projection("demo").await.is_none());
    assert_eq!(other.projection("demo").await.unwrap(), before, "down to the resourceVersion");
    assert_eq!(other.cluster("demo").await["metadata"]["resourceVersion"], other.scheduled("demo").await["metadata"]["resourceVersion"]);

    // A cluster that takes the place of the deleted one is new in every respect.
    one.order("demo", "eu-de", "1.34.2", "8", "32Gi").await;
    let third = one.scheduled("demo").await;
    assert_ne!(third["metadata"]["uid"], first["metadata"]["uid"]);
    assert_eq!(one.projection("demo").await.unwrap()["spec"]["nodePools"][0]["type"], "m-8-32");
    assert_eq!(one.client().list(&PROJECTIONS, "").await.unwrap().len(), 1);
    assert_eq!(other.projection("demo").await.unwrap(), before);
    manager.stop().await;
}
