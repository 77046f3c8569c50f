//! Pure: the paths of workspaces, resolved top-down through their parents with the platform's identity.
//!
//! A path decides who is served, so nothing that a tenant can write is asked for it: neither an annotation in its workspace nor its own
//! `LogicalCluster`. Only the `Workspace` objects of the parents count, from the first literal segment of a rule downwards, and only those
//! parents are read that a rule of `allowedWorkspaces` leads through.

use std::collections::{BTreeMap, BTreeSet};

use tracing::warn;

use crate::api::allowed::Rule;
use crate::api::kcp::{WORKSPACE, WorkspaceObject};
use crate::api::names::LogicalCluster;
use crate::runtime::clock::Moment;
use crate::runtime::queue::{Class, Work};
use crate::runtime::raw::Raw;
use crate::runtime::rest;

use super::streams::{ParentId, Role};
use super::{Core, Effect};

/// Parents followed at most: each costs a stream. A rule with stars above its last segment can lead through many.
const MAX_PARENTS: usize = 64;

/// The parents that are followed, and the children they have shown.
#[derive(Debug, Default)]
pub(super) struct Paths {
    rules: Vec<Rule>,
    /// The paths of those that are followed.
    parents: BTreeMap<ParentId, String>,
    last: u32,
    followed: BTreeSet<ParentId>,
    children: BTreeMap<ParentId, BTreeMap<String, LogicalCluster>>,
    by_workspace: BTreeMap<LogicalCluster, String>,
}

impl Paths {
    /// The path of a workspace, where a rule needed it and the parents told it.
    pub(super) fn get(&self, workspace: &LogicalCluster) -> Option<&String> {
        self.by_workspace.get(workspace)
    }

    /// The parents that are followed now.
    pub(super) fn followed(&self) -> impl Iterator<Item = ParentId> {
        self.followed.iter().copied()
    }

    /// Where a parent's workspaces are listed.
    pub(super) fn url(&self, host: &str, parent: ParentId) -> String {
        let path = self.path_of(parent).map_or("", String::as_str);
        rest::collection(&format!("{host}/clusters/{path}"), WORKSPACE)
    }

    fn id(&mut self, path: &str) -> ParentId {
        if let Some(known) = self.known(path) {
            return known;
        }
        self.last += 1;
        let id = ParentId(self.last);
        self.parents.insert(id, path.to_owned());
        id
    }

    fn known(&self, path: &str) -> Option<ParentId> {
        self.parents.iter().find(|(_, known)| *known == path).map(|(id, _)| *id)
    }

    fn path_of(&self, parent: ParentId) -> Option<&String> {
        self.parents.get(&parent)
    }

    /// The parents that the rules lead through, as far as their own parents have shown them.
    fn wanted(&self) -> BTreeSet<String> {
        let mut wanted = BTreeSet::new();
        for rule in &self.rules {
            let Rule::Path(segments) = rule else { continue };
            let mut level: BTreeSet<String> = segments.first().and_then(Clone::clone).into_iter().collect();
            for (at, segment) in segments.iter().enumerate().skip(1) {
                // A literal segment that is not the last needs no list: its path is known as it is written.
                let last = at + 1 == segments.len();
                if last || segment.is_none() {
                    wanted.extend(level.iter().cloned());
                }
                level = level.iter().flat_map(|parent| self.below(parent, segment.as_deref())).collect();
            }
        }
        wanted
    }

    fn below(&self, parent: &str, segment: Option<&str>) -> Vec<String> {
        let names: Vec<String> = if let Some(name) = segment {
            vec![name.to_owned()]
        } else {
            self.known(parent).and_then(|id| self.children.get(&id)).into_iter().flat_map(|children| children.keys().cloned()).collect()
        };
        names.into_iter().map(|name| format!("{parent}:{name}")).collect()
    }

    /// Works the paths out anew; returns the workspaces whose path is another one now.
    fn resolve(&mut self) -> BTreeSet<LogicalCluster> {
        let mut paths = BTreeMap::new();
        for parent in &self.followed {
            let (Some(path), Some(children)) = (self.path_of(*parent), self.children.get(parent)) else { continue };
            paths.extend(children.iter().map(|(name, workspace)| (workspace.clone(), format!("{path}:{name}"))));
        }
        let before = std::mem::replace(&mut self.by_workspace, paths);
        let all: BTreeSet<&LogicalCluster> = before.keys().chain(self.by_workspace.keys()).collect();
        all.into_iter().filter(|workspace| before.get(*workspace) != self.by_workspace.get(*workspace)).cloned().collect()
    }
}

impl Core {
    /// Follows the rules of every configuration in force.
    pub(super) fn follow_rules(&mut self, now: Moment) {
        let configs = self.actors.iter().filter_map(|actor| actor.config.as_ref().ok());
        let texts: BTreeSet<String> = configs.flat_map(|config| config.allowed.iter().cloned()).collect();
        self.paths.rules = texts.iter().filter_map(|text| Rule::parse(text).ok()).collect();
        self.follow_parents(now);
    }

    fn follow_parents(&mut self, now: Moment) {
        let mut wanted = self.paths.wanted();
        if wanted.len() > MAX_PARENTS {
            warn!(parents = wanted.len(), MAX_PARENTS, "allowedWorkspaces lead through too many parents; the last ones are not resolved");
            wanted = wanted.into_iter().take(MAX_PARENTS).collect();
        }
        let wanted: BTreeSet<ParentId> = wanted.iter().map(|path| self.paths.id(path)).collect();
        for parent in wanted.difference(&self.paths.followed.clone()) {
            self.paths.followed.insert(*parent);
            self.open(Role::Workspaces(*parent), now);
        }
        for parent in self.paths.followed.clone().difference(&wanted) {
            self.paths.followed.remove(parent);
            self.paths.children.remove(parent);
            self.paths.parents.remove(parent);
            if let Some(stream) = self.streams.remove(Role::Workspaces(*parent)) {
                self.effects.push(Effect::Close { stream });
            }
        }
        self.paths_changed(now);
    }

    fn paths_changed(&mut self, now: Moment) {
        for workspace in self.paths.resolve() {
            for work in self.works_in(&workspace) {
                self.enqueue(now, work.actor, &work.key, Class::Fresh);
            }
        }
    }

    fn works_in(&self, workspace: &LogicalCluster) -> Vec<Work> {
        let mut works = Vec::new();
        for (at, actor) in self.actors.iter().enumerate() {
            let Ok(index) = u8::try_from(at) else { continue };
            works.extend(self.objects.in_workspace(actor.kind, workspace).map(|key| Work { actor: index, key: key.clone() }));
        }
        works
    }

    /// A complete list of a parent's workspaces.
    pub(super) fn take_workspaces(&mut self, now: Moment, parent: ParentId, items: &[Raw]) {
        let children = items.iter().filter_map(|raw| Some((raw.name.name.to_string(), logical_cluster(raw)?))).collect();
        self.paths.children.insert(parent, children);
        self.follow_parents(now);
    }

    /// One workspace of a parent came, changed or went.
    pub(super) fn take_workspace(&mut self, now: Moment, parent: ParentId, raw: &Raw, present: bool) {
        let children = self.paths.children.entry(parent).or_default();
        match logical_cluster(raw).filter(|_| present) {
            Some(workspace) => drop(children.insert(raw.name.name.to_string(), workspace)),
            None => drop(children.remove(&*raw.name.name)),
        }
        self.follow_parents(now);
    }
}

fn logical_cluster(raw: &Raw) -> Option<LogicalCluster> {
    let workspace: WorkspaceObject = serde_json::from_str(&raw.body).ok()?;
    (!workspace.spec.cluster.is_empty()).then(|| LogicalCluster::new(workspace.spec.cluster))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(rules: &[&str], shown: &[(&str, &[&str])]) -> Paths {
        let mut paths = Paths { rules: rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect(), ..Paths::default() };
        for (parent, names) in shown {
            let id = paths.id(parent);
            paths.followed.insert(id);
            paths.children.insert(id, names.iter().map(|name| ((*name).to_owned(), LogicalCluster::new(format!("lc-{name}")))).collect());
        }
        paths
    }

    #[test]
    fn only_parents_that_a_rule_leads_through_are_read() {
        let wanted = |rules: &[&str], shown: &[(&str, &[&str])]| paths(rules, shown).wanted().into_iter().collect::<Vec<_>>();
        assert_eq!(wanted(&["root:orgs:*"], &[]), ["root:orgs"]);
        assert_eq!(wanted(&["root:orgs:acme"], &[]), ["root:orgs"], "the name of an exact path is looked up in its parent");
        assert_eq!(wanted(&["2hx7k1zv"], &[]), [] as [&str; 0], "a logical cluster's name needs no path");
        assert_eq!(wanted(&["root:*:team"], &[("root", &["a", "b"])]), ["root", "root:a", "root:b"]);
    }

    #[test]
    fn a_parent_is_known_by_one_number_for_as_long_as_it_is_followed() {
        let mut paths = paths(&["root:*:team"], &[("root", &["a"])]);
        let first = paths.id("root:a");
        assert_eq!(paths.id("root:a"), first);
        paths.parents.remove(&first);
        assert_ne!(paths.id("root:a"), first);
        assert_eq!(paths.parents.len(), 2);
    }

    #[test]
    fn a_path_is_what_the_parents_say() {
        let mut paths = paths(&["root:orgs:*"], &[("root:orgs", &["acme"])]);
        assert_eq!(paths.resolve(), BTreeSet::from([LogicalCluster::new("lc-acme")]));
        assert_eq!(paths.get(&LogicalCluster::new("lc-acme")).map(String::as_str), Some("root:orgs:acme"));
        assert!(paths.resolve().is_empty(), "nothing changed since");
    }
}
