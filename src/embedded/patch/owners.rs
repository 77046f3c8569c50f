//! The owners of an object's fields: `metadata.managedFields` read, changed and written.
//!
//! Pure: from JSON to sets by manager and back, as `apimachinery/pkg/util/managedfields/internal` does, and the bookkeeping of
//! `structured-merge-diff/v4/merge`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::fields::{Path, Set};
use super::managed::{Operation, Writer};
use super::merge::Difference;
use super::print;
use super::shape::Place;
use super::walk::reconcile;

/// More managers than these that update are not told apart: the oldest become one.
const MOST_UPDATERS: usize = 10;

/// The one that the oldest become.
const ANCIENT: &str = "ancient-changes";

/// Who owns. Two entries of the same manager are two owners when operation or subresource differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The field manager's name.
    pub manager: String,
    /// How it writes.
    pub operation: Operation,
    /// The version it writes; empty for appliers, which are the same in every version.
    pub api_version: String,
    /// `""` or `status`.
    pub subresource: String,
}

impl Owner {
    /// Who writes.
    pub fn of(writer: &Writer<'_>) -> Self {
        let manager = if writer.manager.is_empty() { "unknown" } else { writer.manager };
        Self::new(manager, writer.operation, writer.api_version, writer.subresource)
    }

    fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = if operation == Operation::Apply { "" } else { api_version };
        Self { manager: manager.into(), operation, api_version: api_version.into(), subresource: subresource.into() }
    }

    /// As conflicts name it.
    pub fn shown(&self) -> String {
        let through = if self.subresource.is_empty() { String::new() } else { format!(" with subresource {:?}", self.subresource) };
        let using = if self.operation == Operation::Update { format!(" using {}", self.api_version) } else { String::new() };
        format!("{:?}{through}{using}", self.manager)
    }
}

/// What one owner has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Its fields.
    pub set: Set,
    /// The version the fields are named in.
    pub api_version: String,
}

/// All owners of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owners {
    /// What each has.
    pub owned: BTreeMap<Owner, Owned>,
    /// When each last wrote, if that is known; also of owners that have nothing left.
    pub times: BTreeMap<Owner, String>,
}

impl Owners {
    /// Reads `metadata.managedFields`; absent is empty.
    ///
    /// # Errors
    /// What is wrong with an entry.
    pub fn read(object: &Value) -> Result<Self, String> {
        let mut owners = Self::default();
        let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (at, entry) in entries.iter().enumerate() {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            let operation = match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err("operation must be `Apply` or `Update`".into()),
            };
            let api_version = text("apiVersion");
            if api_version.is_empty() {
                return Err("apiVersion must not be empty".into());
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
                other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {at}")),
            }
            let set = print::parse(entry.get("fieldsV1").unwrap_or(&Value::Null))?;
            let owner = Owner::new(text("manager"), operation, api_version, text("subresource"));
            if !text("time").is_empty() {
                owners.times.insert(owner.clone(), text("time").into());
            }
            owners.owned.insert(owner, Owned { set, api_version: api_version.into() });
        }
        Ok(owners)
    }

    /// Writes `metadata.managedFields`; nobody who owns anything, and there is none.
    pub fn write(&self, object: &mut Value) {
        let entries: Value = self.entries().into();
        match object.get_mut("metadata").and_then(Value::as_object_mut) {
            Some(metadata) if self.owned.is_empty() => drop(metadata.remove("managedFields")),
            Some(metadata) => drop(metadata.insert("managedFields".into(), entries)),
            None if self.owned.is_empty() => {}
            None => object["metadata"] = json!({"managedFields": entries}),
        }
    }

    /// Appliers first, then by time, manager, version and subresource.
    fn entries(&self) -> Vec<Value> {
        let mut owners: Vec<(&Owner, &Owned)> = self.owned.iter().collect();
        owners
            .sort_by_key(|(owner, owned)| (owner.operation, self.times.get(owner), &owner.manager, &owned.api_version, &owner.subresource));
        let entry = |(owner, owned): (&Owner, &Owned)| {
            let operation = if owner.operation == Operation::Apply { "Apply" } else { "Update" };
            let mut entry = Map::new();
            let texts = [
                ("manager", owner.manager.as_str()),
                ("operation", operation),
                ("apiVersion", &owned.api_version),
                ("time", self.times.get(owner).map_or("", String::as_str)),
                ("fieldsType", "FieldsV1"),
                ("subresource", &owner.subresource),
            ];
            entry.extend(texts.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name.into(), text.into())));
            entry.insert("fieldsV1".into(), print::print(&owned.set));
            Value::Object(entry)
        };
        owners.into_iter().map(entry).collect()
    }

    /// Every owner's fields as this schema would have them.
    pub fn reconcile(&mut self, place: Place<'_>) {
        self.owned.values_mut().for_each(|owned| owned.set = reconcile(place, &owned.set));
    }

    /// Takes from everyone but `except` what the difference changes or removes.
    ///
    /// # Errors
    /// Unless forced, every path that someone else owns and the difference changes; then nothing is taken.
    pub fn yield_to(&mut self, difference: &Difference, except: Option<&Owner>, force: bool) -> Result<(), Vec<(Owner, Path)>> {
        let written = difference.modified.union(&difference.added);
        if !force {
            let mut others: Vec<_> = self.owned.iter().filter(|(owner, _)| Some(*owner) != except).collect();
            // Upstream sorts them by their JSON, in which the time comes before the subresource and a subresource before none.
            let time = |owner: &Owner| self.times.get(owner).filter(|_| owner.operation == Operation::Update);
            let words = |owner: &Owner| (owner.manager.clone(), owner.operation, owner.api_version.clone());
            others.sort_by_cached_key(|(owner, _)| (words(owner), time(owner), owner.subresource.is_empty(), &owner.subresource));
            let conflicts: Vec<(Owner, Path)> = others
                .into_iter()
                .flat_map(|(owner, owned)| owned.set.intersection(&written).paths().into_iter().map(|path| (owner.clone(), path)))
                .collect();
            if !conflicts.is_empty() {
                return Err(conflicts);
            }
        }
        for (_, owned) in self.owned.iter_mut().filter(|(owner, _)| Some(*owner) != except) {
            owned.set = owned.set.difference(&written).difference(&difference.removed);
        }
        self.owned.retain(|_, owned| !owned.set.is_empty());
        Ok(())
    }

    /// Adds to what the writer has, at the writer's time.
    pub fn add(&mut self, writer: &Writer<'_>, set: &Set) {
        let owner = Owner::of(writer);
        let set = self.owned.get(&owner).map_or_else(|| set.clone(), |owned| owned.set.union(set));
        self.times.insert(owner.clone(), writer.time.into());
        self.owned.insert(owner, Owned { set, api_version: writer.api_version.into() });
    }

    /// Joins the oldest of those that update, as long as there are more than ten and two of the same version.
    pub fn cap(&mut self) {
        let mut updaters: Vec<Owner> = self.owned.keys().filter(|owner| owner.operation == Operation::Update).cloned().collect();
        let mut left = updaters.len();
        updaters.sort_by(|a, b| (self.times.get(a), a).cmp(&(self.times.get(b), b)));
        let mut first_of: BTreeMap<String, Owner> = BTreeMap::new();
        for owner in updaters {
            if left <= MOST_UPDATERS {
                return;
            }
            let Some(owned) = self.owned.get(&owner).cloned() else { continue };
            let Some(first) = first_of.get(&owned.api_version) else {
                first_of.insert(owned.api_version, owner);
                continue;
            };
            let bucket = Owner::new(ANCIENT, Operation::Update, &owned.api_version, "");
            if !self.owned.contains_key(&bucket)
                && let Some(oldest) = self.owned.remove(first)
            {
                self.owned.insert(bucket.clone(), oldest);
            }
            let joined = self.owned.get(&bucket).map_or_else(|| owned.set.clone(), |old| old.set.union(&owned.set));
            self.owned.insert(bucket.clone(), Owned { set: joined, api_version: owned.api_version });
            self.owned.remove(&owner);
            left -= 1;
            match self.times.get(&owner).cloned() {
                Some(time) => drop(self.times.insert(bucket, time)),
                None => drop(self.times.remove(&bucket)),
            }
        }
    }
}
