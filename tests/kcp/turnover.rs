//! Many workspaces come and go: nothing of them stays in the manager, and a reconciler hears of each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::StreamExt as _;
use kcp_provider_runtime::api::manifest::export;
use kcp_provider_runtime::api::tenant::KubernetesCluster;
use kcp_provider_runtime::kcm::{Readiness, Scheduler};
use kcp_provider_runtime::reconciler::{self, Actor, CallError, Context, Deletion, Inputs, Reconciler, Report};
use kcp_provider_runtime::runtime::{Handle, Options, Runtime};

use crate::support::platform::{BINDINGS, Platform, SOON, Tenant, eventually};
use crate::support::{Workspace, kcp};

const MANY: usize = 40;
/// Workspaces that are made at once: more of them make kcp no faster.
const AT_ONCE: usize = 4;

/// What was heard of each workspace, in order.
type Heard = Arc<Mutex<BTreeMap<String, Vec<&'static str>>>>;

/// Owns no cluster, and listens to who binds and unbinds.
struct Clerk(Heard);

impl Clerk {
    fn new(inputs: &mut Inputs<KubernetesCluster>, heard: Heard) -> Self {
        inputs.only(|_| false);
        Self(heard)
    }

    fn hear(&self, workspace: &reconciler::Workspace, what: &'static str) {
        self.0.lock().unwrap().entry(workspace.logical_cluster.to_string()).or_default().push(what);
    }
}

#[async_trait]
impl Reconciler for Clerk {
    type Object = KubernetesCluster;
    type Config = ();
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "clerk", finalizer: None, conditions: &["Heard"] }
    }

    async fn create_or_update(&self, _: &Context<()>, _: &KubernetesCluster) -> Result<Report, CallError> {
        Ok(Report::new(()))
    }

    async fn delete(&self, _: &Context<()>, _: &KubernetesCluster) -> Result<Deletion, CallError> {
        Ok(Deletion::Done)
    }

    async fn bound(&self, workspace: &reconciler::Workspace) {
        self.hear(workspace, "bound");
    }

    async fn unbound(&self, workspace: &reconciler::Workspace) {
        self.hear(workspace, "unbound");
    }
}

/// A manager on a thread of its own, whose tasks are its alone.
struct Apart {
    handle: Handle,
    own: Option<tokio::runtime::Runtime>,
}

impl Apart {
    async fn start(options: Options, heard: Heard) -> Self {
        let own = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let runtime = Runtime::new(options).serve(Scheduler::new).serve(Readiness::new).serve(|inputs| Clerk::new(inputs, heard));
        let mut handle = runtime.handle();
        drop(own.spawn(runtime.run()));
        tokio::time::timeout(SOON, handle.ready()).await.unwrap();
        Self { handle, own: Some(own) }
    }

    fn tasks(&self) -> usize {
        self.own.as_ref().map_or(0, |own| own.metrics().num_alive_tasks())
    }

    fn series(&self) -> usize {
        self.handle.metrics().text().lines().filter(|line| !line.starts_with('#')).count()
    }

    async fn serves(&self, workspaces: usize) {
        let line = format!("kcp_provider_workspaces {workspaces}");
        let statement = format!("the manager knows {workspaces} workspaces");
        eventually(&statement, async || self.handle.metrics().text().lines().any(|found| found == line)).await;
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.handle.stop();
        // A runtime must not be waited for where another one runs.
        self.own.take().unwrap().shutdown_background();
    }
}

#[tokio::test]
async fn forty_workspaces_that_bind_and_unbind_leave_nothing_behind_and_are_heard_of() {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let heard = Heard::default();
    let manager = Apart::start(platform.options().await, heard.clone()).await;
    // One stays, and has had what the others have and more: what is made once for all is there.
    let resident: Tenant = platform.tenant().await;
    resident.provider("otc").await;
    resident.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    resident.scheduled("demo").await;
    let workspaces: Vec<Workspace> =
        futures::stream::iter(0..MANY).map(|_| async { kcp().await.workspace("guest").await }).buffer_unordered(AT_ONCE).collect().await;
    manager.serves(1).await;
    let (tasks, series) = (manager.tasks(), manager.series());

    for workspace in &workspaces {
        platform.bind(workspace).await;
    }
    manager.serves(1 + MANY).await;
    assert!(manager.series() <= series, "{}", manager.handle.metrics().text());
    // By connections of their own: one that has been idle since it bound may be given up in the moment it is used.
    let admin = kcp().await.admin;
    for workspace in &workspaces {
        let again = Workspace::of(&admin, workspace.logical_cluster.clone());
        again.client().delete(&BINDINGS, "", export::EXPORT).await.unwrap();
    }
    manager.serves(1).await;

    // A connection that nobody needs any more is given up after a minute.
    eventually("as many tasks as at the start", async || manager.tasks() <= tasks).await;
    assert!(manager.series() <= series, "{}", manager.handle.metrics().text());
    let all = |workspace: &Workspace| heard.lock().unwrap().get(workspace.logical_cluster.as_str()).cloned().unwrap_or_default();
    eventually("each is heard of", async || workspaces.iter().all(|workspace| all(workspace) == ["bound", "unbound"])).await;
    assert_eq!(all(&resident.workspace), ["bound"]);

    // Who leaves last takes the shard's endpoint along, which may be told of first.
    let last = Workspace::of(&admin, resident.workspace.logical_cluster.clone());
    last.client().delete(&BINDINGS, "", export::EXPORT).await.unwrap();
    eventually("the last one is heard of", async || all(&resident.workspace) == ["bound", "unbound"]).await;
}
