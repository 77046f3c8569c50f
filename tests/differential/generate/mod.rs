//! Random operations: a pure function of the seed, with a model of what probably exists, so that most requests hit something.

mod objects;
mod odd;
mod reads;
mod structure;
mod writes;

use std::collections::BTreeSet;

use serde_json::Value;

use super::dice::Dice;
use super::plan::{Call, Operation, Step, Who};
use super::setup::{direct, through};

/// A kind of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Widget,
    Gadget,
    Board,
    Crate,
    ConfigMap,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Widget => "Widget",
            Self::Gadget => "Gadget",
            Self::Board => "Board",
            Self::Crate => "Crate",
            Self::ConfigMap => "ConfigMap",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::Widget => "widgets",
            Self::Gadget => "gadgets",
            Self::Board => "boards",
            Self::Crate => "crates",
            Self::ConfigMap => "configmaps",
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::Widget | Self::Gadget | Self::Board => "lab.example.org/v1",
            Self::Crate => "store.example.org/v1",
            Self::ConfigMap => "v1",
        }
    }

    fn export(self) -> &'static str {
        if self == Self::Crate { "store" } else { "lab" }
    }

    fn has_status(self) -> bool {
        matches!(self, Self::Widget | Self::Board | Self::Crate)
    }

    /// Below the workspace, up to the version.
    fn group_path(self) -> String {
        if self == Self::ConfigMap { "/api/v1".to_owned() } else { format!("/apis/{}", self.api_version()) }
    }
}

/// One object as the plan names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Object {
    workspace: &'static str,
    kind: Kind,
    namespace: &'static str,
    name: String,
}

impl Object {
    /// What [`super::memory::Memory`] knows it by.
    fn key(&self) -> String {
        format!("{}/{}/{}/{}", self.workspace, self.kind.name(), self.namespace, self.name)
    }
}

/// How a request comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Direct,
    Virtual,
}

/// The model and the dice of one lane.
pub(crate) struct Generator {
    dice: Dice,
    /// What probably exists.
    there: BTreeSet<Object>,
    /// Of those, what a finalizer probably keeps.
    held: BTreeSet<Object>,
    /// What is probably being deleted.
    leaving: BTreeSet<Object>,
    /// Counts what must have a name of its own.
    made: usize,
    /// How often the schema of widgets was rolled.
    rolls: usize,
    /// Whether `t2`, who comes and goes, is bound.
    bound: bool,
}

impl Generator {
    pub(crate) fn new(seed: u64, lane: u64) -> Self {
        let dice = Dice::new(seed, lane);
        Self { dice, there: BTreeSet::new(), held: BTreeSet::new(), leaving: BTreeSet::new(), made: 0, rolls: 0, bound: true }
    }

    /// The next operation.
    pub(crate) fn next(&mut self) -> Operation {
        let make: fn(&mut Self) -> Operation = self.dice.weighted(&[
            (110, Self::get as fn(&mut Self) -> Operation),
            (60, Self::list),
            (25, Self::pages),
            (35, Self::list_selected),
            (25, Self::as_table),
            (12, Self::watch),
            (8, Self::initial_events),
            (170, Self::create),
            (90, Self::create_invalid),
            (45, Self::create_unusual),
            (90, Self::put),
            (35, Self::put_status),
            (85, Self::merge),
            (35, Self::merge_status),
            (45, Self::json_patch),
            (80, Self::apply),
            (25, Self::apply_status),
            (20, Self::bad_content),
            (70, Self::delete),
            (20, Self::delete_unusual),
            (6, Self::delete_collection),
            (15, Self::discovery),
            (15, Self::wrong_method),
            (15, Self::unknown),
            (20, Self::virtual_oddity),
            (20, Self::identity),
            (25, Self::built_in),
            (12, Self::structure),
        ]);
        make(self)
    }

    fn workspace(&mut self) -> &'static str {
        if self.bound && self.dice.percent(40) { "t2" } else { "t1" }
    }

    /// An object: mostly one that is there, otherwise one that could be.
    fn object(&mut self) -> Object {
        if self.dice.percent(85)
            && let Some(found) = self.existing(|_| true)
        {
            return found;
        }
        self.any_object()
    }

    /// An object that could be, and mostly is not there.
    fn new_object(&mut self) -> Object {
        for _ in 0..6 {
            let object = self.any_object();
            if !self.there.contains(&object) {
                return object;
            }
        }
        self.any_object()
    }

    fn existing(&mut self, fits: impl Fn(&Object) -> bool) -> Option<Object> {
        let bound = self.bound;
        let fitting: Vec<&Object> = self.there.iter().filter(|object| (bound || object.workspace != "t2") && fits(object)).collect();
        if fitting.is_empty() { None } else { Some((*self.dice.one(&fitting)).clone()) }
    }

    fn any_object(&mut self) -> Object {
        let kind =
            self.dice.weighted(&[(50, Kind::Widget), (15, Kind::Gadget), (12, Kind::Board), (10, Kind::Crate), (13, Kind::ConfigMap)]);
        let workspace = if kind == Kind::Crate { "t1" } else { self.workspace() };
        let namespace = match kind {
            Kind::Board => "",
            _ if self.dice.percent(80) => "default",
            _ => "team",
        };
        let name = (*self.dice.one(&["a", "b", "c", "d", "e", "f"])).to_owned();
        Object { workspace, kind, namespace, name }
    }

    fn door(&mut self) -> Door {
        if self.dice.percent(40) { Door::Virtual } else { Door::Direct }
    }

    fn prefix(door: Door, object: &Object) -> String {
        match door {
            Door::Direct => direct(object.workspace),
            Door::Virtual => through(object.kind.export(), object.workspace),
        }
    }

    fn collection(door: Door, object: &Object) -> String {
        let namespace = if object.namespace.is_empty() { String::new() } else { format!("/namespaces/{}", object.namespace) };
        format!("{}{}{namespace}/{}", Self::prefix(door, object), object.kind.group_path(), object.kind.plural())
    }

    fn path(door: Door, object: &Object) -> String {
        format!("{}/{}", Self::collection(door, object), object.name)
    }

    /// A request by somebody who mostly may.
    fn call(&mut self, door: Door, workspace: &str, method: &'static str, path: String) -> Call {
        let who = match door {
            Door::Virtual => self.dice.weighted(&[(35, 0), (57, 1), (8, 2)]),
            Door::Direct if workspace == "t1" => self.dice.weighted(&[(80, 0), (20, 3)]),
            Door::Direct => self.dice.weighted(&[(90, 0), (10, 3)]),
        };
        let who = [Who::Admin, Who::Runtime, Who::Bearer("sa".to_owned()), Who::Tenant][who].clone();
        Call::new(who, method, path)
    }

    /// Notes that an object is probably there now.
    fn put_there(&mut self, object: &Object, body: &Value) {
        self.there.insert(object.clone());
        if body["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty()) {
            self.held.insert(object.clone());
        }
    }

    /// Notes a deletion: what has a finalizer stays for now.
    fn delete_there(&mut self, object: &Object) {
        if self.held.contains(object) {
            self.leaving.insert(object.clone());
        } else {
            self.there.remove(object);
        }
    }

    /// Notes that nothing keeps an object any more.
    fn release_there(&mut self, object: &Object) {
        self.held.remove(object);
        if self.leaving.remove(object) {
            self.there.remove(object);
        }
    }
}
