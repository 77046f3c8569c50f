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
use tokio::sync::watch;

use super::access::User;
use super::access::tokens::Tokens;
use super::dice::Dice;
use super::observe::Event;
use super::profile::Options;
use super::served::Served;
use super::store::{Place, Store};

pub(crate) use objects::Draft;
pub(crate) use tasks::{Task, Tasks};

/// One shard: its objects, and where it is reached.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    pub(crate) name: String,
    pub(crate) store: Store,
    /// In how many workspaces of the shard each stored kind is served.
    pub(crate) served: BTreeMap<Arc<str>, usize>,
}

/// A logical cluster.
#[derive(Debug)]
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
    /// The time of the request or task that is under way.
    pub(crate) now: Timestamp,
    pub(crate) tasks: Tasks,
    /// Counts the changes of a stored kind's schema: open watches of it end with an error.
    rolls: BTreeMap<Arc<str>, watch::Sender<u64>>,
    /// Counts the times all watches were closed.
    pub(crate) closed: watch::Sender<u64>,
    /// The bindings of each export, by shard: `(workspace, name)`.
    pub(crate) bindings: BTreeMap<ExportKey, BTreeMap<usize, BTreeSet<BindingKey>>>,
    /// Who is owned, by workspace and the owner's uid. An entry may be stale: the object says whether it is still owned.
    pub(crate) owned: BTreeMap<(Arc<str>, Arc<str>), BTreeSet<OwnedKey>>,
    /// The changes since they were last taken, while somebody observes.
    pub(crate) changes: Option<Vec<Event>>,
    /// Who may log in, and the tokens of accounts.
    pub(crate) tokens: Tokens,
    parsed: parsed::Parsed,
    exported: exported::Exported,
    next_shard: usize,
}

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
            now: options.started,
            tasks: Tasks::default(),
            rolls: BTreeMap::new(),
            closed: watch::Sender::new(0),
            bindings: BTreeMap::new(),
            owned: BTreeMap::new(),
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

    /// RFC 3339, whole seconds: how Kubernetes writes times.
    pub(crate) fn stamp(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// The shard of a logical cluster.
    pub(crate) fn shard_of(&self, workspace: &str) -> Option<usize> {
        self.workspaces.get(workspace).map(|workspace| workspace.shard)
    }

    /// Wakes when the schema of a stored kind is replaced.
    pub(crate) fn rolls_of(&mut self, storage: &Arc<str>) -> watch::Receiver<u64> {
        self.rolls.entry(storage.clone()).or_default().subscribe()
    }

    /// A stored kind has another schema now.
    pub(crate) fn rolled(&mut self, storage: &Arc<str>) {
        if let Some(roll) = self.rolls.get(storage) {
            roll.send_modify(|count| *count += 1);
        }
    }

    /// Does what is due by now, and what follows from it, until nothing is.
    pub(crate) fn settle(&mut self) {
        while let Some(task) = self.tasks.due(self.now) {
            self.perform(&task);
        }
    }
}
