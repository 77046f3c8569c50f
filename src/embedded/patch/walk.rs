//! From values to sets and back: which paths a value has, a value without some of them, and whether two values are the same.
//!
//! Pure: `tofieldset.go`, `remove.go`, `reconcile_schema.go` of `structured-merge-diff/v4/typed`, and
//! `EnsureNamedFieldsAreMembers` of its sets.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::fields::{Element, Path, Set};
use super::shape::{Form, Place};
use crate::embedded::schema::node::ListType;

/// Whether two values are the same; `1` and `1.0` are.
pub fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64()),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b))),
        (a, b) => a == b,
    }
}

/// Every path that a value has: leaves, entries of lists, fields the schema does not name, empty objects.
pub fn set_of(place: Place<'_>, value: &Value) -> Set {
    let mut set = Set::default();
    collect(place, value, &mut Vec::new(), &mut set);
    set
}

fn collect(place: Place<'_>, value: &Value, path: &mut Path, set: &mut Set) {
    match (place.form(Some(value)), value) {
        (Form::Scalar, _) => set.insert(path),
        (Form::Object, _) if place.atomic_object() => set.insert(path),
        (Form::List, _) if *place.list() == ListType::Atomic => set.insert(path),
        (Form::Object, Value::Object(fields)) => {
            for (name, value) in fields {
                path.push(Element::field(name));
                if let Some(inner) = place.field(name) {
                    collect(inner, value, path, set);
                }
                let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                if empty || !place.declares(name) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        (Form::List, Value::Array(entries)) => collect_entries(place, entries, path, set),
        _ => {}
    }
}

/// Of entries that are there twice only the step itself is a member.
fn collect_entries(place: Place<'_>, entries: &[Value], path: &mut Path, set: &mut Set) {
    let steps: Vec<(Element, &Value)> = entries.iter().filter_map(|entry| Some((place.element(entry).ok()?, entry))).collect();
    let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for (step, _) in &steps {
        if !seen.insert(step) {
            twice.insert(step);
        }
    }
    for (step, entry) in &steps {
        path.push(step.clone());
        if !twice.contains(step) {
            collect(place.items(), entry, path, set);
        }
        set.insert(path);
        path.pop();
    }
}

/// The value without these paths. What loses everything becomes null, as upstream; its own path is in the set where that matters.
pub fn remove(place: Place<'_>, value: &Value, gone: &Set) -> Value {
    match (place.form(Some(value)), value) {
        (Form::Scalar, value) => value.clone(),
        (Form::Object, Value::Object(fields)) if !place.atomic_object() => {
            let mut kept = Map::new();
            for (name, value) in fields {
                let step = Element::field(name);
                if !gone.has_member(&step) {
                    kept.insert(name.clone(), remove_below(place.field(name), value, gone.below(&step)));
                }
            }
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        (Form::List, Value::Array(entries)) if *place.list() != ListType::Atomic => {
            let mut kept = Vec::new();
            for entry in entries {
                match place.element(entry) {
                    Ok(step) if gone.has_member(&step) => {}
                    Ok(step) => kept.push(remove_below(Some(place.items()), entry, gone.below(&step))),
                    Err(_) => kept.push(entry.clone()),
                }
            }
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        _ => Value::Null,
    }
}

fn remove_below(place: Option<Place<'_>>, value: &Value, gone: Option<&Set>) -> Value {
    match (place, gone) {
        (_, None) => value.clone(),
        (_, Some(gone)) if gone.is_empty() => value.clone(),
        (Some(place), Some(gone)) => remove(place, value, gone),
        (None, Some(_)) => Value::Null,
    }
}

/// The set with every field the schema names that has members below it: such objects are members only when they are empty, but they
/// go when all that is in them goes.
pub fn with_named_fields(place: Option<Place<'_>>, set: &Set) -> Set {
    let may_be = |form| place.filter(|place| place.sure_form(None).is_none_or(|only| only == form));
    let mut named = Set::default();
    for member in set.members() {
        named.insert(std::slice::from_ref(member));
    }
    for (step, below) in set.children() {
        let inner = match step {
            Element::Field(name) => {
                if may_be(Form::Object).is_some_and(|place| place.declares(name)) {
                    named.insert(std::slice::from_ref(step));
                }
                may_be(Form::Object).and_then(|place| place.field(name))
            }
            Element::Key(_) => may_be(Form::List).map(Place::items),
            Element::Value(_) | Element::Index(_) => None,
        };
        named.put(step.clone(), with_named_fields(inner, below));
    }
    named
}

/// The set as this schema would have it: a place that is owned as a whole now, and of which parts are owned from a time when it was not,
/// becomes owned as a whole.
pub fn reconcile(place: Place<'_>, set: &Set) -> Set {
    let mut whole = Set::default();
    find_whole(place, Some(set), false, &mut Vec::new(), &mut whole);
    set.without(&whole).union(&whole)
}

/// Collects the places to be owned as a whole. `owned`: the place itself is, and nothing below it.
fn find_whole(place: Place<'_>, set: Option<&Set>, owned: bool, path: &mut Path, whole: &mut Set) {
    let form = place.form(None);
    let descend = match form {
        Form::Scalar => return,
        Form::List if !owned && *place.list() == ListType::Atomic => return whole.insert(path),
        Form::Object if place.is_deduced_object() => return,
        Form::Object if !owned && place.atomic_object() => {
            if set.is_some_and(|set| !set.is_empty()) {
                whole.insert(path);
            }
            return;
        }
        Form::List | Form::Object => set,
    };
    let Some(set) = descend else { return };
    let steps: BTreeSet<&Element> = set.members().chain(set.children().map(|(step, _)| step)).collect();
    for step in steps {
        let inner = match (form, step) {
            (Form::List, _) => Some(place.items()),
            (_, Element::Field(name)) => place.field(name),
            _ => place.field(""),
        };
        if let Some(inner) = inner {
            path.push(step.clone());
            let below = set.below(step);
            find_whole(inner, below, set.has_member(step) && below.is_none(), path, whole);
            path.pop();
        }
    }
}
