//! Everything there is: shards, workspaces, and what is still to be done. One value behind one lock; whatever changes it is a function of it and
//! of time.

pub(crate) mod exported;
mod kinds;
pub(crate) mod objects;
mod parsed;
mod tasks;
pub(crate) mod workspaces;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::access::User;
use super::access::tokens::Tokens;
use super::dice::Dice;
use super::observe::Event;
use super::profile::Options;
use super::served::{Origin, Served};
use super::signal::{Signal, Waiter};
use super::store::{Place, Store};

pub(crate) use objects::Draft;
pub(crate) use tasks::{Task, Tasks};

/// One shard: its objects, and where it is reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shard {
    pub(crate) name: String,
    /// How often it got another URL.
    pub(crate) moves: usize,
    pub(crate) store: Store,
    /// In how many workspaces of the shard each stored kind is served.
    pub(crate) served: BTreeMap<Arc<str>, usize>,
}

/// A logical cluster.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    /// Which shard holds it.
    pub(crate) shard: usize,
    /// `root:acme`.
    pub(crate) path: String,
    /// The logical cluster and the name of its `Workspace` object; `None` for root.
    pub(crate) parent: Option<(Arc<str>, Arc<str>)>,
    /// What definitions and bindings add to the built-in kinds.
    pub(crate) custom: Vec<Arc<Served>>,
    /// What bindings have accepted.
    pub(crate) claims: Vec<Claim>,
    /// Whether it is being deleted.
    pub(crate) going: bool,
    /// Bindings that are being deleted.
    pub(crate) leaving: BTreeSet<Arc<str>>,
    /// Namespaces that are being deleted.
    pub(crate) terminating: BTreeSet<Arc<str>>,
}

/// A claim that a workspace has accepted: its objects carry a label for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim {
    pub(crate) group: Arc<str>,
    pub(crate) resource: Arc<str>,
    /// The label's key, one for each export.
    pub(crate) key: Arc<str>,
    pub(crate) value: Arc<str>,
}

/// An export: its logical cluster and its name.
pub(crate) type ExportKey = (Arc<str>, Arc<str>);

/// A binding: its workspace and its name.
pub(crate) type BindingKey = (Arc<str>, Arc<str>);
/// An object that has an owner: its stored kind and its place.
pub(crate) type OwnedKey = (Arc<str>, Place);

/// Everything.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) options: Options,
    pub(crate) shards: Vec<Shard>,
    pub(crate) workspaces: BTreeMap<Arc<str>, Workspace>,
    pub(crate) paths: BTreeMap<String, Arc<str>>,
    pub(crate) dice: Dice,
    /// The dice of dry runs.
    pub(crate) rehearsal: Dice,
    /// The time of the request or task that is under way.
    pub(crate) now: Timestamp,
    pub(crate) tasks: Tasks,
    /// Counts the changes of a stored kind's schema, by the workspace of its definition: open watches of it end.
    rolls: BTreeMap<(Arc<str>, Arc<str>), Signal>,
    /// Counts the times all watches were closed.
    pub(crate) closed: Signal,
    /// The bindings of each export, by shard: `(workspace, name)`.
    pub(crate) bindings: BTreeMap<ExportKey, BTreeMap<usize, BTreeSet<BindingKey>>>,
    /// The export under which `bindings` has a binding. Its workspace may be gone by now.
    pub(crate) bound_to: BTreeMap<BindingKey, ExportKey>,
    /// Who is owned, by workspace and the owner's uid. An entry may be stale: the object says whether it is still owned.
    pub(crate) owned: BTreeMap<(Arc<str>, Arc<str>), BTreeSet<OwnedKey>>,
    /// Objects that are stored without the annotation of their logical cluster, by stored kind.
    pub(crate) unmarked: BTreeSet<OwnedKey>,
    /// The changes since they were last taken, while somebody observes.
    pub(crate) changes: Option<Vec<Event>>,
    /// Who may log in, and the tokens of accounts.
    pub(crate) tokens: Tokens,
    parsed: parsed::Parsed,
    exported: exported::Exported,
    next_shard: usize,
}

/// Kinds that are watched for another schema; from then on those that nobody watches any more are forgotten.
const ROLLS: usize = 1024;
/// How often one task is done at one instant. Each looks at everything at once, so that a handful is much.
const AGAIN: u32 = 10_000;

/// The workspace that all others are below.
pub(crate) const ROOT: &str = "root";

impl World {
    /// A server with the workspace `root` and nothing in it but what every workspace has.
    pub(crate) fn new(options: Options) -> Self {
        let name = |at: usize| if at == 0 { ROOT.to_owned() } else { format!("shard-{at}") };
        let shards = (0..options.shards.max(1)).map(|at| Shard { name: name(at), ..Shard::default() }).collect();
        let users = options.users.iter().map(|(token, name, groups)| {
            let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
            (token.clone(), User::named(name, &groups))
        });
        let tokens = Tokens::new(format!("secret-of-{}", options.seed), users);
        let mut world = Self {
            shards,
            workspaces: BTreeMap::new(),
            paths: BTreeMap::new(),
            dice: Dice::new(options.seed),
            rehearsal: Dice::new(!options.seed),
            now: options.started,
            tasks: Tasks::default(),
            rolls: BTreeMap::new(),
            closed: Signal::default(),
            bindings: BTreeMap::new(),
            bound_to: BTreeMap::new(),
            owned: BTreeMap::new(),
            unmarked: BTreeSet::new(),
            changes: None,
            tokens,
            parsed: parsed::Parsed::default(),
            exported: exported::Exported::default(),
            next_shard: 0,
            options,
        };
        world.begin();
        world
    }

    /// The same world once more: from here on each goes its own way. Watches stay with the first.
    pub(crate) fn fork(&self) -> Self {
        let Self {
            options,
            shards,
            workspaces,
            paths,
            dice,
            rehearsal,
            now,
            tasks,
            rolls: _,
            closed: _,
            bindings,
            bound_to,
            owned,
            unmarked,
            changes: _,
            tokens,
            parsed,
            exported,
            next_shard,
        } = self;
        Self {
            options: options.clone(),
            shards: shards.clone(),
            workspaces: workspaces.clone(),
            paths: paths.clone(),
            dice: dice.clone(),
            rehearsal: rehearsal.clone(),
            now: *now,
            tasks: tasks.clone(),
            rolls: BTreeMap::new(),
            closed: Signal::default(),
            bindings: bindings.clone(),
            bound_to: bound_to.clone(),
            owned: owned.clone(),
            unmarked: unmarked.clone(),
            changes: None,
            tokens: tokens.clone(),
            parsed: parsed.clone(),
            exported: exported.clone(),
            next_shard: *next_shard,
        }
    }

    /// RFC 3339, whole seconds: how Kubernetes writes times.
    pub(crate) fn stamp(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// The shard of a logical cluster.
    pub(crate) fn shard_of(&self, workspace: &str) -> Option<usize> {
        self.workspaces.get(workspace).map(|workspace| workspace.shard)
    }

    /// Wakes when the schema of a stored kind is replaced: for all workspaces that share it, or in the workspace whose definition it is.
    pub(crate) fn rolls_of(&mut self, kind: &Served, workspace: Option<&str>) -> Waiter {
        if self.rolls.len() >= ROLLS {
            self.rolls.retain(|_, roll| roll.is_heard());
        }
        let of = workspace.filter(|_| kind.origin == Origin::Definition).unwrap_or_default();
        self.rolls.entry((of.into(), kind.storage.clone())).or_default().waiter()
    }

    /// A stored kind has another schema now, in the workspace of its definition, or in all with `""`.
    pub(crate) fn rolled(&mut self, workspace: &str, storage: &Arc<str>) {
        if let Some(roll) = self.rolls.get(&(workspace.into(), storage.clone())) {
            roll.grow();
        }
    }

    /// Does what is due by now, and what follows from it, until nothing is.
    ///
    /// A task that comes back [`AGAIN`] times at one instant would come back for ever: it is a defect, which is logged, and the task is dropped.
    pub(crate) fn settle(&mut self) {
        let mut times = BTreeMap::<Task, u32>::new();
        while let Some(task) = self.tasks.due(self.now) {
            let count = times.entry(task.clone()).or_default();
            *count += 1;
            if *count > AGAIN {
                debug_assert!(false, "{task:?} does not come to an end");
                tracing::error!(?task, "a task of the embedded control plane does not come to an end");
                continue;
            }
            self.perform(&task);
        }
    }
}
