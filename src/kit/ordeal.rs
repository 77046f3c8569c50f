//! What goes wrong in a world, and how one begins where another was.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;

use crate::api::names::LogicalCluster;
use crate::embedded::Snapshot;

use super::client::Client;
use super::faults::{Brittle, Chaos, Faults, Plan, Site, Target};
use super::journal::Sent;
use super::trial::Disturb;
use super::workspace::Workspace;
use super::world::{Export, PROVIDER, Shared, World};

/// A world before any runtime is in it, kept for any number of worlds that begin from it.
pub(super) struct Image {
    pub(super) snapshot: Snapshot,
    export: Export,
    workspaces: BTreeMap<String, LogicalCluster>,
    seed: u64,
}

/// What of a world can be changed while its story goes on, by a disturbance.
#[derive(Clone)]
pub struct Stage(Arc<Shared>);

impl Stage {
    /// A workspace that was made before.
    ///
    /// # Panics
    /// When there is none of this name.
    pub fn tenant(&self, name: &str) -> Workspace {
        self.0.tenant(name).unwrap_or_else(|| panic!("no workspace {name} was made"))
    }

    /// The provider workspace.
    pub fn provider(&self) -> Workspace {
        self.tenant(PROVIDER)
    }

    /// The administrator of the server, below no workspace.
    pub fn client(&self) -> Client {
        Client::new(self.0.control_plane.clone(), "")
    }
}

/// Puts faults into reconcilers. Cheap to clone.
#[derive(Clone)]
pub struct Seam(Faults);

impl Seam {
    /// A reconciler that fails where the world's faults say so.
    pub fn brittle<R>(&self, reconciler: R) -> Brittle<R> {
        Brittle::new(reconciler, self.0.clone())
    }
}

impl World {
    /// A workspace that was made before, in this world or in the one that it began from.
    ///
    /// # Panics
    /// When there is none of this name.
    pub fn tenant(&self, name: &str) -> Workspace {
        self.shared.tenant(name).unwrap_or_else(|| panic!("no workspace {name} was made"))
    }

    /// Changes something in every workspace, and changes it back: what is stale then is not from before the world was ready.
    pub(super) async fn age(&self) {
        const PLACE: &str = "/api/v1/namespaces/default/configmaps";
        let names: Vec<String> = self.shared.workspaces.lock().keys().cloned().collect();
        for tenant in names.iter().map(|name| self.tenant(name)) {
            tenant.client.create(PLACE, &json!({"metadata": {"name": "aged"}})).await;
            for times in 0..4 {
                tenant.client.merge(&format!("{PLACE}/aged"), &json!({"data": {"times": times.to_string()}})).await;
            }
            tenant.client.delete(&format!("{PLACE}/aged")).await;
        }
    }

    /// What it is now, for worlds that begin from it. Runtimes are no part of it.
    pub(super) fn image(&self) -> Image {
        let Shared { control_plane, export, workspaces, seed, .. } = &*self.shared;
        Image {
            snapshot: control_plane.snapshot(),
            export: export.lock().clone(),
            workspaces: workspaces.lock().clone(),
            seed: seed.load(Ordering::Relaxed),
        }
    }

    pub(super) fn from(image: &Image) -> Self {
        let Image { snapshot, export, workspaces, seed } = image;
        let (control_plane, started) = (snapshot.start(), snapshot.now());
        let (shared, listening) = Shared::new(control_plane, *seed, started, export.clone(), workspaces.clone());
        let provider = shared.tenant(PROVIDER).unwrap_or_else(|| unreachable!("each world has its provider workspace"));
        Self { shared, provider, _listening: listening }
    }

    /// What is drawn in this world is drawn from it.
    pub fn seed(&self) -> u64 {
        self.shared.seed.load(Ordering::Relaxed)
    }

    pub(super) fn draw_from(&self, seed: u64) {
        self.shared.seed.store(seed, Ordering::Relaxed);
    }

    /// Ends every runtime where it stands, as SIGKILL does; each is started anew a second later.
    pub fn crash(&self) {
        self.shared.stirred();
        self.shared.runs.crash();
    }

    /// Tells whenever every runtime was ended so, by whomever, before anything else happens.
    pub fn on_crash(&self, tell: impl Fn() + Send + 'static) {
        self.shared.runs.on_crash(tell);
    }

    /// How often every runtime was ended so.
    pub fn crashes(&self) -> u64 {
        self.shared.runs.crashes()
    }

    /// With what reconcilers are made to fail where faults say so; [`World::serve`] does so itself.
    pub fn seam(&self) -> Seam {
        Seam(self.shared.faults.clone())
    }

    /// Lets faults strike at these places from now on. Requests and calls are counted from the world's beginning.
    pub fn suffer(&self, plan: &Plan) {
        self.shared.faults.follow(plan);
    }

    /// Lets faults strike at random.
    pub fn let_loose(&self, chaos: Chaos) {
        self.shared.faults.let_loose(chaos);
    }

    /// Nobody reaches the virtual workspaces of a shard for a while; shards are counted from 0. Its streams end.
    pub fn cut_off(&self, shard: usize, lasts: Duration) {
        self.shared.faults.cut_off(shard, lasts);
        self.control_plane().close_watches();
    }

    /// What clocks of processes that start from now on are ahead of the world's, or behind it: a machine with a wrong clock.
    pub fn skew(&self, by: SignedDuration) {
        self.shared.runs.skew(by);
    }

    /// Ends all faults, those too that last.
    pub fn cease(&self) {
        self.shared.faults.cease();
    }

    /// The faults that have struck, as a plan that can be [`suffered`](Self::suffer).
    pub fn suffered(&self) -> Plan {
        self.shared.faults.struck()
    }

    /// Equal for worlds in which runtimes asked the same at the same times and were answered the same, in every process.
    pub fn digest(&self) -> u64 {
        self.shared.journal.digest()
    }

    /// The requests without their bodies.
    pub(super) fn heads(&self) -> Vec<Sent> {
        self.shared.journal.heads()
    }

    pub(super) fn survey(&self) {
        self.shared.faults.survey();
    }

    pub(super) fn places(&self) -> Vec<(Site, Target)> {
        self.shared.faults.places()
    }

    pub(super) fn disturb_by(&self, disturbances: Vec<Disturb>) {
        let shared = Arc::downgrade(&self.shared);
        self.shared.faults.disturb_by(move |which| {
            if let (Some(disturb), Some(shared)) = (disturbances.get(which), shared.upgrade()) {
                drop(tokio::spawn(disturb(Stage(shared))));
            }
        });
    }
}
