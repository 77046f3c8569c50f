//! A platform to test on: a provider workspace with a catalog, the manager as the identity that `init` issued, and tenants.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use kcp_provider_runtime::api::manifest::door::Door;
use kcp_provider_runtime::api::manifest::{binding, export};
use kcp_provider_runtime::cli::connect::{ConnectArgs, Connection};
use kcp_provider_runtime::cli::init::{self, Options, Report, identity};
use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use kcp_provider_runtime::kcm::{Readiness, Scheduler};
use kcp_provider_runtime::runtime::{self, Credentials, Handle, RunError, Runtime};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{Workspace, kcp};

pub(crate) const CLUSTERS: Resource = Resource::new("kubernetes.edge-connect.eu", "v1alpha1", "kubernetesclusters");
pub(crate) const PROJECTIONS: Resource = Resource::new("provider.kubernetes.edge-connect.eu", "v1alpha1", "kubernetesclusters");
pub(crate) const PROVIDERS: Resource = Resource::new("provider.edge-connect.eu", "v1alpha1", "providers");
pub(crate) const CONFIGS: Resource = Resource::new("config.edge-connect.eu", "v1alpha1", "providerconfigs");
pub(crate) const OFFERINGS: Resource = Resource::new("provider.kubernetes.edge-connect.eu", "v1alpha1", "kubernetesclusterofferings");
pub(crate) const MACHINE_TYPES: Resource = Resource::new("provider.edge-connect.eu", "v1alpha1", "virtualmachinetypes");
pub(crate) const BINDINGS: Resource = Resource::new("apis.kcp.io", "v1alpha2", "apibindings");
pub(crate) const EXPORTS: Resource = Resource::new("apis.kcp.io", "v1alpha2", "apiexports");

/// Bindings, deletions and RBAC take seconds on a busy machine; what is bounded more tightly is timed by the test itself.
pub(crate) const SOON: Duration = Duration::from_secs(90);

/// A provider workspace, set up by `init`.
pub(crate) struct Platform {
    pub(crate) workspace: Workspace,
    pub(crate) connection: Connection,
    pub(crate) report: Report,
    folder: tempfile::TempDir,
}

impl Platform {
    /// A fresh provider workspace with nothing in its catalog.
    pub(crate) async fn new() -> Self {
        let workspace = kcp().await.workspace("provider").await;
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("admin.kubeconfig");
        workspace.client().write_kubeconfig(&kubeconfig).unwrap();
        let connection = ConnectArgs { kubeconfig: Some(kubeconfig), workspace: None }.connect().await.unwrap();
        let options = Options { connection: connection.clone(), provider: None, manage_exports: false, dry_run: false };
        let report = init::init(&options).await.unwrap();
        Self { workspace, connection, report, folder }
    }

    /// A folder that lives as long as the platform; `admin.kubeconfig` in it is the administrator's.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// The path of a workspace, as its administrator reads it.
    pub(crate) async fn path_of(&self, workspace: &Workspace) -> String {
        let file = self.folder().join(format!("{}.kubeconfig", workspace.logical_cluster));
        workspace.client().write_kubeconfig(&file).unwrap();
        ConnectArgs { kubeconfig: Some(file), workspace: None }.connect().await.unwrap().path
    }

    /// The administrator in the provider workspace.
    pub(crate) fn client(&self) -> &AdminClient {
        self.workspace.client()
    }

    /// Adds or changes a machine type.
    pub(crate) async fn machine_type(&self, name: &str, cpu: &str, memory: &str, regions: &[&str]) {
        let spec = json!({"providerMachineType": format!("{name}.flavor"), "cpu": cpu, "memory": memory, "availableRegions": regions});
        self.put(&MACHINE_TYPES, "VirtualMachineType", name, spec).await;
    }

    /// Adds or changes an offering.
    pub(crate) async fn offering(&self, name: &str, provider: &str, regions: &[&str], versions: &[&str], types: &[&str]) {
        let spec = json!({"providerRef": {"name": provider}, "availableRegions": regions, "availableVersions": versions,
            "availableVirtualMachineTypes": types});
        self.put(&OFFERINGS, "KubernetesClusterOffering", name, spec).await;
    }

    /// The catalog that most tests start from: otc in eu-de with 1.34.2, types m-4-16 and m-8-32.
    pub(crate) async fn small_catalog(&self) {
        self.machine_type("m-4-16", "4", "16Gi", &["eu-de"]).await;
        self.machine_type("m-8-32", "8", "32Gi", &["eu-de"]).await;
        self.offering("otc-standard", "otc", &["eu-de"], &["1.34.2"], &["m-4-16", "m-8-32"]).await;
    }

    /// Creates or merges an object of the provider workspace.
    pub(crate) async fn put(&self, resource: &Resource, kind: &str, name: &str, spec: Value) {
        let body = json!({"apiVersion": resource.api_version(), "kind": kind, "metadata": {"name": name}, "spec": spec});
        match self.client().find(resource, "", name).await.unwrap() {
            Some(_) => drop(self.client().patch(resource, "", name, &json!({"spec": body["spec"]})).await.unwrap()),
            None => drop(self.client().create(resource, "", &body).await.unwrap()),
        }
    }

    /// The kubeconfig of the identity that `init` issued for the manager.
    pub(crate) async fn identity(&self) -> PathBuf {
        let file = self.folder.path().join("kcm.kubeconfig");
        identity::write_kubeconfig(&self.connection, &self.report.identity, &file).await.unwrap();
        file
    }

    /// What the manager runs with.
    pub(crate) async fn options(&self) -> runtime::Options {
        let credentials = Credentials::File(self.identity().await);
        gently(runtime::Options::new(credentials, export::EXPORT).with_workspace(self.connection.path.clone()))
    }

    /// What a provider's controller runs with: its own identity at its own door, which is set up here.
    pub(crate) async fn door(&self, provider: &str) -> runtime::Options {
        let options =
            Options { connection: self.connection.clone(), provider: Some(provider.into()), manage_exports: false, dry_run: false };
        let report = init::init(&options).await.unwrap();
        let file = self.folder.path().join(format!("{provider}.kubeconfig"));
        identity::write_kubeconfig(&self.connection, &report.identity, &file).await.unwrap();
        gently(runtime::Options::new(Credentials::File(file), report.identity.export).with_workspace(self.connection.path.clone()))
    }

    /// The export of a provider's door.
    pub(crate) fn door_export(provider: &str) -> String {
        Door::new(provider, "").unwrap().export_name()
    }

    /// Lets a provider into a workspace.
    pub(crate) async fn bind_door(&self, tenant: &Workspace, provider: &str) {
        self.bind_export(tenant, &Self::door_export(provider)).await;
    }

    /// A running manager with the default settings, ready.
    pub(crate) async fn manager(&self) -> Manager {
        Manager::start(self.options().await, None).await
    }

    /// A fresh workspace that has bound the export, its kinds served.
    pub(crate) async fn tenant(&self) -> Tenant {
        let tenant = Tenant { workspace: kcp().await.workspace("tenant").await };
        self.bind(&tenant.workspace).await;
        tenant.served().await;
        tenant
    }

    /// Binds the export with everything that it claims.
    pub(crate) async fn bind(&self, tenant: &Workspace) {
        self.bind_export(tenant, export::EXPORT).await;
    }

    async fn bind_export(&self, tenant: &Workspace, export: &str) {
        let live = self.client().get(&EXPORTS, "", export).await.unwrap();
        let claims = live["spec"]["permissionClaims"].as_array().cloned().unwrap();
        let binding = binding::binding(&self.connection.path, export, &claims);
        tenant.client().create(&BINDINGS, "", &binding).await.unwrap();
    }
}

/// A platform with the small catalog, a running manager, and a tenant who can pay for otc.
pub(crate) async fn served() -> (Platform, Manager, Tenant) {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let manager = platform.manager().await;
    let tenant = platform.tenant().await;
    tenant.provider("otc").await;
    (platform, manager, tenant)
}

/// The manager in this process; dropped, it stops.
pub(crate) struct Manager {
    pub(crate) handle: Handle,
    task: JoinHandle<Result<(), RunError>>,
}

impl Manager {
    /// Starts it and waits until it is ready.
    pub(crate) async fn start(options: runtime::Options, requeue: Option<Duration>) -> Self {
        let mut manager = Self::start_unready(options, requeue);
        tokio::time::timeout(SOON, manager.handle.ready())
            .await
            .unwrap_or_else(|_| panic!("the manager is not ready: {:?}", manager.handle.missing()));
        manager
    }

    /// Starts it.
    pub(crate) fn start_unready(options: runtime::Options, requeue: Option<Duration>) -> Self {
        let _ = tracing_subscriber::fmt().with_test_writer().with_env_filter("warn,kcp_provider_runtime=info").try_init();
        let runtime = Runtime::new(options).serve(move |inputs| Scheduler::new(inputs).with_requeue(requeue)).serve(Readiness::new);
        let handle = runtime.handle();
        let task = tokio::spawn(runtime.run());
        Self { handle, task }
    }

    /// Stops it and waits for its end.
    pub(crate) async fn stop(self) {
        self.handle.stop();
        let mut task = self.task;
        (&mut task).await.unwrap().unwrap();
    }
}

/// A tenant's workspace.
pub(crate) struct Tenant {
    pub(crate) workspace: Workspace,
}

impl Tenant {
    /// The administrator in the tenant's workspace.
    pub(crate) fn client(&self) -> &AdminClient {
        self.workspace.client()
    }

    /// Waits until the bound kinds are served here.
    pub(crate) async fn served(&self) {
        let bound = |binding: &Value| binding["status"]["phase"] == "Bound";
        self.client().wait_for(&BINDINGS, "", export::EXPORT, "to be Bound", SOON, bound).await.unwrap();
        for kind in [&CLUSTERS, &PROJECTIONS, &PROVIDERS] {
            eventually("the kind is served", async || self.client().list(kind, "").await.is_ok()).await;
        }
    }

    /// Says that this tenant can pay for a provider.
    pub(crate) async fn provider(&self, name: &str) {
        let body = json!({"apiVersion": PROVIDERS.api_version(), "kind": "Provider", "metadata": {"name": name},
            "spec": {"credentialsSecretRef": {"namespace": "default", "name": "account"}}});
        self.client().create(&PROVIDERS, "", &body).await.unwrap();
    }

    /// Orders a cluster with one pool `workers` of 3 nodes.
    pub(crate) async fn order(&self, name: &str, region: &str, version: &str, cpu: &str, memory: &str) -> Value {
        let pool = json!({"name": "workers", "replicas": 3, "capabilities": {"cpu": cpu, "memory": memory}});
        self.order_spec(name, json!({"region": region, "version": version, "nodePools": [pool]})).await
    }

    /// Orders a cluster.
    pub(crate) async fn order_spec(&self, name: &str, spec: Value) -> Value {
        let body = json!({"apiVersion": CLUSTERS.api_version(), "kind": "KubernetesCluster",
            "metadata": {"name": name, "namespace": "default"}, "spec": spec});
        self.client().create(&CLUSTERS, "default", &body).await.unwrap()
    }

    /// The cluster as it is.
    pub(crate) async fn cluster(&self, name: &str) -> Value {
        self.client().get(&CLUSTERS, "default", name).await.unwrap()
    }

    /// The projection as it is.
    pub(crate) async fn projection(&self, name: &str) -> Option<Value> {
        self.client().find(&PROJECTIONS, "default", name).await.unwrap()
    }

    /// Waits until a condition of the cluster has this status and reason for the current generation, and returns the cluster.
    pub(crate) async fn wait(&self, name: &str, type_: &str, status: &str, reason: &str) -> Value {
        let what = format!("to have {type_}={status} ({reason})");
        let holds = |cluster: &Value| {
            condition(cluster, type_).is_some_and(|found| {
                found["status"] == status && found["reason"] == reason && found["observedGeneration"] == cluster["metadata"]["generation"]
            })
        };
        self.client().wait_for(&CLUSTERS, "default", name, &what, SOON, holds).await.unwrap()
    }

    /// Waits until the cluster is scheduled and its projection in sync.
    pub(crate) async fn scheduled(&self, name: &str) -> Value {
        self.wait(name, "Scheduled", "True", "Scheduled").await;
        self.wait(name, "Projected", "True", "InSync").await
    }

    /// Reports for the provider, as the administrator: the projection is ready, or not, at its current generation.
    pub(crate) async fn report(&self, admin: &AdminClient, name: &str, ready: bool, message: &str) {
        let projection = self.projection(name).await.expect("a projection to report on");
        let generation = projection["metadata"]["generation"].clone();
        let condition = json!({"type": "Ready", "status": if ready { "True" } else { "False" }, "reason": if ready { "Up" } else { "Building" },
            "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": generation});
        let body = json!({"status": {"ready": ready, "observedGeneration": generation, "conditions": [condition]}});
        admin.patch(&PROJECTIONS.subresource("status"), "default", name, &body).await.unwrap();
    }
}

/// kcp v0.28 can crash on concurrent requests of one `ServiceAccount` through a virtual workspace (kcp#3855): one at a time.
pub(crate) fn gently(options: runtime::Options) -> runtime::Options {
    runtime::Options { requests: 1, ..options }
}

/// A condition of an object, by type.
pub(crate) fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}

/// Asks again until it holds; fails with the statement when it does not within [`SOON`].
pub(crate) async fn eventually(statement: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    let mut pause = tokio::time::interval(Duration::from_millis(200));
    while !holds().await {
        assert!(began.elapsed() < SOON, "not within {} s: {statement}", SOON.as_secs());
        pause.tick().await;
    }
}
