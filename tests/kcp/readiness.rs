//! What a tenant is told about its cluster's readiness, by whom and when.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use kcp_provider_runtime::cli::kcp_admin::AdminClient;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::support::expect::at_rest;
use crate::support::platform::{CLUSTERS, Manager, Platform, SOON, Tenant, condition, eventually, served};

/// A platform with the small catalog, a running manager, and a tenant of provider otc with the cluster `demo`, scheduled.
async fn set_up() -> (Platform, Manager, Tenant, AdminClient) {
    let (platform, manager, tenant) = Box::pin(served()).await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("demo").await;
    let inside = platform.inside(&tenant).await;
    (platform, manager, tenant, inside)
}

async fn scale(tenant: &Tenant, replicas: u32) {
    let pool = json!({"name": "workers", "replicas": replicas, "capabilities": {"cpu": "4", "memory": "16Gi"}});
    tenant.client().patch(&CLUSTERS, "default", "demo", &json!({"spec": {"nodePools": [pool]}})).await.unwrap();
}

fn message<'a>(cluster: &'a Value, type_: &str) -> &'a str {
    condition(cluster, type_).and_then(|found| found["message"].as_str()).unwrap_or_default()
}

#[tokio::test]
async fn readiness_speaks_of_the_current_generation_only() {
    let (_platform, manager, tenant, inside) = set_up().await;
    tenant.report(&inside, "demo", true, "all machines run").await;
    let ready = tenant.wait("demo", "Ready", "True", "Ready").await;
    assert_eq!((&ready["status"]["ready"], &ready["status"]["observedGeneration"]), (&json!(true), &ready["metadata"]["generation"]));

    scale(&tenant, 5).await;
    let outdated = tenant.wait("demo", "ProviderClusterReady", "False", "StatusOutdated").await;
    assert_eq!(message(&outdated, "ProviderClusterReady"), "the report of otc speaks of generation 1, the projection is at 2");
    let waiting = tenant.wait("demo", "Ready", "False", "Pending").await;
    assert!(message(&waiting, "Ready").contains("ProviderClusterReady (StatusOutdated)"), "{waiting}");
    assert_eq!(
        (&waiting["status"]["ready"], &waiting["status"]["observedGeneration"]),
        (&json!(false), &waiting["metadata"]["generation"])
    );

    tenant.report(&inside, "demo", true, "all machines run").await;
    let again = tenant.wait("demo", "Ready", "True", "Ready").await;
    assert_eq!(again["status"]["ready"], true);
    manager.stop().await;
}

#[tokio::test]
async fn ready_names_what_is_waited_for() {
    let (_platform, manager, tenant, inside) = set_up().await;
    let early = tenant.wait("demo", "ProviderClusterReady", "False", "ProviderNotReady").await;
    assert!(message(&early, "Ready").contains("ProviderClusterReady (ProviderNotReady)"), "{early}");
    assert!(!message(&early, "Ready").contains("Scheduled ("), "what holds is not waited for: {early}");

    tenant.report(&inside, "demo", false, "2 of 3 machines run").await;
    let says = |cluster: &Value| message(cluster, "ProviderClusterReady").contains("2 of 3 machines run (Building)");
    tenant.client().wait_for(&CLUSTERS, "default", "demo", "to carry the provider's words", SOON, says).await.unwrap();

    tenant.order("lost", "eu-de", "1.0.0", "4", "16Gi").await;
    tenant.wait("lost", "Scheduled", "False", "OfferingNotFound").await;
    let lost = tenant.wait("lost", "Ready", "False", "Pending").await;
    for phase in ["Scheduled (OfferingNotFound)", "Projected (NotScheduled)", "ProviderClusterReady (NoProjection)"] {
        assert!(message(&lost, "Ready").contains(phase), "{phase}: {lost}");
    }
    assert_eq!(lost["status"]["ready"], false);
    manager.stop().await;
}

/// `kubectl wait` for the cluster to be Ready, as the administrator in the tenant's workspace.
fn kubectl_wait(kubeconfig: &Path) -> Option<Child> {
    let mut command = Command::new("kubectl");
    let words = ["wait", "--for=condition=Ready", "--timeout=300s", "-n", "default", "kubernetesclusters.kubernetes.edge-connect.eu/demo"];
    command.arg("--kubeconfig").arg(kubeconfig).args(words).stdin(Stdio::null()).kill_on_drop(true);
    match command.spawn() {
        Ok(child) => Some(child),
        Err(problem) => {
            eprintln!(
                "kubectl cannot be run ({problem}): its part of this test is left out; the conditions it reads are checked all the same"
            );
            None
        }
    }
}

#[tokio::test]
async fn kubectl_wait_does_not_pass_on_the_readiness_from_before_an_edit() {
    let (platform, manager, tenant, inside) = set_up().await;
    tenant.report(&inside, "demo", true, "all machines run").await;
    tenant.wait("demo", "Ready", "True", "Ready").await;
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("tenant.kubeconfig");
    tenant.client().write_kubeconfig(&kubeconfig).unwrap();
    if let Some(mut passes) = kubectl_wait(&kubeconfig) {
        assert!(passes.wait().await.unwrap().success(), "it passes on what is current");
    }

    // Nobody looks at the edit yet, so that the old True is all there is.
    manager.stop().await;
    scale(&tenant, 5).await;
    let stale = tenant.cluster("demo").await;
    let ready = condition(&stale, "Ready").unwrap();
    assert_eq!(ready["status"], "True");
    assert!(ready["observedGeneration"].as_i64().unwrap() < stale["metadata"]["generation"].as_i64().unwrap(), "it says that it is old");
    let mut waiting = kubectl_wait(&kubeconfig);

    let manager = platform.manager().await;
    tenant.wait("demo", "ProviderClusterReady", "False", "StatusOutdated").await;
    if let Some(waiting) = &mut waiting {
        assert!(waiting.try_wait().unwrap().is_none(), "kubectl passed on a stale True");
    }
    tenant.report(&inside, "demo", true, "all machines run").await;
    tenant.wait("demo", "Ready", "True", "Ready").await;
    if let Some(mut waiting) = waiting {
        assert!(waiting.wait().await.unwrap().success());
    }
    manager.stop().await;
}

/// The requests of a cluster's life by their verbs, added to what went before.
fn since(before: &BTreeMap<(String, u16), u64>, now: &BTreeMap<(String, u16), u64>) -> BTreeMap<String, u64> {
    let mut by_verb = BTreeMap::new();
    for ((verb, code), count) in now {
        let new = count - before.get(&(verb.clone(), *code)).copied().unwrap_or_default();
        // What was refused changed nothing on the server, and whether a request is depends on who is faster.
        if new > 0 && (200..300).contains(code) {
            *by_verb.entry(verb.clone()).or_default() += new;
        }
    }
    by_verb
}

#[tokio::test]
async fn a_cluster_costs_four_writes_until_it_waits_for_its_provider_one_to_be_ready_and_two_to_be_gone() {
    let (_platform, manager, tenant, inside) = set_up().await;
    // The first cluster may be seen before its tenant's Provider, which each of the two reconcilers may tell in one write more, and an event. By
    // the time it is at rest the Provider is known, so that the decision about the next cluster is made once; one more look gives the manager time
    // to count its last write.
    at_rest(&tenant, "demo").await;
    at_rest(&tenant, "demo").await;
    let writes = |pairs: &[(&str, u64)]| pairs.iter().map(|(verb, count)| ((*verb).to_owned(), *count)).collect::<BTreeMap<_, _>>();
    let wanted = writes(&[("update", 1), ("create", 1), ("apply the status of", 2)]);
    let first = |now: &BTreeMap<(String, u16), u64>| {
        let mut all = since(&BTreeMap::new(), now);
        all.remove("apply the status of the configuration");
        all
    };
    let late = |count| writes(&[("update", 1), ("create", 1), ("apply the status of", count)]);
    let late = [late(3), late(4)];
    eventually("the first cluster has cost what it costs", async || {
        let mut first = first(&manager.requests());
        first == wanted || first.remove("create an event").is_none_or(|events| events == 1) && late.contains(&first)
    })
    .await;
    let begin = manager.requests();
    tenant.order("next", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("next").await;
    tenant.wait("next", "ProviderClusterReady", "False", "ProviderNotReady").await;
    eventually("the next one has too", async || since(&begin, &manager.requests()) == wanted).await;
    let scheduled = manager.requests();

    tenant.report(&inside, "next", true, "all machines run").await;
    tenant.wait("next", "Ready", "True", "Ready").await;
    let wanted = writes(&[("apply the status of", 1)]);
    eventually("to become ready costs one write", async || since(&scheduled, &manager.requests()) == wanted).await;
    let ready = manager.requests();

    tenant.client().delete(&CLUSTERS, "default", "next").await.unwrap();
    tenant.client().wait_gone(&CLUSTERS, "default", "next", SOON).await.unwrap();
    let wanted = writes(&[("delete", 1), ("update", 1)]);
    eventually("to go costs two", async || since(&ready, &manager.requests()) == wanted).await;
    manager.stop().await;
}
