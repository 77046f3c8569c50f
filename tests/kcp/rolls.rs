//! New schemas of an export that is in use.

use std::time::Duration;

use kcp_provider_runtime::api::manifest::export;
use kcp_provider_runtime::cli::init::{self, Options};
use kcp_provider_runtime::cli::kcp_admin::Resource;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::platform::{CLUSTERS, EXPORTS, Platform, Tenant, eventually, served};

const SCHEMAS: Resource = Resource::new("apis.kcp.io", "v1alpha1", "apiresourceschemas");

/// The export's schema of tenants' clusters.
async fn in_force(platform: &Platform) -> Value {
    let export = platform.client().get(&EXPORTS, "", export::EXPORT).await.unwrap();
    let resources = export["spec"]["resources"].as_array().unwrap();
    let name = resources.iter().find(|resource| resource["group"] == CLUSTERS.group.as_ref()).unwrap()["schema"].as_str().unwrap();
    platform.client().get(&SCHEMAS, "", name).await.unwrap()
}

/// Puts another schema of tenants' clusters in force, as another version of the product would: the same with a difference.
pub(crate) async fn another_schema(platform: &Platform, version: &str, change: impl FnOnce(&mut Value)) {
    let mut schema = in_force(platform).await;
    let name = format!("{version}.kubernetesclusters.kubernetes.edge-connect.eu");
    schema["metadata"] = json!({"name": name});
    change(&mut schema["spec"]["versions"][0]["schema"]["properties"]["spec"]);
    platform.client().create(&SCHEMAS, "", &schema).await.unwrap();
    let mut export = platform.client().get(&EXPORTS, "", export::EXPORT).await.unwrap();
    let resources = export["spec"]["resources"].as_array_mut().unwrap();
    resources.iter_mut().find(|resource| resource["group"] == CLUSTERS.group.as_ref()).unwrap()["schema"] = name.into();
    platform.client().replace(&EXPORTS, "", export::EXPORT, &export).await.unwrap();
}

fn options(platform: &Platform) -> Options {
    Options { connection: platform.connection.clone(), provider: None, manage_exports: false, dry_run: false }
}

#[tokio::test]
async fn a_schema_that_takes_something_away_is_refused_before_anything_is_written() {
    let platform = Platform::new().await;
    another_schema(&platform, "v0", |spec| {
        spec["properties"]["flavour"] = json!({"type": "string"});
        spec["properties"]["nodePools"]["maxItems"] = 1000.into();
    })
    .await;
    platform.client().patch(&EXPORTS, "", export::EXPORT, &json!({"spec": {"permissionClaims": []}})).await.unwrap();

    for dry_run in [true, false] {
        let refused = format!("{:#}", init::init(&Options { dry_run, ..options(&platform) }).await.unwrap_err());
        for words in [
            "kubernetesclusters.kubernetes.edge-connect.eu spec.flavour: it would be dropped from every object",
            "kubernetesclusters.kubernetes.edge-connect.eu spec.nodePools: maxItems was 1000 and would be",
            "nothing was written",
        ] {
            assert!(refused.contains(words), "{words}: {refused}");
        }
    }

    let kept = in_force(&platform).await;
    assert_eq!(kept["metadata"]["name"], "v0.kubernetesclusters.kubernetes.edge-connect.eu");
    let export = platform.client().get(&EXPORTS, "", export::EXPORT).await.unwrap();
    assert_eq!(export["spec"].get("permissionClaims").and_then(Value::as_array).map_or(0, Vec::len), 0, "the claims were not put right");
}

fn order(name: &str, pools: usize) -> Value {
    let pool = |at| json!({"name": format!("pool-{at}"), "replicas": 1, "capabilities": {"cpu": "4", "memory": "16Gi"}});
    json!({"apiVersion": CLUSTERS.api_version(), "kind": "KubernetesCluster", "metadata": {"name": name, "namespace": "default"},
        "spec": {"region": "eu-de", "version": "1.34.2", "nodePools": (0..pools).map(pool).collect::<Vec<_>>()}})
}

/// Orders until it is told to stop, five times a second, and says how many there are.
async fn order_on(tenant: &Tenant, stop: &CancellationToken) -> usize {
    let mut orders = 0;
    let mut pause = tokio::time::interval(Duration::from_millis(200));
    while !stop.is_cancelled() {
        pause.tick().await;
        // While one schema follows another the server may refuse for a moment.
        if tenant.client().create(&CLUSTERS, "default", &order(&format!("order-{orders}"), 1)).await.is_ok() {
            orders += 1;
        }
    }
    orders
}

#[tokio::test]
async fn a_compatible_schema_rolls_under_load_and_no_order_is_lost() {
    let (platform, manager, tenant) = served().await;
    another_schema(&platform, "v0", |spec| spec["properties"]["nodePools"]["maxItems"] = 10.into()).await;
    let create = async |name: &str, pools: usize| tenant.client().create(&CLUSTERS, "default", &order(name, pools)).await;
    let mut tries = 0;
    eventually("the older schema is in force", async || {
        tries += 1;
        create(&format!("too-wide-{tries}"), 20).await.is_err()
    })
    .await;
    tenant.order("before", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("before").await;
    let lists = || manager.streamed().iter().filter(|((verb, _), _)| verb == "list").map(|(_, count)| count).sum::<u64>();
    let before = lists();

    let stop = CancellationToken::new();
    let count = async || tenant.client().list(&CLUSTERS, "default").await.map_or(0, |all| all.len());
    let (orders, ()) = tokio::join!(order_on(&tenant, &stop), async {
        eventually("orders are coming", async || count().await > 5).await;
        assert!(init::init(&options(&platform)).await.unwrap().changes() > 0);
        eventually("the new schema is in force", async || create("wide", 20).await.is_ok()).await;
        let then = count().await;
        eventually("orders are coming still", async || count().await > then + 5).await;
        stop.cancel();
    });

    for name in ["before", "wide"].map(str::to_owned).into_iter().chain((0..orders).map(|at| format!("order-{at}"))) {
        tenant.scheduled(&name).await;
    }
    eprintln!("{orders} orders during the roll; {} lists after it", lists() - before);
    // Three kinds and the bindings are watched through the export; each list is one after an end, or one while the kind was not served.
    assert!(lists() - before <= 16, "a storm of {} lists", lists() - before);
    manager.stop().await;
}
