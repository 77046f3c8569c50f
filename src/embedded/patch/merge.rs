//! Merging an applied configuration into what is there, and telling two objects apart.
//!
//! Pure: `merge.go`, `compare.go` of `structured-merge-diff/v4/typed`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::fields::{Element, Path, Set};
use super::shape::{Form, Place};
use super::walk::same;
use crate::embedded::schema::node::ListType;

/// `applied` over `live`: nothing is removed, and where both have a leaf, that of `applied` stays. Shared entries of lists come in the
/// order of `applied`. `None` when there is nothing to say.
pub fn merge(place: Place<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let form = if applied.is_none() { place.form(live) } else { place.form(applied) };
    let whole = || applied.or(live).cloned();
    match form {
        Form::Scalar => whole(),
        Form::Object => {
            let (old, new) = (fields(live), fields(applied));
            if place.atomic_object() || (old.is_none() && new.is_none()) {
                return whole();
            }
            let names: BTreeSet<&String> = old.iter().chain(&new).flat_map(|fields| fields.keys()).collect();
            let mut merged = Map::new();
            for name in names {
                let (old, new) = (old.and_then(|fields| fields.get(name)), new.and_then(|fields| fields.get(name)));
                let value = place.field(name).map_or_else(|| new.or(old).cloned(), |place| merge(place, old, new));
                merged.extend(value.map(|value| (name.clone(), value)));
            }
            (!merged.is_empty()).then_some(Value::Object(merged))
        }
        Form::List => {
            let (old, new) = (entries(live), entries(applied));
            if *place.list() == ListType::Atomic || (old.is_empty() && new.is_empty()) {
                return whole();
            }
            let merged = merge_lists(place, old, new);
            (!merged.is_empty()).then_some(Value::Array(merged))
        }
    }
}

/// The fields of an object that has any.
fn fields(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object).filter(|fields| !fields.is_empty())
}

fn entries(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn indexed<'a>(place: Place<'_>, entries: &'a [Value]) -> Vec<(Element, &'a Value)> {
    entries.iter().filter_map(|entry| Some((place.element(entry).ok()?, entry))).collect()
}

/// Entries that only `live` has keep their place before the shared entry that follows them; all others come as in `applied`.
fn merge_lists(place: Place<'_>, live: &[Value], applied: &[Value]) -> Vec<Value> {
    let (left, right) = (indexed(place, live), indexed(place, applied));
    let mut of_left: BTreeMap<&Element, &Value> = BTreeMap::new();
    for (step, entry) in &left {
        // Of entries that are there twice none is merged into.
        of_left.entry(step).and_modify(|value| *value = &Value::Null).or_insert(entry);
    }
    let in_right: BTreeSet<&Element> = right.iter().map(|(step, _)| step).collect();
    let mut shared = right.iter().map(|(step, _)| step).filter(|step| of_left.contains_key(step)).peekable();
    let (mut merged, mut taken) = (Vec::new(), BTreeSet::new());
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        let (old, new) = (left.get(l), right.get(r));
        let step_new = new.map(|(step, _)| step);
        if let Some((step, entry)) = old.filter(|(step, _)| Some(step) != step_new) {
            let waits = in_right.contains(step) && shared.peek().is_some_and(|wanted| *wanted != step);
            if new.is_some() && waits {
                l += 1;
                continue;
            }
            if !in_right.contains(step) {
                merged.extend(merge(place.items(), Some(entry), None));
                l += 1;
                continue;
            }
            if taken.contains(step) {
                l += 1;
            }
        }
        if let Some((step, entry)) = new {
            l += usize::from(old.is_some_and(|(left, _)| left == step));
            r += 1;
            taken.insert(step);
            merged.extend(merge(place.items(), of_left.get(step).copied(), Some(entry)));
            shared.next_if(|wanted| *wanted == step);
        }
    }
    merged
}

/// How a second object differs from a first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// What only the first has.
    pub removed: Set,
    /// What both have, with other values.
    pub modified: Set,
    /// What only the second has.
    pub added: Set,
}

impl Difference {
    /// Tells two objects of the same schema apart.
    pub fn between(place: Place<'_>, old: &Value, new: &Value) -> Self {
        let mut difference = Self::default();
        difference.compare(place, Some(old), Some(new), &mut Vec::new());
        difference
    }

    /// The difference without these paths and all below them.
    #[must_use]
    pub fn without(&self, paths: &Set) -> Self {
        Self { removed: self.removed.without(paths), modified: self.modified.without(paths), added: self.added.without(paths) }
    }

    fn compare(&mut self, place: Place<'_>, old: Option<&Value>, new: Option<&Value>, path: &mut Path) {
        let other_form = old.is_some() && new.is_some() && place.sure_form(old) != place.sure_form(new);
        if other_form {
            self.compare_as(place.form(old), place, old, new, path);
        }
        let is_leaf = self.compare_as(if new.is_none() { place.form(old) } else { place.form(new) }, place, old, new, path);
        match (old, new) {
            (None, _) if !is_leaf => self.added.insert(path),
            (_, None) if !is_leaf => self.removed.insert(path),
            _ => {}
        }
    }

    /// Compares as if both had this form. Returns whether they were compared as one value.
    fn compare_as(&mut self, form: Form, place: Place<'_>, old: Option<&Value>, new: Option<&Value>, path: &mut Path) -> bool {
        match form {
            Form::Scalar => self.leaf(old, new, path),
            Form::Object => {
                let (left, right) = (fields(old), fields(new));
                if place.atomic_object() || (left.is_none() && right.is_none()) {
                    return self.leaf(old, new, path);
                }
                let names: BTreeSet<&String> = left.iter().chain(&right).flat_map(|fields| fields.keys()).collect();
                for name in names {
                    path.push(Element::field(name));
                    let (old, new) = (left.and_then(|fields| fields.get(name)), right.and_then(|fields| fields.get(name)));
                    if let Some(place) = place.field(name) {
                        self.compare(place, old, new, path);
                    }
                    path.pop();
                }
                false
            }
            Form::List => {
                let (left, right) = (entries(old), entries(new));
                if *place.list() == ListType::Atomic || (left.is_empty() && right.is_empty()) {
                    return self.leaf(old, new, path);
                }
                self.lists(place, left, right, path);
                false
            }
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>, path: &Path) -> bool {
        match (old, new) {
            (None, _) => self.added.insert(path),
            (_, None) => self.removed.insert(path),
            (Some(old), Some(new)) if !same(old, new) => self.modified.insert(path),
            _ => {}
        }
        true
    }

    /// Entries that are there twice are compared together, as one value.
    fn lists(&mut self, place: Place<'_>, old: &[Value], new: &[Value], path: &mut Path) {
        let mut by_step: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for (step, entry) in indexed(place, old) {
            by_step.entry(step).or_default().0.push(entry);
        }
        for (step, entry) in indexed(place, new) {
            by_step.entry(step).or_default().1.push(entry);
        }
        for (step, (old, new)) in by_step {
            path.push(step);
            match (old.as_slice(), new.as_slice()) {
                ([_, _, ..], [_, _, ..]) => {
                    if old.len() != new.len() || !old.iter().zip(&new).all(|(old, new)| same(old, new)) {
                        self.modified.insert(path);
                    }
                }
                ([_, _, ..], once) => {
                    if let Some(entry) = once.first() {
                        self.compare(place.items(), None, Some(entry), path);
                    }
                    self.removed.insert(path);
                }
                (once, [_, _, ..]) => {
                    if let Some(entry) = once.first() {
                        self.compare(place.items(), Some(entry), None, path);
                    }
                    self.added.insert(path);
                }
                (old, new) => self.compare(place.items(), old.first().copied(), new.first().copied(), path),
            }
            path.pop();
        }
    }
}
