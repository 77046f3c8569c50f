//! Server-side apply.
//!
//! Pure: from a live object and an applied configuration to the merged object, as `structured-merge-diff/v4/merge` and
//! `apimachinery/pkg/util/managedfields` do it.

use serde_json::Value;

use super::check::{Duplicates, check};
use super::fields::{Path, Set, show};
use super::last_applied;
use super::managed::{Operation, Reset, Writer, keep_times, nothing_of, record, without_identity};
use super::merge::{Difference, merge};
use super::owners::{Owned, Owner, Owners};
use super::shape::Place;
use super::walk::{remove, same, set_of, with_named_fields};
use crate::embedded::errors::{Cause, Refusal};
use crate::embedded::schema::node::Node;

/// Applies `config` onto `live` (`None`: creates). The result has its managed fields set.
///
/// What the manager applied before and does not apply any more is removed, unless others own it. An object nobody owns anything of is
/// first given to `before-first-apply`. An apply that changes no value leaves the time of the manager's entry (a new one has none). The
/// manager `kubectl` may change what it applied client-side ([`last_applied`]).
///
/// # Errors
/// 409 if another manager owns what the configuration changes, unless forced; 400 for a configuration of another kind or with managed
/// fields; 500 without a reason, as upstream, for one that does not fit the schema (an undeclared field, two entries of the same key, an
/// entry without its key).
pub fn apply(root: &Node, live: Option<&Value>, config: &Value, force: bool, writer: &Writer<'_>, reset: Reset) -> Result<Value, Refusal> {
    let live = live.cloned().unwrap_or_else(|| nothing_of(config));
    let request = Request { place: Place::root(root), live: &live, config, writer, reset };
    let applied = match request.attempt(force) {
        Err(Failure::Conflicts(conflicts)) if writer.manager == last_applied::MANAGER => {
            let allowed = last_applied::allowed(request.place, &live, writer.api_version);
            let left: Vec<(Owner, Path)> = conflicts.into_iter().filter(|(_, path)| !allowed.has(path)).collect();
            if left.is_empty() { request.attempt(true) } else { Err(Failure::Conflicts(left)) }
        }
        other => other,
    };
    let mut merged = applied.map_err(|failure| match failure {
        Failure::Conflicts(conflicts) => conflict(&conflicts),
        Failure::Refused(refusal) => refusal,
    })?;
    if writer.manager == last_applied::MANAGER {
        last_applied::follow(&mut merged, config);
    }
    keep_times(&live, &mut merged);
    Ok(merged)
}

/// Why an attempt came to nothing.
enum Failure {
    /// Others own these.
    Conflicts(Vec<(Owner, Path)>),
    /// Whoever owns what.
    Refused(Refusal),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

#[derive(Clone, Copy)]
struct Request<'a> {
    place: Place<'a>,
    live: &'a Value,
    config: &'a Value,
    writer: &'a Writer<'a>,
    reset: Reset,
}

impl Request<'_> {
    fn attempt(self, force: bool) -> Result<Value, Failure> {
        let Self { live, config, writer, .. } = self;
        let mut owners = Owners::read(live).map_err(|error| unexplained(format!("failed to decode managed fields: {error}")))?;
        if text(config, "/apiVersion") != writer.api_version || text(config, "/kind") != text(live, "/kind") {
            return Err(Refusal::bad_request(format!("invalid object type: {}", kind_of(config))).into());
        }
        self.give_to_before_first_apply(&mut owners)?;
        if config.pointer("/metadata/managedFields").is_some_and(Value::is_array) {
            return Err(Refusal::bad_request("metadata.managedFields must be nil").into());
        }
        check(self.place, config, Duplicates::Refused)
            .map_err(|error| unexplained(format!("failed to create typed patch object ({}): {error}", about(config))))?;
        check(self.place, live, Duplicates::Allowed)
            .map_err(|error| unexplained(format!("failed to create typed live object ({}): {error}", about(live))))?;
        let mut merged = self.take(&mut owners, force).map_err(Failure::Conflicts)?;
        if same(live, &merged) {
            merged.clone_from(live);
        } else {
            owners.times.insert(Owner::of(writer), writer.time.into());
        }
        owners.write(&mut merged);
        Ok(merged)
    }

    fn give_to_before_first_apply(self, owners: &mut Owners) -> Result<(), Refusal> {
        if owners.owned.is_empty() {
            check(self.place, self.live, Duplicates::Allowed).map_err(|error| {
                let why = format!("failed to convert new object ({}) to smd typed: {error}", about(self.live));
                unexplained(format!("failed to create manager for existing fields: {why}"))
            })?;
            let before = Writer { manager: "before-first-apply", operation: Operation::Update, ..*self.writer };
            record(owners, self.place, &nothing_of(self.live), self.live, &before, self.reset);
        }
        Ok(())
    }

    /// Merges, removes what is no longer applied, and gives the manager exactly the paths of its configuration.
    fn take(self, owners: &mut Owners, force: bool) -> Result<Value, Vec<(Owner, Path)>> {
        let Self { place, live, config, writer, reset } = self;
        owners.reconcile(place);
        let owner = Owner::of(writer);
        let merged = merge(place, Some(live), Some(config)).unwrap_or_default();
        let set = reset.filter(&set_of(place, config));
        let last = owners.owned.insert(owner.clone(), Owned { set, api_version: writer.api_version.into() });
        let merged = match last {
            Some(last) if !last.set.is_empty() => prune(place, &merged, owners, &last.set),
            _ => merged,
        };
        let difference = Difference::between(place, live, &merged).without(&reset.paths());
        owners.yield_to(&difference, Some(&owner), force)?;
        if let Some(owned) = owners.owned.get_mut(&owner) {
            owned.set = without_identity(&owned.set);
            if owned.set.is_empty() {
                owners.owned.remove(&owner);
            }
        }
        Ok(merged)
    }
}

/// Removes what the manager had (`last`), except what someone has now, and what went only because something around it went.
fn prune(place: Place<'_>, merged: &Value, owners: &Owners, last: &Set) -> Value {
    let named = |set: &Set| with_named_fields(Some(place), set);
    let all = named(&set_of(place, merged));
    let pruned = remove(place, merged, &named(last));
    let owned = owners.owned.values().fold(Set::default(), |all, owned| all.union(&owned.set));
    let kept = named(&set_of(place, &pruned)).union(&named(&owned));
    let pruned = remove(place, merged, &all.difference(&kept));
    let gone = all.difference(&named(&set_of(place, &pruned)));
    remove(place, merged, &gone.intersection(&named(last)))
}

fn conflict(conflicts: &[(Owner, Path)]) -> Refusal {
    let causes: Vec<Cause> = conflicts
        .iter()
        .map(|(owner, path)| Cause::new("FieldManagerConflict", show(path), format!("conflict with {}", owner.shown())))
        .collect();
    let message = match conflicts {
        [(owner, path)] => format!("Apply failed with 1 conflict: conflict with {}: {}", owner.shown(), show(path)),
        several => {
            let mut lines: Vec<String> = Vec::new();
            let mut last = None;
            for (owner, path) in several {
                if last.replace(owner) != Some(owner) {
                    lines.push(format!("conflicts with {}:", owner.shown()));
                }
                lines.push(format!("- {}", show(path)));
            }
            format!("Apply failed with {} conflicts: {}", several.len(), lines.join("\n"))
        }
    };
    Refusal::apply_conflict(message, &causes)
}

/// An error the API server has no status for: 500, its words, no reason.
fn unexplained(message: String) -> Refusal {
    Refusal::unreasoned(500, message)
}

fn text<'a>(object: &'a Value, at: &str) -> &'a str {
    object.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

/// `group/version, Kind=Kind`.
fn kind_of(object: &Value) -> String {
    let version = text(object, "/apiVersion");
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={}", text(object, "/kind"))
}

fn about(object: &Value) -> String {
    format!("{}/{}; {}", text(object, "/metadata/namespace"), text(object, "/metadata/name"), kind_of(object))
}
