//! `kcm explain -f`, as a script in a pipeline meets it: exit codes, the JSON, and what is said of bad input.

#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "the scheduling tests use more of it")]
#[path = "scheduling/world.rs"]
mod world;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use kcp_provider_runtime::api::manifest::samples;
use kcp_provider_runtime::api::meta::Kind;
use kcp_provider_runtime::api::projection::Projection;
use kcp_provider_runtime::api::provider::Provider;
use kcp_provider_runtime::api::tenant::KubernetesCluster;
use kcp_provider_runtime::kcm::explain::explain as decide;
use kcp_provider_runtime::kcm::schedule::{Request, schedule};
use proptest::prelude::*;
use serde_json::{Value, json};

/// What a call left behind.
struct Outcome {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Outcome {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }
}

/// Calls `kcm explain` in a folder.
fn kcm(folder: &Path, arguments: &[&str], stdin: &str) -> Outcome {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kcm"))
        .arg("explain")
        .args(arguments)
        .current_dir(folder)
        .env_remove("RUST_LOG")
        // A file needs no server, so what is said of one must not matter.
        .env("KUBECONFIG", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Whoever does not read standard input closes it, which is no error here.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Outcome { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A folder with these files.
fn files(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Explains one file.
fn of_file(name: &str, text: &str, arguments: &[&str]) -> Outcome {
    let folder = files(&[(name, text)]);
    kcm(folder.path(), &[&["-f", name], arguments].concat(), "")
}

const CATALOG: &str = "\
# The platform's catalog.
---
apiVersion: provider.kubernetes.edge-connect.eu/v1alpha1
kind: KubernetesClusterOffering
metadata: {name: otc-standard}
spec:
  providerRef: {name: otc}
  availableRegions: [eu-de]
  availableVersions: ['1.34.2']
  availableVirtualMachineTypes: [m-4-16, m-8-32]
---
apiVersion: provider.edge-connect.eu/v1alpha1
kind: VirtualMachineType
metadata: {name: m-4-16}
spec: {providerMachineType: s3.xlarge.4, cpu: 4, memory: 16Gi, availableRegions: [eu-de]}
---
apiVersion: provider.edge-connect.eu/v1alpha1
kind: VirtualMachineType
metadata: {name: m-8-32}
spec: {providerMachineType: s3.2xlarge.4, cpu: '8', memory: 32Gi, availableRegions: [eu-de]}
";

const PROVIDER: &str = "\
apiVersion: provider.edge-connect.eu/v1alpha1
kind: Provider
metadata: {name: otc}
spec: {credentialsSecretRef: {namespace: default, name: account}}
";

fn cluster(name: &str, region: &str, cpu: &str) -> String {
    format!(
        "---
apiVersion: kubernetes.edge-connect.eu/v1alpha1
kind: KubernetesCluster
metadata: {{name: {name}, namespace: team}}
spec:
  region: {region}
  version: 1.34.2
  nodePools:
  - {{name: workers, replicas: 3, capabilities: {{cpu: {cpu}, memory: 16Gi}}}}
"
    )
}

#[test]
fn a_schedulable_cluster_exits_0_with_the_documented_json() {
    let folder = files(&[("catalog.yaml", CATALOG), ("tenant.yaml", &format!("{PROVIDER}{}", cluster("demo", "eu-de", "'4'")))]);
    let outcome = kcm(folder.path(), &["-f", "catalog.yaml", "tenant.yaml", "-o", "json"], "");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    assert_eq!(
        outcome.json(),
        json!([{
            "namespace": "team", "name": "demo", "scheduled": true, "reason": "Scheduled", "message": "provider otc; workers: m-4-16",
            "provider": "otc", "offering": "otc-standard", "nodePools": [{"name": "workers", "type": "m-4-16"}],
            "candidates": [
                {"offering": "otc-standard", "provider": "otc", "verdict": "Chosen", "pool": null, "detail": "workers: m-4-16"},
            ],
        }])
    );
}

#[test]
fn rules_of_who_is_served_are_not_looked_at_and_a_warning_says_so() {
    let config = |kcp: &str| {
        format!(
            "---\n{{apiVersion: config.edge-connect.eu/v1alpha1, kind: ProviderConfig, metadata: {{name: kcm}}, spec: {{kcp: {kcp}}}}}\n"
        )
    };
    let text = |kcp: &str| [CATALOG, "---\n", PROVIDER, &cluster("demo", "eu-de", "4"), &config(kcp)].concat();
    let outcome = of_file("all.yaml", &text("{allowedWorkspaces: ['root:orgs:*']}"), &[]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("spec.kcp.allowedWorkspaces: not looked at"), "{}", outcome.stderr);
    let outcome = of_file("all.yaml", &text("{}"), &[]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "without rules everybody is served");
}

#[test]
fn one_unschedulable_cluster_of_two_exits_1_and_each_has_its_entry_in_order() {
    let text = [CATALOG, "---\n", PROVIDER, &cluster("huge", "eu-de", "64"), &cluster("demo", "eu-de", "4")].concat();
    let outcome = of_file("all.yaml", &text, &["-o", "json"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (1, ""));
    let entries = outcome.json();
    assert_eq!(entries.as_array().unwrap().len(), 2);
    assert_eq!(entries[1]["scheduled"], true);
    let huge = &entries[0];
    assert_eq!((&huge["name"], &huge["reason"]), (&json!("huge"), &json!("CapabilityMismatch")));
    assert_eq!([&huge["provider"], &huge["offering"], &huge["nodePools"][0]["type"]], [&Value::Null; 3]);
    assert_eq!((&huge["candidates"][0]["verdict"], &huge["candidates"][0]["pool"]), (&json!("PoolUnsatisfied"), &json!("workers")));
}

#[test]
fn the_text_has_a_heading_the_message_the_candidates_and_what_would_help() {
    let text = [CATALOG, &cluster("demo", "eu-de", "4"), &cluster("far", "us-east", "4")].concat();
    let outcome = of_file("all.yaml", &text, &[]);
    assert_eq!(outcome.code, 1);
    for part in [
        "team/demo: not schedulable, ProviderNotConfigured\n",
        "region eu-de and version 1.34.2 are served by: otc; this workspace holds a Provider for none of them",
        "ProviderNotConfigured  met     met      -    failed      met    the workspace holds no Provider otc; workers: m-4-16\n",
        "It would be schedulable after any of:\n  - tenant: create Provider otc in the workspace\n",
        "\n\nteam/far: not schedulable, OfferingNotFound\n",
        "RegionNotServed  failed  met      -    failed      failed: workers  serves eu-de\n",
    ] {
        assert!(outcome.stdout.contains(part), "{part:?} is not in:\n{}", outcome.stdout);
    }
}

#[test]
fn standard_input_files_json_and_lists_mix() {
    let catalog: Vec<Value> = samples::catalog();
    let tenant: Vec<String> = samples::tenant().iter().map(Value::to_string).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": catalog}).to_string();
    let folder = files(&[("catalog.json", &list)]);
    let outcome = kcm(folder.path(), &["-f", "-", "-f", "catalog.json", "-o", "json"], &tenant.join("\n"));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    assert_eq!(outcome.json()[0]["offering"], "otc-standard");
    // What `kubectl get --raw` gives: a list of one kind, whose items do not say it.
    let mut clusters = samples::tenant();
    clusters[1].as_object_mut().unwrap().retain(|field, _| field == "metadata" || field == "spec");
    let typed = json!({"apiVersion": "kubernetes.edge-connect.eu/v1alpha1", "kind": "KubernetesClusterList", "items": [clusters[1]]});
    let outcome = kcm(folder.path(), &["-f", "catalog.json", "-", "-o", "json"], &format!("{}{typed}", clusters[0]));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    assert_eq!(outcome.json()[0]["name"], "demo");
}

#[test]
fn what_a_platform_team_has_in_its_repository_is_explained_as_it_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/samples");
    let outcome = kcm(&folder, &["-f", "catalog.yaml", "providerconfig.yaml", "tenant.yaml"], "");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    assert!(outcome.stdout.starts_with("default/demo: Scheduled on provider otc, offering otc-standard\n"), "{}", outcome.stdout);
}

/// A projection of the cluster `demo` that runs on the larger type, with these fields in its metadata.
fn projection(metadata: &str) -> String {
    format!(
        "---
apiVersion: provider.kubernetes.edge-connect.eu/v1alpha1
kind: KubernetesCluster
metadata: {{name: demo, namespace: team{metadata}}}
spec:
  providerRef: {{name: otc}}
  region: eu-de
  version: 1.34.2
  nodePools: [{{name: workers, replicas: 3, type: m-8-32}}]
status: {{phase: whatever a provider wrote}}
"
    )
}

#[test]
fn a_pool_keeps_its_type_by_the_clusters_own_projection_only() {
    let owner = |group: &str| {
        format!(", ownerReferences: [{{apiVersion: {group}/v1alpha1, kind: KubernetesCluster, name: demo, controller: true}}]")
    };
    for (why, metadata, type_, note) in [
        ("no owner is named in a file", String::new(), "m-8-32", ""),
        ("the cluster owns it, uids are left out", owner("kubernetes.edge-connect.eu"), "m-8-32", ""),
        ("somebody else owns it", owner("example.org"), "m-4-16", "Warning: the projection team/demo was not made by the scheduler"),
    ] {
        let text = [CATALOG, "---\n", PROVIDER, &cluster("demo", "eu-de", "4"), &projection(&metadata)].concat();
        let outcome = of_file("all.yaml", &text, &["-o", "json"]);
        assert_eq!(outcome.code, 0, "{why}: {}", outcome.stderr);
        assert_eq!(outcome.json()[0]["nodePools"][0]["type"], type_, "{why}");
        assert!(if note.is_empty() { outcome.stderr.is_empty() } else { outcome.stderr.starts_with(note) }, "{why}: {}", outcome.stderr);
    }
}

#[test]
fn bad_input_exits_2_and_names_file_document_and_field() {
    let good = cluster("demo", "eu-de", "4");
    let pool = "{name: workers, replicas: 3, capabilities: {cpu: 4, memory: 16Gi}}";
    let many = (0..51).map(|at| pool.replace("workers", &format!("p{at}"))).collect::<Vec<_>>().join(", ");
    let with = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        format!("{CATALOG}{}", good.replace(from, to))
    };
    for (why, text, expected) in [
        ("an unknown kind", with("KubernetesCluster", "Cluster"), "document 4 (line 21): kind: \"Cluster\" is none of KubernetesCluster,"),
        (
            "an unknown version",
            with("edge-connect.eu/v1alpha1", "edge-connect.eu/v2"),
            "document 4 (line 21): apiVersion: \"kubernetes.edge-connect.eu/v2\" is not that of a KubernetesCluster, which is \
             kubernetes.edge-connect.eu/v1alpha1 or provider.kubernetes.edge-connect.eu/v1alpha1",
        ),
        ("no version", with("apiVersion: kubernetes.edge-connect.eu/v1alpha1\n", ""), "document 4 (line 21): apiVersion: is missing"),
        ("no name", with("name: demo, ", ""), "document 4 (line 21): metadata.name: is missing"),
        ("no metadata", with("metadata: {name: demo, namespace: team}\n", ""), "document 4 (line 21): metadata.name: is missing"),
        ("a version without quotes", with("1.34.2", "1.34"), "document 4 (line 21): spec.version: must be a string, not 1.34; put it in quotes"),
        ("a required field", with("  region: eu-de\n", ""), "document 4 (line 21): spec.region: is missing"),
        ("another type", with("replicas: 3", "replicas: many"), "document 4 (line 21): spec.nodePools[0].replicas: must be an integer"),
        ("out of range", with("replicas: 3", "replicas: -1"), "document 4 (line 21): spec.nodePools[0].replicas: -1 is not between 0 and 10000"),
        ("a negative amount", with("cpu: 4", "cpu: -4"), "document 4 (line 21): spec.nodePools[0].capabilities.cpu: a quantity must not be"),
        ("no pools", with(&format!("\n  - {pool}"), " []"), "document 4 (line 21): spec.nodePools: must not be empty"),
        ("too many pools", with(&format!("\n  - {pool}"), &format!(" [{many}]")), "spec.nodePools: has 51 items"),
        ("a pool twice", with(&format!("- {pool}"), &format!("- {pool}\n  - {pool}")), "spec.nodePools[1].name: \"workers\" is listed twice"),
        ("an object twice", format!("{CATALOG}{good}{good}"), "document 5 (line 30): metadata.name: the KubernetesCluster team/demo is already in all.yaml: document 4 (line 21)"),
        ("broken YAML", with("region: eu-de", "region: [eu-de"), "document 4 (line 21): is not YAML at line "),
        ("no object", format!("{CATALOG}---\n- a\n"), "document 4 (line 21): is not an object"),
        (
            "a type's amount",
            CATALOG.replace("cpu: '8'", "cpu: 8 cores"),
            "document 3 (line 16): spec.cpu: `8 cores` is not a quantity",
        ),
        (
            "a configuration that the manager would refuse",
            "{apiVersion: config.edge-connect.eu/v1alpha1, kind: ProviderConfig, metadata: {name: kcm}, spec: {scheduling: {unschedulableRequeue: 0s}}}".to_owned(),
            "document 1 (line 1): spec.scheduling.unschedulableRequeue: 0 would decide without a pause",
        ),
        (
            "an item of a list",
            "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret}]}".to_owned(),
            "document 1 (line 1): items[0].kind: \"Secret\" is none of",
        ),
        ("one page of a list", "{apiVersion: v1, kind: List, items: [], metadata: {continue: abc}}".to_owned(), "metadata.continue: the list is one page"),
    ] {
        let outcome = of_file("all.yaml", &text, &["-o", "json"]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{why}: {}", outcome.stderr);
        assert!(outcome.stderr.starts_with("Error: all.yaml: "), "{why}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(expected), "{why}: {expected:?} is not in {}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{why}: one mistake, one line: {}", outcome.stderr);
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once_up_to_a_bound() {
    let bad: String = (0..60).map(|at| cluster(&format!("c{at}"), "''", "4")).collect();
    let folder = files(&[("a.yaml", &bad), ("b.json", "{\"kind\": ]")]);
    let outcome = kcm(folder.path(), &["-f", "a.yaml"], "");
    assert_eq!(outcome.code, 2);
    assert_eq!(outcome.stderr.lines().count(), 51, "{}", outcome.stderr);
    assert!(outcome.stderr.ends_with("Error: and 10 more problems\n"), "{}", outcome.stderr);
    let outcome = kcm(folder.path(), &["-f", "b.json", "none.yaml", ".", "-", "-"], "");
    assert_eq!(outcome.code, 2);
    for part in [
        "b.json: document 1 (line 1): is not JSON",
        "none.yaml: cannot be read",
        ".: cannot be read: it is a folder",
        "stdin: standard input can be read once",
    ] {
        assert!(outcome.stderr.contains(part), "{part:?} is not in {}", outcome.stderr);
    }
}

#[test]
fn unknown_fields_are_warned_of_and_fail_nothing() {
    let text = [CATALOG, "---\n", PROVIDER, &cluster("demo", "eu-de", "4, gpu: 1")].concat();
    let outcome = of_file("all.yaml", &text, &["-o", "json"]);
    assert_eq!(outcome.code, 0);
    assert_eq!(
        outcome.stderr,
        "Warning: all.yaml: document 5 (line 26): spec.nodePools[0].capabilities.gpu: unknown field; a server would drop it\n"
    );
    assert_eq!(outcome.json()[0]["scheduled"], true);
}

#[test]
fn files_without_a_cluster_are_an_empty_array_with_a_warning() {
    let outcome = of_file("catalog.yaml", CATALOG, &["-o", "json"]);
    assert_eq!((outcome.code, outcome.json()), (0, json!([])));
    assert!(outcome.stderr.starts_with("Warning: there is no tenant's KubernetesCluster"), "{}", outcome.stderr);
}

#[test]
fn a_text_from_a_file_cannot_steer_the_terminal() {
    let outcome = of_file("all.yaml", &cluster("demo", "\"\\e[31m\"", "-4"), &[]);
    assert_eq!(outcome.code, 2);
    let outcome2 = of_file("all.yaml", &cluster("demo", "\"\\e[31m\"", "4"), &[]);
    assert_eq!(outcome2.code, 1);
    assert!(![outcome.stderr, outcome.stdout, outcome2.stderr, outcome2.stdout].concat().contains('\u{1b}'));
}

#[test]
fn a_wrong_command_line_exits_2_and_so_does_a_server_that_is_not_there() {
    let folder = files(&[("a.yaml", CATALOG)]);
    for (arguments, says) in [
        (&[][..], "required arguments were not provided"),
        (&["demo"], "--workspace"),
        (&["demo", "-f", "a.yaml"], "cannot be used with"),
        (&["-f", "a.yaml", "--workspace", "root:x"], "cannot be used with"),
        (&["-f", "a.yaml", "-o", "yaml"], "possible values: text, json"),
        (&["demo", "--workspace", "root:x"], "no kubeconfig at /nonexistent"),
    ] {
        let outcome = kcm(folder.path(), arguments, "");
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(outcome.stderr.contains(says), "{arguments:?}: {}", outcome.stderr);
    }
}

fn document<K: Kind>(object: &K) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    value["apiVersion"] = K::REF.api_version().into();
    value["kind"] = K::REF.kind.into();
    value
}

/// The documents of a catalog and its Providers.
fn shared(objects: &world::Objects, providers: &BTreeSet<String>) -> Vec<Value> {
    let catalog = |kind: &str, group: &str, name: &String, spec: Value| json!({"apiVersion": format!("{group}/v1alpha1"), "kind": kind, "metadata": {"name": name}, "spec": spec});
    let offerings = objects.offerings.iter().map(|(name, spec)| {
        catalog("KubernetesClusterOffering", "provider.kubernetes.edge-connect.eu", name, serde_json::to_value(spec).unwrap())
    });
    let types = objects
        .types
        .iter()
        .map(|(name, spec)| catalog("VirtualMachineType", "provider.edge-connect.eu", name, serde_json::to_value(spec).unwrap()));
    let providers = providers.iter().map(|name| {
        let spec = json!({"credentialsSecretRef": {"namespace": "default", "name": "account"}});
        document(&serde_json::from_value::<Provider>(json!({"metadata": {"name": name}, "spec": spec})).unwrap())
    });
    offerings.chain(types).chain(providers).collect()
}

/// Clusters of one workspace, some settled on an earlier catalog, each under a name of its own.
fn clusters(before: &world::Objects, tenants: Vec<(world::Tenant, bool)>) -> Vec<(KubernetesCluster, Option<Projection>)> {
    let catalog = before.catalog();
    let named = tenants.into_iter().enumerate().map(|(at, (mut tenant, settled))| {
        tenant.cluster.metadata.name = format!("c{at}");
        let after = settled.then(|| tenant.settled(&schedule(tenant.request(&catalog)))).flatten().unwrap_or(tenant);
        (after.cluster, after.projection)
    });
    named.collect()
}

proptest! {
    // Each case starts a process.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn offline_explain_is_the_decision_of_the_library(
        before in world::objects(),
        after in world::objects(),
        tenants in proptest::collection::vec((world::tenant(), any::<bool>()), 1..6),
        seed in any::<prop::sample::Index>(),
    ) {
        let providers = tenants[0].0.providers.clone();
        let clusters = clusters(&before, tenants);
        let catalog = after.catalog();
        let expected: Vec<_> = clusters
            .iter()
            .map(|(cluster, projection)| decide(Request { cluster, catalog: &catalog, providers: &providers, projection: projection.as_ref() }))
            .collect();

        // The clusters keep their order; what is shared stands anywhere among two files.
        let mut documents = shared(&after, &providers);
        documents.extend(clusters.iter().filter_map(|(_, projection)| projection.as_ref()).map(document));
        let turn = seed.index(documents.len().max(1));
        documents.rotate_left(turn);
        documents.extend(clusters.iter().map(|(cluster, _)| document(cluster)));
        let (first, second) = documents.split_at(turn);
        let yaml: Vec<String> = first.iter().map(|document| serde_saphyr::to_string(document).unwrap()).collect();
        let yaml = yaml.join("---\n");
        let json: String = second.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        let folder = files(&[("first.yaml", &yaml)]);
        let outcome = kcm(folder.path(), &["-f", "first.yaml", "-", "-o", "json"], &json);

        prop_assert_eq!(&outcome.stderr, "");
        prop_assert_eq!(outcome.json(), serde_json::to_value(&expected).unwrap());
        prop_assert_eq!(outcome.code, i32::from(!expected.iter().all(|explanation| explanation.scheduled)));
    }
}
