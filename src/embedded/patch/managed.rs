//! Who owns what of an object after it was created, updated or patched.
//!
//! Pure: the order of steps of `apimachinery/pkg/util/managedfields` (`NewDefaultCRDFieldManager`).

use serde_json::{Value, json};

use super::check::{Duplicates, check};
use super::fields::{Element, Set};
use super::merge::Difference;
use super::owners::Owners;
use super::shape::Place;
use super::walk::same;
use crate::embedded::schema::node::Node;

pub use super::apply::apply;

/// How a manager writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Everything else: create, update, the other patches.
    Update,
}

/// Who writes, and how.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The field manager; `""` is called `unknown`.
    pub manager: &'a str,
    /// [`Operation::Apply`] for [`apply`], [`Operation::Update`] for [`update`].
    pub operation: Operation,
    /// The version of the request: `kubernetes.edge-connect.eu/v1alpha1`.
    pub api_version: &'a str,
    /// `""` or `status`.
    pub subresource: &'a str,
    /// Now, in RFC 3339 with seconds: `2025-01-31T12:00:00Z`.
    pub time: &'a str,
}

/// What the request's endpoint resets before it stores, so that nobody owns it through that endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Nothing: the main endpoint of a kind without a status subresource.
    None,
    /// `status`: the main endpoint of a kind with one.
    Status,
    /// Everything but `status`: the status endpoint. Upstream names `spec` only, so metadata sent there is owned though it is not stored.
    AllButStatus,
}

impl Reset {
    /// The set without what the endpoint resets.
    pub(super) fn filter(self, set: &Set) -> Set {
        set.without(&self.paths())
    }

    pub(super) fn paths(self) -> Set {
        match self {
            Self::None => Set::default(),
            Self::Status => Set::of([vec![Element::field("status")]]),
            Self::AllButStatus => Set::of([vec![Element::field("spec")]]),
        }
    }
}

/// What nobody owns: it says which object is meant, or the server sets it.
pub(super) fn without_identity(set: &Set) -> Set {
    let names =
        ["name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields", "resourceVersion"];
    let top = ["apiVersion", "kind", "metadata"].map(|name| vec![Element::field(name)]);
    let in_metadata = names.map(|name| vec![Element::field("metadata"), Element::field(name)]);
    set.difference(&Set::of(top.into_iter().chain(in_metadata)))
}

/// After create (`old` is `None`), update or patch: sets `new`'s managed fields from those in `new` or else in `old`, and the difference.
///
/// `root` is the schema of the whole object without metadata. An empty list, or a list of one empty entry, in `new` resets them; through a
/// subresource those in `new` do not count. An object that had none and exists gets none, until it is first applied to. If a value does
/// not fit the schema, so that no difference can be told, there are none afterwards. When nothing but times would change, nothing does.
///
/// Entries of other versions are read with this schema. Upstream converts, which for kinds without a conversion is the same, and forgets
/// those of versions that are not served any more.
pub fn update(root: &Node, old: Option<&Value>, new: &mut Value, writer: &Writer<'_>, reset: Reset) {
    let before = old.cloned().unwrap_or_else(|| nothing_of(new));
    let mut owners = owners_before(&before, new, writer);
    Owners::default().write(new);
    if !owners.owned.is_empty() || uid(&before).is_empty() {
        let place = Place::root(root);
        if check(place, new, Duplicates::Allowed).and_then(|()| check(place, &before, Duplicates::Allowed)).is_err() {
            return;
        }
        record(&mut owners, place, &before, new, writer, reset);
    }
    owners.write(new);
    keep_times(&before, new);
}

/// Gives the writer what it changed between two objects, and takes it from all others.
pub(super) fn record(owners: &mut Owners, place: Place<'_>, old: &Value, new: &Value, writer: &Writer<'_>, reset: Reset) {
    owners.reconcile(place);
    let difference = Difference::between(place, old, new).without(&reset.paths());
    // The writer's own earlier fields are taken, too, and come back as those it now wrote.
    if owners.yield_to(&difference, None, true).is_ok() {
        let written = without_identity(&difference.modified.union(&difference.added));
        if !written.is_empty() {
            owners.add(writer, &written);
        }
    }
    owners.cap();
}

/// An object of the same kind with nothing in it.
pub(super) fn nothing_of(object: &Value) -> Value {
    let mut nothing = json!({});
    for name in ["apiVersion", "kind"] {
        if let Some(value) = object.get(name) {
            nothing[name] = value.clone();
        }
    }
    nothing
}

fn uid(object: &Value) -> &str {
    object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default()
}

fn owners_before(old: &Value, new: &Value, writer: &Writer<'_>) -> Owners {
    let of_old = || Owners::read(old).unwrap_or_default();
    if !writer.subresource.is_empty() {
        return of_old();
    }
    match new.pointer("/metadata/managedFields").and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => Owners::default(),
        Some([only]) if only.as_object().is_some_and(serde_json::Map::is_empty) => Owners::default(),
        _ => Owners::read(new).ok().filter(|owners| !owners.owned.is_empty()).unwrap_or_else(of_old),
    }
}

/// Keeps the times of `old`'s managed fields in `new` when they are all that differs. To be called again when `new` is changed after
/// [`update`] or [`apply`], right before it is stored: whether something else differs shows only then.
pub fn keep_times(old: &Value, new: &mut Value) {
    let entries = |object: &Value| object.pointer("/metadata/managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
    let untimed = |object: &Value| {
        let mut object = object.clone();
        if let Some(entries) = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) {
            entries.iter_mut().filter_map(Value::as_object_mut).for_each(|entry| drop(entry.remove("time")));
        }
        object
    };
    let before = entries(old);
    if before.len() == entries(new).len() && !before.is_empty() && same(&untimed(old), &untimed(new)) {
        new["metadata"]["managedFields"] = before.into();
    }
}
