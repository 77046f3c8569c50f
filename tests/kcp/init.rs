//! A provider workspace as `kcm init` makes it: what tenants, providers and the manager can do in it, and what the server refuses.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use std::path::Path;

use kcp_provider_runtime::api::manifest::{binding, export, rbac, samples};
use kcp_provider_runtime::cli::connect::ConnectArgs;
use kcp_provider_runtime::cli::init::{self, InitArgs, Options, Report, identity};
use kcp_provider_runtime::cli::kcp_admin::{AdminClient, AdminError, Resource};
use serde_json::{Value, json};

use crate::support::platform::{
    BINDINGS, CLUSTERS, CONFIGS, EXPORTS, MACHINE_TYPES, OFFERINGS, PROJECTIONS, PROVIDERS, Platform, SOON, eventually,
};
use crate::support::{self, Workspace};

const SLICES: Resource = Resource::new("apis.kcp.io", "v1alpha1", "apiexportendpointslices");
const SECRETS: Resource = Resource::new("", "v1", "secrets");

struct Setup {
    platform: Platform,
}

impl Setup {
    /// A provider workspace after its first `init`.
    async fn new() -> Self {
        let setup = Self { platform: Platform::new().await };
        assert!(setup.platform.report.changes() > 0);
        setup
    }

    async fn init(&self, provider: Option<&str>, dry_run: bool) -> Report {
        let options =
            Options { connection: self.platform.connection.clone(), provider: provider.map(Into::into), manage_exports: false, dry_run };
        init::init(&options).await.unwrap()
    }

    /// The user of the kubeconfig that `init --write-kubeconfig` writes for the report's identity.
    async fn identity(&self, report: &Report) -> AdminClient {
        let file = self.platform.folder().join("identity.kubeconfig");
        identity::write_kubeconfig(&self.platform.connection, &report.identity, &file).await.unwrap();
        assert_eq!(mode(&file), 0o600);
        AdminClient::from_kubeconfig(&file).await.unwrap()
    }

    /// A workspace that has bound the export, its kinds served.
    async fn tenant(&self) -> Workspace {
        self.platform.tenant().await.workspace
    }

    /// `user` in the virtual workspace of `export`, in one tenant's workspace.
    async fn through(&self, user: &AdminClient, export: &str, tenant: &Workspace) -> AdminClient {
        let url = |slice: &Value| slice.pointer("/status/endpoints/0/url").and_then(Value::as_str).map(ToOwned::to_owned);
        let slice = user.wait_for(&SLICES, "", export, "to have a URL", SOON, |slice| url(slice).is_some()).await.unwrap();
        user.at_url(&format!("{}/clusters/{}", url(&slice).unwrap(), tenant.logical_cluster)).unwrap()
    }
}

fn mode(file: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(file).unwrap().permissions().mode() & 0o777
}

/// Repeats a request while the server sets itself up (403, 404, 429, 500), and returns its answer.
async fn answered<T>(what: &str, attempt: impl AsyncFn() -> Result<T, AdminError>) -> T {
    let mut answer = None;
    eventually(what, async || {
        answer = attempt().await.ok();
        answer.is_some()
    })
    .await;
    answer.expect("it was there when the wait ended")
}

fn cluster(name: &str) -> Value {
    let mut cluster = samples::tenant()[1].clone();
    cluster["metadata"]["name"] = name.into();
    cluster
}

fn projection(owner: &Value) -> Value {
    json!({
        "apiVersion": "provider.kubernetes.edge-connect.eu/v1alpha1",
        "kind": "KubernetesCluster",
        "metadata": {
            "name": owner["metadata"]["name"],
            "namespace": "default",
            "ownerReferences": [{
                "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": false,
            }],
        },
        "spec": {
            "providerRef": { "name": "otc" }, "region": "eu-de", "version": "1.34.2",
            "nodePools": [{ "name": "workers", "replicas": 3, "type": "m-4-16" }],
        },
    })
}

fn code(result: Result<Value, AdminError>) -> Option<u16> {
    result.err().and_then(|error| error.code())
}

#[tokio::test]
async fn the_second_init_changes_nothing_and_a_dry_run_shows_what_would_change() {
    let setup = Setup::new().await;
    assert_eq!(setup.init(None, false).await.changes(), 0);
    assert!(setup.init(Some("otc"), false).await.changes() > 0);
    assert_eq!(setup.init(Some("otc"), false).await.changes(), 0);
    assert_eq!(setup.init(None, false).await.changes(), 0, "a door's default binding stays");
    let client = setup.platform.workspace.client();

    // The claims of an opt-in set are somebody's; a claim of ours that lost a verb is put right.
    let claims = json!([
        { "group": "", "resource": "secrets", "verbs": ["get"] },
        { "group": "", "resource": "events", "verbs": ["create"] },
    ]);
    client.patch(&EXPORTS, "", export::EXPORT, &json!({ "spec": { "permissionClaims": claims } })).await.unwrap();
    let dry = setup.init(None, true).await;
    assert_eq!(dry.changes(), 1);
    assert!(dry.to_string().contains("+    - patch"), "{dry}");
    assert_eq!(setup.init(None, true).await.changes(), 1, "a dry run writes nothing");
    assert_eq!(setup.init(None, false).await.changes(), 1);
    let live = client.get(&EXPORTS, "", export::EXPORT).await.unwrap();
    let resources: Vec<_> = live["spec"]["permissionClaims"].as_array().unwrap().iter().map(|claim| &claim["resource"]).collect();
    assert_eq!(resources, ["secrets", "events", "logicalclusters"]);

    // The configuration is the operator's.
    client.patch(&CONFIGS, "", samples::PROVIDER_CONFIG, &json!({ "spec": { "pollInterval": "Off" } })).await.unwrap();
    assert_eq!(setup.init(None, false).await.changes(), 0);
}

#[tokio::test]
async fn a_provider_workspace_is_named_by_its_path_or_by_the_kubeconfig() {
    let setup = Setup::new().await;
    let kubeconfig = setup.platform.folder().join("root.kubeconfig");
    support::kcp().await.admin.write_kubeconfig(&kubeconfig).unwrap();
    let connect = ConnectArgs { kubeconfig: Some(kubeconfig.clone()), workspace: Some(setup.platform.connection.path.clone()) };
    let connection = connect.connect().await.unwrap();
    assert!(connection.path.starts_with("root:provider-"), "{}", connection.path);
    assert_eq!(connection.path, setup.platform.connection.path);
    let unknown = ConnectArgs { kubeconfig: Some(kubeconfig), workspace: Some("root:no-such".into()) };
    let problem = format!("{:#}", unknown.connect().await.unwrap_err());
    assert!(problem.contains("/clusters/root:no-such is no kcp workspace that this user may read"), "{problem}");
    let door_first = InitArgs { connect, provider: Some("UPPER".into()), ..InitArgs::default() };
    assert!(door_first.run().await.unwrap_err().to_string().contains("is not a provider's name"));
}

#[tokio::test]
async fn the_server_refuses_what_breaks_a_rule_of_a_clusters_spec() {
    let setup = Setup::new().await;
    let tenant = setup.tenant().await;
    let client = tenant.client();
    answered("a cluster", async || client.create(&CLUSTERS, "default", &cluster("demo")).await).await;
    let free = client.patch(&CLUSTERS, "default", "demo", &json!({ "spec": { "region": "eu-nl" } })).await;
    free.expect("the region is free until a provider is set");
    let spec = json!({ "spec": { "providerRef": { "name": "otc" }, "region": "eu-de" } });
    client.patch(&CLUSTERS, "default", "demo", &json!({ "spec": { "providerRef": { "name": "otc" } } })).await.expect("set once");
    assert!(client.patch(&CLUSTERS, "default", "demo", &spec).await.is_err());

    let kept = "it is set by the scheduler, keep it or use kubectl apply";
    let pool = |name: &str, cpu: Value| json!({ "name": name, "replicas": 1, "capabilities": { "cpu": cpu, "memory": "1Gi" } });
    let cases = [
        ("another region", json!({ "region": "eu-de" }), "spec.region: Invalid value: \"object\": region is fixed once providerRef is set"),
        ("another provider", json!({ "providerRef": { "name": "aws" } }), kept),
        ("no provider", json!({ "providerRef": null }), kept),
        ("no pools", json!({ "nodePools": [] }), "should have at least 1 items"),
        ("a pool twice", json!({ "nodePools": [pool("a", json!("1")), pool("a", json!("1"))] }), "Duplicate value"),
        ("a pool's name", json!({ "nodePools": [pool("A", json!("1"))] }), "should match"),
        ("cpu that no machine has", json!({ "nodePools": [pool("a", json!("99999999999999999999"))] }), "should match"),
        ("a word for cpu", json!({ "nodePools": [pool("a", json!("four"))] }), "should match"),
        ("negative cpu", json!({ "nodePools": [pool("a", json!(-1))] }), "should be greater than or equal to 0"),
        ("a fraction on the wire", json!({ "nodePools": [pool("a", json!(1.5))] }), "must be of type integer,string"),
        ("a long region", json!({ "region": "x".repeat(64) }), "Too long"),
    ];
    for (why, spec, message) in cases {
        let refused = client.patch(&CLUSTERS, "default", "demo", &json!({ "spec": spec })).await.expect_err(why);
        assert_eq!(refused.code(), Some(422), "{why}: {refused}");
        assert!(refused.to_string().contains(message), "{why}: {refused}");
    }
    let integer = json!({ "spec": { "nodePools": [pool("a", json!(4))] } });
    client.patch(&CLUSTERS, "default", "demo", &integer).await.expect("an integer is a quantity");
}

#[tokio::test]
async fn the_server_refuses_to_move_a_projection_and_lets_it_change_otherwise() {
    let setup = Setup::new().await;
    let tenant = setup.tenant().await;
    let manager = setup.identity(&setup.init(None, false).await).await;
    let runtime = setup.through(&manager, export::EXPORT, &tenant).await;
    let demo = answered("a cluster", async || tenant.client().create(&CLUSTERS, "default", &cluster("demo")).await).await;
    answered("the projection", async || runtime.create(&PROJECTIONS, "default", &projection(&demo)).await).await;
    let cases = [
        (json!({ "providerRef": { "name": "aws" } }), "a cluster never migrates"),
        (json!({ "region": "eu-nl" }), "a cluster never moves"),
    ];
    for (spec, message) in cases {
        let refused = runtime.patch(&PROJECTIONS, "default", "demo", &json!({ "spec": spec })).await.expect_err(message);
        assert!(refused.code() == Some(422) && refused.to_string().contains(message), "{refused}");
    }
    let changed = json!({ "spec": { "version": "1.33.6", "nodePools": [{ "name": "other", "replicas": 9, "type": "m-8-32" }] } });
    runtime.patch(&PROJECTIONS, "default", "demo", &changed).await.expect("it is scaled and upgraded");
}

#[tokio::test]
async fn the_server_refuses_a_configuration_that_cannot_work() {
    let setup = Setup::new().await;
    let cases = [
        ("Classic in kcp", json!({ "kcp": {}, "workload": { "pattern": "Classic" } }), "a workspace runs no workers"),
        ("no pause", json!({ "scheduling": { "unschedulableRequeue": "0s" } }), "without a pause"),
        ("no trust", json!({ "scheduling": { "catalogMaxStaleness": "0" } }), "trust no catalog"),
        ("no rest", json!({ "pollInterval": "0h0m" }), "never rest"),
        ("no duration", json!({ "pollInterval": "soon" }), "should match"),
    ];
    for (why, spec, message) in cases {
        let refused = setup.platform.workspace.client().patch(&CONFIGS, "", samples::PROVIDER_CONFIG, &json!({ "spec": spec })).await;
        let refused = refused.expect_err(why);
        assert!(refused.code() == Some(422) && refused.to_string().contains(message), "{why}: {refused}");
    }
    let off = json!({ "spec": { "pollInterval": "Off", "scheduling": { "unschedulableRequeue": "1h30m" } } });
    setup.platform.workspace.client().patch(&CONFIGS, "", samples::PROVIDER_CONFIG, &off).await.expect("these work");
}

#[tokio::test]
async fn a_tenant_writes_its_own_kinds_and_only_reads_the_projection_and_every_status() {
    let setup = Setup::new().await;
    let tenant = setup.tenant().await;
    let own = tenant.client();
    let manager = setup.identity(&setup.init(None, false).await).await;
    let runtime = setup.through(&manager, export::EXPORT, &tenant).await;
    let demo = answered("a cluster", async || own.create(&CLUSTERS, "default", &cluster("demo")).await).await;
    own.create(&PROVIDERS, "", &samples::tenant()[0]).await.expect("a Provider is the tenant's");
    answered("the projection", async || runtime.create(&PROJECTIONS, "default", &projection(&demo)).await).await;
    let ready = json!({ "status": { "ready": true } });
    for kind in [&CLUSTERS, &PROJECTIONS] {
        let status = kind.subresource("status");
        runtime.patch(&status, "default", "demo", &ready).await.expect("the runtime writes status");
        assert_eq!(own.get(kind, "default", "demo").await.unwrap()["status"]["ready"], true, "the tenant reads it");
        assert_eq!(code(own.patch(&status, "default", "demo", &json!({ "status": { "ready": false } })).await), Some(403));
    }
    let spec = json!({ "spec": { "version": "1.33.6" } });
    assert_eq!(code(own.patch(&PROJECTIONS, "default", "demo", &spec).await), Some(403), "a tenant does not write the projection");
    assert!(own.delete(&PROJECTIONS, "default", "demo").await.unwrap_err().is_forbidden(), "nor delete it");
    let mut another = projection(&demo);
    another["metadata"]["name"] = "another".into();
    assert_eq!(code(own.create(&PROJECTIONS, "default", &another).await), Some(403), "nor create one");
    own.patch(&CLUSTERS, "default", "demo", &spec).await.expect("the cluster is the tenant's");

    own.delete(&CLUSTERS, "default", "demo").await.unwrap();
    own.wait_gone(&PROJECTIONS, "default", "demo", SOON).await.expect("the workspace collects a projection whose owner is gone");
}

#[tokio::test]
async fn the_manager_may_do_what_it_needs_and_no_more() {
    let setup = Setup::new().await;
    let manager = setup.identity(&setup.init(None, false).await).await;
    let status = json!({ "status": { "observedGeneration": 1 } });
    answered("reading the configuration", async || manager.get(&CONFIGS, "", samples::PROVIDER_CONFIG).await).await;
    manager.patch(&CONFIGS.subresource("status"), "", samples::PROVIDER_CONFIG, &status).await.expect("it reports on its configuration");
    for kind in [OFFERINGS, MACHINE_TYPES] {
        manager.list(&kind, "").await.expect("it reads the catalog");
    }
    let refused = [
        code(manager.patch(&CONFIGS, "", samples::PROVIDER_CONFIG, &json!({ "spec": { "pollInterval": "Off" } })).await),
        code(manager.patch(&EXPORTS, "", export::EXPORT, &json!({ "spec": { "permissionClaims": [] } })).await),
        code(manager.get(&SECRETS, rbac::MANAGER_NAMESPACE, "kcm-token").await),
        code(manager.get(&EXPORTS, "", "another").await),
    ];
    assert_eq!(refused, [Some(403); 4]);
}

#[tokio::test]
async fn a_workspace_of_the_type_has_the_kinds_and_each_door_from_the_start() {
    let setup = Setup::new().await;
    setup.init(Some("otc"), false).await;
    let kcp = support::kcp().await;
    let workspaces = Resource::new("tenancy.kcp.io", "v1alpha1", "workspaces");
    let name = format!("typed-{}", setup.platform.workspace.logical_cluster);
    let workspace = json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": name },
        "spec": { "type": { "name": binding::WORKSPACE_TYPE, "path": setup.platform.connection.path } },
    });
    answered("a workspace of the type", async || kcp.admin.create(&workspaces, "", &workspace).await).await;
    let is_ready = |workspace: &Value| workspace["status"]["phase"] == "Ready";
    let ready = kcp.admin.wait_for(&workspaces, "", &name, "to be Ready", 2 * SOON, is_ready).await.unwrap();
    let inside = kcp.admin.in_workspace(ready["spec"]["cluster"].as_str().unwrap()).unwrap();
    let mut accepted: Vec<(String, Vec<bool>)> = Vec::new();
    for binding in inside.list(&BINDINGS, "").await.unwrap() {
        let export = binding["spec"]["reference"]["export"]["name"].as_str().unwrap_or_default().to_owned();
        let claims = binding["spec"]["permissionClaims"].as_array().cloned().unwrap_or_default();
        if export.ends_with("edge-connect.eu") {
            accepted.push((export, claims.iter().map(|claim| claim["state"] == "Accepted").collect()));
        }
    }
    accepted.sort();
    let expected = [(export::EXPORT.to_owned(), vec![true; 2]), ("otc.provider.kubernetes.edge-connect.eu".to_owned(), vec![true; 4])];
    assert_eq!(accepted, expected);
}

#[tokio::test]
async fn a_providers_door_lets_its_controller_report_and_nothing_else() {
    let setup = Setup::new().await;
    let tenant = setup.tenant().await;
    let report = setup.init(Some("otc"), false).await;
    let door = report.identity.export.clone();
    setup.platform.bind_door(&tenant, "otc").await;
    let manager = setup.identity(&setup.init(None, false).await).await;
    let runtime = setup.through(&manager, export::EXPORT, &tenant).await;
    let controller = setup.identity(&report).await;
    let provider = setup.through(&controller, &door, &tenant).await;
    let own = tenant.client();
    let demo = answered("a cluster", async || own.create(&CLUSTERS, "default", &cluster("demo")).await).await;
    answered("the projection", async || runtime.create(&PROJECTIONS, "default", &projection(&demo)).await).await;
    own.create(&PROVIDERS, "", &samples::tenant()[0]).await.unwrap();
    own.create(&SECRETS, "default", &json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "otc-account" } })).await.unwrap();

    let status = PROJECTIONS.subresource("status");
    let ready = json!({ "status": { "ready": true, "observedGeneration": 1 } });
    answered("the provider's status", async || provider.patch(&status, "default", "demo", &ready).await).await;
    assert_eq!(own.get(&PROJECTIONS, "default", "demo").await.unwrap()["status"]["ready"], true);
    let finalizer = json!({ "metadata": { "finalizers": ["otc.example.org/machines"] } });
    provider.patch(&PROJECTIONS, "default", "demo", &finalizer).await.expect("a provider keeps what it has to clean up");
    provider.patch(&PROJECTIONS, "default", "demo", &json!({ "metadata": { "finalizers": null } })).await.unwrap();
    answered("the Provider", async || provider.get(&PROVIDERS, "", "otc").await).await;
    answered("the account", async || provider.get(&SECRETS, "default", "otc-account").await).await;

    let mut another = projection(&demo);
    another["metadata"]["name"] = "another".into();
    assert_eq!(code(provider.create(&PROJECTIONS, "default", &another).await), Some(403), "it creates no projection");
    assert!(provider.delete(&PROJECTIONS, "default", "demo").await.unwrap_err().is_forbidden(), "and deletes none");
    assert!(provider.list(&SECRETS, "default").await.unwrap_err().is_forbidden(), "it reads Secrets by name only");
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "planted" } });
    assert_eq!(code(provider.create(&SECRETS, "default", &secret).await), Some(403), "it makes none, though it makes events");
    assert!(provider.get(&CLUSTERS, "default", "demo").await.is_err(), "the tenant's kind is behind another door");
}

#[tokio::test]
async fn an_account_of_a_providers_name_in_a_tenants_workspace_gains_nothing() {
    let setup = Setup::new().await;
    let tenant = setup.tenant().await;
    let report = setup.init(Some("otc"), false).await;
    let manager = setup.identity(&setup.init(None, false).await).await;
    let runtime = setup.through(&manager, export::EXPORT, &tenant).await;
    let own = tenant.client();
    let demo = answered("a cluster", async || own.create(&CLUSTERS, "default", &cluster("demo")).await).await;
    answered("the projection", async || runtime.create(&PROJECTIONS, "default", &projection(&demo)).await).await;

    // The policy's grant names a user by namespace and name, and a tenant can make an account of that name.
    let identity = &report.identity;
    let namespaces = Resource::new("", "v1", "namespaces");
    own.create(&namespaces, "", &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": identity.namespace } }))
        .await
        .unwrap();
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": identity.account } });
    own.create(&Resource::new("", "v1", "serviceaccounts"), &identity.namespace, &account).await.unwrap();
    let admin = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "mine" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "namespace": identity.namespace, "name": identity.account }],
    });
    own.create(&Resource::new("rbac.authorization.k8s.io", "v1", "clusterrolebindings"), "", &admin).await.unwrap();
    let tokens = Resource::new("", "v1", "serviceaccounts").subresource("token");
    let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
    let token = own.create_in(&tokens, &identity.namespace, &identity.account, &request).await.unwrap();
    let impostor = own.as_bearer(token["status"]["token"].as_str().unwrap().to_owned().into()).unwrap();
    answered("its own workspace is open to it", async || impostor.list(&CLUSTERS, "default").await).await;
    let ready = json!({ "status": { "ready": true } });
    assert_eq!(code(impostor.patch(&PROJECTIONS.subresource("status"), "default", "demo", &ready).await), Some(403));
}
