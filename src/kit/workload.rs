//! Workload clusters of a world: control planes of their own, or its own workspaces, reached by kubeconfigs as real ones are.

use std::collections::BTreeMap;
use std::panic::Location;

use serde_json::{Value, json};

use crate::api::manifest::rbac::MANAGER_NAMESPACE;
use crate::api::names::LogicalCluster;
use crate::embedded::{ADMIN, ControlPlane, Options as Profile};
use crate::runtime::Wire;

use super::client::Client;
use super::faults::Tap;
use super::workspace::Workspace;
use super::world::{Shared, World};

impl World {
    /// A workload cluster for reconcilers that ask for one: a control plane of its own, and a Secret of this name in the pool. Call it before
    /// [`World::serve`], for a runtime that runs already knows no way there; what is asked of it counts among [`World::requests`].
    #[track_caller]
    pub fn workload_cluster(&self, name: &str) -> impl Future<Output = Workspace> {
        let place = Location::caller();
        let url = format!("https://{name}.invalid:6443");
        let control_plane = ControlPlane::new(Profile { started: self.shared.now(), url, ..Profile::default() });
        self.shared.others.lock().push(control_plane.clone());
        let cluster = Workspace {
            shared: self.shared.clone(),
            name: name.to_owned(),
            logical_cluster: LogicalCluster::new("root"),
            client: Client::new(control_plane, "/clusters/root"),
        };
        async move {
            self.provider.pool_at(place, name, &cluster.kubeconfig(ADMIN)).await;
            cluster
        }
    }

    /// A way to a control plane: what goes there is written down, and goes wrong where it is told to.
    pub(super) fn wire(&self, control_plane: &ControlPlane) -> Wire {
        let Shared { journal, faults, runs, .. } = &*self.shared;
        Wire::new(Tap { control_plane: control_plane.clone(), journal: journal.clone(), faults: faults.clone(), runs: runs.downgrade() })
    }

    /// Where kubeconfigs lead: to the world itself, and to its workload clusters.
    pub(super) fn wires(&self) -> BTreeMap<String, Wire> {
        let others = self.shared.others.lock();
        let all = std::iter::once(&self.shared.control_plane).chain(others.iter());
        all.map(|control_plane| (control_plane.url(), self.wire(control_plane))).collect()
    }
}

impl Workspace {
    /// A kubeconfig of whoever has this bearer token, for what runs in this process.
    pub fn kubeconfig(&self, token: &str) -> String {
        let server = self.client.url();
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {"server": server}}],
            "users": [{"name": "it", "user": {"token": token}}],
        });
        text.to_string()
    }

    /// Puts a kubeconfig into the pool of workload clusters, as a Secret of this name, or changes the one that is there: in the provider
    /// workspace, whose [`Workspace`] this must be.
    #[track_caller]
    pub fn pool<'a>(&'a self, name: &'a str, kubeconfig: &'a str) -> impl Future<Output = ()> + 'a {
        let place = Location::caller();
        self.pool_at(place, name, kubeconfig)
    }

    async fn pool_at(&self, place: &Location<'static>, name: &str, kubeconfig: &str) {
        let namespace: Value = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MANAGER_NAMESPACE}});
        self.apply_at(place, namespace).await;
        let labels = json!({"runtime.edge-connect.eu/workload-purpose": "workload"});
        let metadata = json!({"name": name, "namespace": MANAGER_NAMESPACE, "labels": labels});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"kubeconfig": kubeconfig}});
        self.apply_at(place, secret).await;
    }
}
