//! Every reason of `Scheduled=False` with its message, and the event that clears it.

use futures::future::join_all;
use kcp_provider_runtime::cli::init::{self, Options};
use kcp_provider_runtime::cli::kcp_admin::Resource;
use serde_json::json;

use crate::support::expect::{AT_ONCE, all, at_rest, cleared, configure, configured, projected_as, refused, take_rules, within};
use crate::support::platform::{CLUSTERS, MACHINE_TYPES, Manager, OFFERINGS, Platform, SOON, eventually};
use crate::support::proxy::{Proxy, Verb};

const TYPES: &str = "virtualmachinetypes.provider.edge-connect.eu";
const DEFINITIONS: Resource = Resource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");

#[tokio::test]
async fn each_reason_of_the_catalog_says_what_is_missing_and_clears_with_the_write_that_fixes_it() {
    let platform = Platform::new().await;
    let manager = platform.manager().await;
    let tenant = platform.tenant().await;

    tenant.provider("otc").await;
    tenant.order("early", "eu-de", "1.34.2", "4", "16Gi").await;
    let empty = refused(&tenant, "early", "OfferingNotFound").await;
    assert_eq!(empty, "no offering serves region eu-de and version 1.34.2: the catalog holds none");
    platform.small_catalog().await;
    cleared(&tenant, "early", "the first offering").await;

    tenant.order("versioned", "eu-de", "1.99.0", "4", "16Gi").await;
    let nearest = refused(&tenant, "versioned", "OfferingNotFound").await;
    assert_eq!(nearest, "no offering serves region eu-de and version 1.99.0; versions in that region, nearest first: 1.34.2");
    platform.offering("otc-standard", "otc", &["eu-de"], &["1.34.2", "1.99.0"], &["m-4-16", "m-8-32"]).await;
    cleared(&tenant, "versioned", "the version is offered").await;

    tenant.order("large", "eu-de", "1.34.2", "16", "16Gi").await;
    let mismatch = refused(&tenant, "large", "CapabilityMismatch").await;
    let expected = "no machine type on offer in region eu-de fits pool workers, which needs 16 cpu and 16Gi memory; \
        the largest machine type on offer is m-8-32 (8 cpu, 32Gi memory)";
    assert_eq!(mismatch, expected);
    platform.machine_type("m-16-64", "16", "64Gi", &["eu-de"]).await;
    platform.offering("otc-standard", "otc", &["eu-de"], &["1.34.2", "1.99.0"], &["m-4-16", "m-8-32", "m-16-64"]).await;
    cleared(&tenant, "large", "a larger type is offered").await;

    platform.machine_type("t-2-8", "2", "8Gi", &["us-1"]).await;
    platform.offering("aws-small", "aws", &["us-1"], &["1.34.2"], &["t-2-8"]).await;
    platform.machine_type("x-1-1", "1", "1Gi", &["us-1"]).await;
    platform.offering("zzz-tiny", "zzz", &["us-1"], &["1.34.2"], &["x-1-1"]).await;
    tenant.order("unpaid", "us-1", "1.34.2", "2", "8Gi").await;
    let unpaid = "region us-1 and version 1.34.2 are served by: aws, zzz (no fitting machine type); \
        this workspace holds a Provider for none of them";
    eventually("both providers are named", async || refused(&tenant, "unpaid", "ProviderNotConfigured").await == unpaid).await;
    tenant.provider("aws").await;
    cleared(&tenant, "unpaid", "the Provider is there").await;
    manager.stop().await;
}

#[tokio::test]
async fn a_workspace_outside_the_allowed_ones_is_told_the_rule_and_served_once_it_is_allowed() {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let rule = |names: &[&str]| json!({"kcp": {"allowedWorkspaces": names}});
    configure(&platform, rule(&["1somebodyelse"])).await;
    let manager = platform.manager().await;
    let tenant = platform.tenant().await;
    tenant.provider("otc").await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    let by_name = refused(&tenant, "demo", "NotEntitled").await;
    assert_eq!(by_name, "this workspace is under none of the platform's allowedWorkspaces (1somebodyelse)");
    assert_eq!(tenant.projection("demo").await, None);

    let ours = tenant.workspace.logical_cluster.as_str();
    configure(&platform, rule(&["1somebodyelse", ours])).await;
    cleared(&tenant, "demo", "the workspace is allowed").await;
    at_rest(&tenant, "demo").await;

    // Who is served already stays so, also when it is looked at again; what is new is refused.
    configured(&platform, rule(&["1somebodyelse"])).await;
    let changed = json!({"metadata": {"labels": {"looked-at": "again"}}});
    let served = tenant.client().patch(&CLUSTERS, "default", "demo", &changed).await.unwrap();
    tenant.order("late", "eu-de", "1.34.2", "4", "16Gi").await;
    assert_eq!(refused(&tenant, "late", "NotEntitled").await, by_name);
    assert_eq!(tenant.cluster("demo").await["metadata"]["resourceVersion"], served["metadata"]["resourceVersion"]);
    manager.stop().await;
}

/// The message's statement without the moment since when it holds.
fn without_moment(message: &str) -> &str {
    let (statement, since) = message.rsplit_once(" (since ").expect("it says since when");
    assert!(since.starts_with("20") && since.ends_with("Z)"), "{message}");
    statement
}

#[tokio::test]
async fn a_forbidden_catalog_is_named_with_its_rule_and_clears_with_the_rule() {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let proxy = Proxy::start(platform.identity().await).await;
    let manager = Manager::start(proxy.options(&platform), None).await;
    let tenant = platform.tenant().await;
    tenant.provider("otc").await;
    tenant.order("before", "eu-de", "1.34.2", "4", "16Gi").await;
    let before = at_rest(&tenant, "before").await;

    // A server asks for the rule when a watch begins, so that a rule is missed when the watch ends.
    let rules = take_rules(&platform, &[MACHINE_TYPES]).await;
    proxy.end_watches();
    eventually("the manager was refused", async || proxy.count(Verb::Watch, TYPES) > 2).await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    let message = refused(&tenant, "demo", "CatalogUnavailable").await;
    let statement = without_moment(&message);
    assert!(
        statement.starts_with("the catalog cannot be read: virtualmachinetypes.provider.edge-connect.eu may not be read: "),
        "{message}"
    );
    assert!(statement.contains("virtualmachinetypes.provider.edge-connect.eu is forbidden"), "{message}");
    assert_eq!(tenant.cluster("before").await["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);

    rules.give_back().await;
    cleared(&tenant, "demo", "the rule is back").await;
    manager.stop().await;
}

#[tokio::test]
async fn a_catalog_that_broke_counts_as_long_as_it_may_and_then_no_longer() {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let proxy = Proxy::start(platform.identity().await).await;
    let manager = Manager::start(proxy.options(&platform), None).await;
    let tenant = platform.tenant().await;
    tenant.provider("otc").await;
    proxy.fail([TYPES]);
    eventually("the watch was tried again in vain", async || proxy.count(Verb::Watch, TYPES) > 2).await;
    tenant.order("soon", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("soon").await;

    configured(&platform, json!({"scheduling": {"catalogMaxStaleness": "10ms"}})).await;
    tenant.order("late", "eu-de", "1.34.2", "4", "16Gi").await;
    let message = refused(&tenant, "late", "CatalogUnavailable").await;
    let statement = without_moment(&message);
    assert!(
        statement.starts_with("the catalog cannot be read: virtualmachinetypes.provider.edge-connect.eu cannot be read: "),
        "{message}"
    );
    assert!(statement.ends_with("answered 503: out of order"), "{message}");

    proxy.mend();
    cleared(&tenant, "late", "the catalog is served again").await;
    manager.stop().await;
}

#[tokio::test]
async fn a_catalog_that_is_not_served_is_named_and_read_as_soon_as_it_is() {
    let platform = Platform::new().await;
    for kind in [&OFFERINGS, &MACHINE_TYPES] {
        let name = format!("{}.{}", kind.plural, kind.group);
        platform.client().delete(&DEFINITIONS, "", &name).await.unwrap();
        platform.client().wait_gone(&DEFINITIONS, "", &name, SOON).await.unwrap();
    }
    eventually("the kinds are not served any more", async || platform.client().list(&OFFERINGS, "").await.is_err()).await;
    let manager = Manager::start_unready(platform.options().await, None);
    let tenant = platform.tenant().await;
    tenant.provider("otc").await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    let message = refused(&tenant, "demo", "CatalogUnavailable").await;
    let statement = without_moment(&message);
    assert!(statement.starts_with("the catalog cannot be read: ") && statement.ends_with(" is not served"), "{message}");

    let options = Options { connection: platform.connection.clone(), provider: None, manage_exports: false, dry_run: false };
    init::init(&options).await.unwrap();
    eventually("the kinds are served", async || platform.client().list(&MACHINE_TYPES, "").await.is_ok()).await;
    let empty = within(AT_ONCE, &tenant, "the catalog is read once it is served", refused(&tenant, "demo", "OfferingNotFound")).await;
    assert_eq!(empty, "no offering serves region eu-de and version 1.34.2: the catalog holds none");
    platform.small_catalog().await;
    cleared(&tenant, "demo", "the catalog is filled").await;
    manager.stop().await;
}

#[tokio::test]
async fn one_event_clears_every_cluster_that_waited_for_it() {
    const MANY: usize = 20;
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let manager = platform.manager().await;
    let tenant = platform.tenant().await;
    let names: Vec<String> = (0..MANY).map(|at| format!("demo-{at}")).collect();
    join_all(names.iter().map(|name| tenant.order(name, "eu-de", "1.34.2", "4", "16Gi"))).await;
    all(&tenant, "Scheduled", "False", "ProviderNotConfigured").await;

    tenant.provider("otc").await;
    let [first, last] = all(&tenant, "Projected", "True", "InSync").await;
    eprintln!("of {MANY} clusters the first is scheduled and projected after {first:?}, the last after {last:?}");
    for name in &names {
        projected_as(&tenant, name, &json!([{"name": "workers", "replicas": 3, "type": "m-4-16"}])).await;
    }
    manager.stop().await;
}
