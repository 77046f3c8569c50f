//! Objects that cannot be read, and objects at every bound of the schema.

use serde_json::{Value, json};

use crate::rolls::another_schema;
use crate::support::platform::{CLUSTERS, Platform, condition, eventually, served};

/// A schema without rules of its own: what an older version of a product may have let through.
fn without_rules(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("x-kubernetes-validations");
            fields.values_mut().for_each(without_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(without_rules),
        _ => {}
    }
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_told_which_field_it_is_and_all_others_go_on() {
    let (platform, manager, tenant) = served().await;
    another_schema(&platform, "v0", |spec| {
        without_rules(spec);
        let pool = &mut spec["properties"]["nodePools"]["items"]["properties"];
        pool["replicas"] = json!({"x-kubernetes-preserve-unknown-fields": true});
    })
    .await;
    let pool = |replicas: Value| json!([{"name": "workers", "replicas": replicas, "capabilities": {"cpu": "4", "memory": "16Gi"}}]);
    let wreck = json!({"apiVersion": CLUSTERS.api_version(), "kind": "KubernetesCluster", "metadata": {"name": "wreck", "namespace": "default"},
        "spec": {"region": "eu-de", "version": "1.34.2", "nodePools": pool("many".into())}});
    eventually("the server lets it through", async || tenant.client().create(&CLUSTERS, "default", &wreck).await.is_ok()).await;

    let told = tenant.wait("wreck", "Scheduled", "False", "InvalidObject").await;

    let message = condition(&told, "Scheduled").unwrap()["message"].as_str().unwrap();
    assert!(message.contains("spec.nodePools[0].replicas"), "the field is named: {message}");
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("demo").await;
    tenant.client().patch(&CLUSTERS, "default", "wreck", &json!({"spec": {"nodePools": pool(3.into())}})).await.unwrap();
    tenant.scheduled("wreck").await;
    manager.stop().await;
}

#[tokio::test]
async fn a_cluster_at_every_bound_of_the_schema_is_scheduled_and_one_that_nobody_can_serve_is_told_so_briefly() {
    let platform = Platform::new().await;
    let (region, version) = ("r".repeat(63), "1".repeat(63));
    platform.machine_type("m-8-32", "8", "32Gi", &[&region]).await;
    platform.offering("otc-wide", "otc", &[&region], &[&version], &["m-8-32"]).await;
    let manager = platform.manager().await;
    let tenant = platform.tenant().await;
    tenant.provider("otc").await;
    let cpus = ["8", "8000m", "0", ".5", "+1.", "8e0", "8000000000n", "000000000000000000000000000.008k"];
    let memories = ["32Gi", "34359738368", "32768Mi", "0.0000000000000000000000000001Gi", "1e3", "33554432Ki", "0", "34359738368000m"];
    let pools = |cpu: Option<&str>| -> Value {
        let pool = |at: usize| {
            json!({"name": format!("{at:0>63}"), "replicas": if at.is_multiple_of(2) { 0 } else { 10_000 },
                "capabilities": {"cpu": cpu.unwrap_or(cpus[at % cpus.len()]), "memory": memories[at / 2 % memories.len()]}})
        };
        (0..50).map(pool).collect()
    };
    let (widest, greedy) = ("w".repeat(253), "g".repeat(253));
    tenant.order_spec(&widest, json!({"region": region, "version": version, "nodePools": pools(None)})).await;
    tenant.order_spec(&greedy, json!({"region": region, "version": version, "nodePools": pools(Some("7.8Ei"))})).await;

    tenant.scheduled(&widest).await;
    let projection = tenant.projection(&widest).await.unwrap();
    let projected = projection["spec"]["nodePools"].as_array().unwrap();
    assert_eq!(projected.len(), 50);
    assert!(projected.iter().all(|pool| pool["type"] == "m-8-32"), "{projection}");
    let told = tenant.wait(&greedy, "Scheduled", "False", "CapabilityMismatch").await;
    for condition in told["status"]["conditions"].as_array().unwrap() {
        assert!(condition["message"].as_str().unwrap().len() <= 1024, "{condition}");
    }
    manager.stop().await;
}
