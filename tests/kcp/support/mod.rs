//! The kcp that the tests of this process share, and workspaces in it.

pub(crate) mod expect;
pub(crate) mod platform;
pub(crate) mod provider;
pub(crate) mod proxy;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use kcp_provider_runtime::api::names::LogicalCluster;
use kcp_provider_runtime::cli::kcp_admin::AdminClient;

use crate::backend;

/// A handle on the shared kcp: where it is and who its administrator is.
#[derive(Clone, Debug)]
pub(crate) struct Kcp {
    /// The administrator, in the workspace `root`.
    pub(crate) admin: AdminClient,
}

/// A workspace that one test made.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    /// Its key.
    pub(crate) logical_cluster: LogicalCluster,
    client: AdminClient,
}

impl Workspace {
    /// A workspace that is there already, for whom this client speaks.
    pub(crate) fn of(client: &AdminClient, logical_cluster: LogicalCluster) -> Self {
        let client = client.in_workspace(logical_cluster.as_str()).expect("a logical cluster makes a URL");
        Self { logical_cluster, client }
    }

    /// The administrator in this workspace.
    pub(crate) fn client(&self) -> &AdminClient {
        &self.client
    }
}

impl Kcp {
    /// A fresh workspace below `root`, Ready; its name starts with `purpose` and no other test has it.
    pub(crate) async fn workspace(&self, purpose: &str) -> Workspace {
        self.workspace_in("root", purpose).await
    }

    /// The same, below another workspace.
    pub(crate) async fn workspace_below(&self, parent: &Workspace, purpose: &str) -> Workspace {
        self.workspace_in(parent.logical_cluster.as_str(), purpose).await
    }

    async fn workspace_in(&self, parent: &str, purpose: &str) -> Workspace {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        // The process is part of the name, since a kcp that is reused has the workspaces of earlier runs.
        let name = format!("{purpose}-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let logical_cluster = self.admin.create_workspace(parent, &name).await.expect("a fresh workspace");
        Workspace::of(&self.admin, logical_cluster)
    }
}

/// The shared kcp, which the first caller starts. Which one it is, is the test target's choice: its module `backend` starts it.
pub(crate) async fn kcp() -> Kcp {
    static KCP: OnceLock<Result<Kcp, String>> = OnceLock::new();
    let started = tokio::task::spawn_blocking(|| KCP.get_or_init(backend::start).clone()).await.expect("starting kcp does not panic");
    let kcp = started.unwrap_or_else(|problem| panic!("no kcp to test with: {problem}"));
    // A client's connections live on the runtime that made it, and each test has one of its own.
    Kcp { admin: kcp.admin.in_workspace("root").expect("a path makes a URL") }
}
