//! Pure: the endpoint URLs of the slice, and which workspaces are bound behind each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use crate::api::kcp::{Binding, EndpointSlice};
use crate::api::names::LogicalCluster;
use crate::reconciler::Workspace;
use crate::runtime::clock::Moment;
use crate::runtime::queue::Class;
use crate::runtime::raw::Raw;
use crate::runtime::watch::orders::Order;

use super::streams::{Role, ShardId, StreamId};
use super::{Core, Effect};

/// How long the objects of an endpoint that left the slice are kept: the slice may be empty for a moment, and a workspace may move to another.
const GRACE: Duration = Duration::from_secs(30);

/// How long after it left an endpoint is asked who is bound there, where it does not answer: longer than most outages, and not for ever, since the
/// shard may be gone for good.
const LAST_WORD: Duration = Duration::from_hours(1);

/// Workspaces that are remembered as torn away from their objects: most of them never bind again.
const MAX_TORN: usize = 1024;

/// What is known of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bond {
    bound: bool,
    /// The claims that are granted, as text; only where a reconciler asks for access.
    granted: Box<str>,
}

/// The endpoints of the slice and those that left it within the grace, and who is bound behind them.
#[derive(Debug, Default)]
pub(super) struct Shards {
    /// Whether a slice was ever seen: without one there is nothing to serve, which is not the same as a slice without endpoints.
    has_slice: bool,
    urls: BTreeMap<ShardId, Arc<str>>,
    last: u32,
    live: BTreeSet<ShardId>,
    leaving: BTreeMap<ShardId, Duration>,
    /// Endpoints whose grace is over and whose roster has not had its last word: until when that is waited for.
    parted: BTreeMap<ShardId, Duration>,
    /// The bindings of each workspace by name: one that never was bound may be deleted beside the one that counts.
    roster: BTreeMap<(ShardId, LogicalCluster), BTreeMap<Arc<str>, Bond>>,
    /// Workspaces that unbound while objects of theirs were seen: a new binding may adopt those, of which no watch would tell.
    torn: BTreeSet<(ShardId, LogicalCluster)>,
}

impl Shards {
    pub(super) fn url(&self, shard: ShardId) -> Arc<str> {
        self.urls.get(&shard).cloned().unwrap_or_else(|| Arc::from(""))
    }

    fn id(&mut self, url: &str) -> ShardId {
        if let Some((id, _)) = self.urls.iter().find(|(_, known)| ***known == *url) {
            return *id;
        }
        self.last += 1;
        let id = ShardId(self.last);
        self.urls.insert(id, url.into());
        id
    }

    pub(super) fn next_expiry(&self) -> Option<Duration> {
        self.leaving.values().chain(self.parted.values()).min().copied()
    }

    /// How many endpoints are remembered.
    #[cfg(test)]
    pub(super) fn known(&self) -> usize {
        self.urls.len()
    }

    /// Whether a slice was ever seen.
    pub(super) const fn has_slice(&self) -> bool {
        self.has_slice
    }

    /// What the bindings of a workspace grant, one list after the other.
    pub(super) fn claims(&self, shard: ShardId, workspace: &LogicalCluster) -> Arc<str> {
        let bonds = self.roster.get(&(shard, workspace.clone())).into_iter().flat_map(BTreeMap::values);
        bonds.map(|bond| &*bond.granted).collect::<String>().into()
    }

    /// The endpoints of the slice.
    pub(super) fn live(&self) -> impl Iterator<Item = ShardId> {
        self.live.iter().copied()
    }

    /// Whether an endpoint has left the slice and may come back.
    pub(super) fn is_any_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Whether nobody is bound behind this endpoint.
    pub(super) fn is_empty(&self, shard: ShardId) -> bool {
        !self.roster.keys().any(|(of, _)| *of == shard)
    }

    /// Behind which endpoint of the slice a workspace has a binding.
    pub(super) fn bound_at(&self, workspace: &LogicalCluster) -> Option<ShardId> {
        self.live().find(|shard| self.roster.contains_key(&(*shard, workspace.clone())))
    }

    /// Whether a binding of the workspace is there, in whatever phase, behind whatever shard.
    pub(super) fn holds(&self, workspace: &LogicalCluster) -> bool {
        self.bonds(workspace).next().is_some()
    }

    /// Whether one of them is bound.
    fn is_bound(&self, workspace: &LogicalCluster) -> bool {
        self.bonds(workspace).flat_map(BTreeMap::values).any(|bond| bond.bound)
    }

    fn bonds(&self, workspace: &LogicalCluster) -> impl Iterator<Item = &BTreeMap<Arc<str>, Bond>> {
        self.urls.keys().filter_map(|shard| self.roster.get(&(*shard, workspace.clone())))
    }

    /// How many workspaces bind the export.
    pub(super) fn workspaces(&self) -> usize {
        self.roster.keys().filter(|(shard, _)| !self.parted.contains_key(shard)).count()
    }

    /// Who has a binding behind this shard and behind no other.
    fn only_at(&self, shard: ShardId) -> Vec<LogicalCluster> {
        let bound = self.roster.keys().filter(|(of, _)| *of == shard).map(|(_, workspace)| workspace);
        let elsewhere =
            |workspace: &LogicalCluster| self.urls.keys().any(|of| *of != shard && self.roster.contains_key(&(*of, workspace.clone())));
        bound.filter(|workspace| !elsewhere(workspace)).cloned().collect()
    }
}

impl Core {
    /// Follows the slice: opens the streams of new endpoints and closes those of endpoints that left.
    pub(super) fn take_slice(&mut self, now: Moment, raw: &Raw) {
        let slice: EndpointSlice = match serde_json::from_str(&raw.body) {
            Ok(slice) => slice,
            Err(error) => {
                warn!(%error, "the endpoint slice cannot be read; the endpoints stay as they are");
                return;
            }
        };
        self.shards.has_slice = true;
        let urls: BTreeSet<String> = slice.status.endpoints.into_iter().map(|endpoint| self.reachable(&endpoint.url)).collect();
        let wanted: BTreeSet<ShardId> = urls.iter().map(|url| self.shards.id(url)).collect();
        for shard in wanted.difference(&self.shards.live.clone()) {
            self.engage(now, *shard);
        }
        for shard in self.shards.live.clone().difference(&wanted) {
            info!(endpoint = %self.shards.url(*shard), "an endpoint left the slice");
            self.shards.live.remove(shard);
            self.shards.leaving.insert(*shard, now.mono + GRACE);
            // With its last binding an endpoint leaves, and the slice may tell of it before the roster does. So that is asked once more.
            let roster = self.streams.find(Role::Roster(*shard)).map(|(id, _)| id).filter(|_| !self.shards.is_empty(*shard));
            self.orders.extend(roster.map(|stream| (stream, Order::Refresh)));
            self.close_streams(*shard, roster);
        }
    }

    fn close_streams(&mut self, shard: ShardId, but: Option<StreamId>) {
        for stream in self.streams.remove_shard(shard, but) {
            self.effects.push(Effect::Close { stream });
        }
    }

    fn reachable(&self, url: &str) -> String {
        let url = url.trim_end_matches('/');
        let replaced = self.setup.overrides.iter().find_map(|(from, to)| url.strip_prefix(from.as_str()).map(|rest| format!("{to}{rest}")));
        replaced.unwrap_or_else(|| url.to_owned())
    }

    fn engage(&mut self, now: Moment, shard: ShardId) {
        info!(endpoint = %self.shards.url(shard), "an endpoint joined the slice");
        self.shards.live.insert(shard);
        self.shards.leaving.remove(&shard);
        if self.shards.parted.remove(&shard).is_some() {
            // Who has bound meanwhile was not listened to.
            self.close_streams(shard, None);
        }
        let mut roles = BTreeSet::new();
        // Where the endpoint is back soon, that one is still there.
        if self.streams.find(Role::Roster(shard)).is_none() {
            roles.insert(Role::Roster(shard));
        }
        for actor in &self.actors {
            roles.insert(Role::Objects(shard, actor.kind));
            roles.extend(actor.children.iter().map(|kind| Role::Objects(shard, *kind)));
            roles.extend(actor.names.iter().map(|spec| Role::Names(shard, spec.kind)));
        }
        for role in roles {
            self.open(role, now);
        }
    }

    /// Drops what is left of endpoints whose grace is over.
    pub(super) fn expire_shards(&mut self, now: Moment) {
        let over: Vec<ShardId> = self.shards.leaving.iter().filter(|(_, due)| **due <= now.mono).map(|(shard, _)| *shard).collect();
        for shard in over {
            self.shards.leaving.remove(&shard);
            self.shards.parted.insert(shard, now.mono.saturating_sub(GRACE) + LAST_WORD);
            self.shards.torn.retain(|(of, _)| *of != shard);
            self.guards.forget_shard(shard);
            self.forget(now, shard, None);
            self.objects.forget_streams(shard);
            self.forget_tenants(shard);
        }
        let is_over = |(shard, until): &(&ShardId, &Duration)| **until <= now.mono || self.has_said_last(**shard, **until);
        let over: Vec<ShardId> = self.shards.parted.iter().filter(is_over).map(|(shard, _)| *shard).collect();
        for shard in over {
            // Nobody is told of who is still bound there, as far as anybody knows: an endpoint that is away unbinds nobody.
            self.shards.parted.remove(&shard);
            self.forget_tenants(shard);
            self.close_streams(shard, None);
            self.shards.roster.retain(|(of, _), _| *of != shard);
            self.shards.urls.remove(&shard);
        }
    }

    /// Whether a roster has nobody left, or was complete since its endpoint went.
    fn has_said_last(&self, shard: ShardId, until: Duration) -> bool {
        let listed = self.streams.find(Role::Roster(shard)).and_then(|(_, stream)| stream.listed);
        self.shards.is_empty(shard) || listed.is_some_and(|asked| asked + LAST_WORD >= until)
    }

    /// What is kept for them goes, whether they have unbound or cannot be reached for long.
    fn forget_tenants(&mut self, shard: ShardId) {
        let gone = self.shards.only_at(shard);
        self.effects.extend(gone.into_iter().map(|workspace| Effect::Forget { workspace }));
    }

    /// Takes a binding as the roster shows it: a kind that is not served yet is about to be.
    pub(super) fn take_binding(&mut self, now: Moment, shard: ShardId, raw: &Raw) {
        let Some(workspace) = raw.workspace.clone() else { return Self::unplaced(Role::Roster(shard), raw) };
        if self.shards.parted.contains_key(&shard) {
            // Nobody is served there; it is only listened to for who is gone.
            return;
        }
        self.guards.take(shard, &workspace, raw);
        let Binding { status } = serde_json::from_str(&raw.body).unwrap_or_default();
        let granted = if self.actors.iter().any(|actor| actor.served.wants_access()) {
            status.applied_permission_claims.to_string()
        } else {
            String::new()
        };
        let bond = Bond { bound: status.phase == "Bound", granted: granted.into() };
        if bond.bound && self.shards.torn.remove(&(shard, workspace.clone())) {
            let streams: Vec<_> = self.streams.of_shard(shard).collect();
            self.orders.extend(streams.into_iter().map(|stream| (stream, Order::Refresh)));
        }
        let news = bond.bound && !self.shards.is_bound(&workspace);
        let bonds = self.shards.roster.entry((shard, workspace.clone())).or_default();
        let before = bonds.insert(raw.name.name.clone(), bond.clone());
        if before.as_ref().is_some_and(|before| before.granted != bond.granted) {
            self.look_at_access(now, &workspace);
        }
        if before.map(|before| before.bound) != Some(bond.bound) {
            let streams: Vec<_> = self.streams.of_shard(shard).collect();
            self.orders.extend(streams.into_iter().map(|stream| (stream, Order::Nudge)));
        }
        if news {
            self.announce(workspace, true);
        }
    }

    fn announce(&mut self, logical_cluster: LogicalCluster, bound: bool) {
        let path = self.paths.get(&logical_cluster).cloned();
        self.effects.push(Effect::Announce { workspace: Workspace { logical_cluster, path }, bound });
    }

    /// Whoever needs access to a workspace is looked at: what its binding grants has changed.
    fn look_at_access(&mut self, now: Moment, workspace: &LogicalCluster) {
        let mut stirred = Vec::new();
        for (actor, state) in self.actors.iter().enumerate().filter(|(_, state)| state.served.wants_access()) {
            let Ok(actor) = u8::try_from(actor) else { continue };
            stirred.extend(self.objects.in_workspace(state.kind, workspace).map(|key| (actor, key.clone())));
        }
        for (actor, key) in stirred {
            self.enqueue(now, actor, &key, Class::Fresh);
        }
    }

    /// A binding is gone, by the roster's word; with its last one, the workspace is no tenant any more.
    pub(super) fn drop_binding(&mut self, now: Moment, shard: ShardId, workspace: &LogicalCluster, name: &str) {
        self.guards.forget(shard, workspace, name);
        let at = (shard, workspace.clone());
        let Some(bindings) = self.shards.roster.get_mut(&at) else { return };
        if bindings.remove(name).is_some() && bindings.is_empty() {
            self.shards.roster.remove(&at);
            info!(%workspace, "a workspace unbound");
            if self.shards.torn.len() < MAX_TORN && !self.objects.of_shard(shard, Some(workspace)).is_empty() {
                self.shards.torn.insert((shard, workspace.clone()));
            }
            self.forget(now, shard, Some(workspace));
            if !self.shards.holds(workspace) {
                self.effects.push(Effect::Forget { workspace: workspace.clone() });
                self.announce(workspace.clone(), false);
            }
        }
    }

    /// A complete roster: whoever is not in it has unbound.
    pub(super) fn take_roster(&mut self, now: Moment, shard: ShardId, items: &[Raw]) {
        let named: BTreeSet<_> = items.iter().filter_map(|raw| Some((raw.workspace.as_ref()?, &raw.name.name))).collect();
        let mut gone = Vec::new();
        for ((_, workspace), bindings) in self.shards.roster.iter().filter(|((of, _), _)| *of == shard) {
            let missing = bindings.keys().filter(|name| !named.contains(&(workspace, *name)));
            gone.extend(missing.map(|name| (workspace.clone(), name.clone())));
        }
        // What came goes first, so that a binding that was replaced by another is not taken for the last one.
        for raw in items {
            self.take_binding(now, shard, raw);
        }
        for (workspace, name) in gone {
            self.drop_binding(now, shard, &workspace, &name);
        }
    }
}
