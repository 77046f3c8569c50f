//! Writes of which whoever asked never heard the end: what became of them, by what came later.
//!
//! Pure: lines to lines.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Line, Shown};

/// Tells of each write that was cut off what came of it, where anything shows that.
pub(super) fn tell(lines: &mut [Line], shown: &Shown) {
    for (at, version, generations) in cut_off(lines, shown) {
        lines[at].was_done_as(version, generations);
    }
    for (at, object) in created_unheard(lines, shown) {
        (lines[at].response_object, lines[at].response_status.code) = (object, 201);
    }
}

/// The writes of the server behind a virtual workspace that were cut off in the middle and done all the same, with the versions that they made
/// and by how much they raised the generation.
///
/// Nothing says so but what was there later: a version right after the one that was changed, which no line made and whose next change names it, or
/// the same new content in what somebody made without naming what was there before.
fn cut_off(lines: &[Line], shown: &Shown) -> Vec<(usize, u64, i64)> {
    let made = lines.iter().filter_map(|line| Some(((line.uid()?.to_owned(), line.version()?), line)));
    let made: BTreeMap<(String, u64), &Line> = made.collect();
    let named = lines.iter().filter_map(|line| Some((line.uid()?.to_owned(), line.base()?)));
    let states = shown.keys().cloned().chain(named).filter(|state| !made.contains_key(state));
    let mut unexplained: BTreeSet<(String, u64)> = states.collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.is_inner && line.verb == "update" && line.is_unheard()) {
        let Some((uid, base)) = line.uid().zip(line.base()) else { continue };
        let from = (uid.to_owned(), base + 1);
        let next = made.range(from.clone()..=(uid.to_owned(), u64::MAX)).next();
        let end = next.map_or(u64::MAX, |((_, version), _)| *version);
        let known = unexplained.range(from..(uid.to_owned(), end)).next().cloned();
        let before = made.get(&(uid.to_owned(), base));
        let carried_on = || {
            let (_, next) = next.filter(|(_, next)| next.base().is_none())?;
            line.is_carried_on(before?, next).then(|| end - 1)
        };
        if let Some(version) = known.as_ref().map(|(_, version)| *version).or_else(carried_on) {
            let raises = before.is_some_and(|before| before.response_object["spec"] != line.request_object["spec"]);
            found.push((at, version, i64::from(raises)));
        }
        if let Some(known) = known {
            unexplained.remove(&known);
        }
    }
    found
}

/// The creates of which nobody heard the end and that were done, with what they made: somebody saw an object of that name of which no line tells.
fn created_unheard(lines: &[Line], shown: &Shown) -> Vec<(usize, Value)> {
    let told: BTreeSet<&str> = lines.iter().filter(|line| line.version().is_some()).filter_map(Line::uid).collect();
    let untold = shown.iter().filter(|((uid, _), _)| !told.contains(uid.as_str()));
    let made = untold.filter_map(|(_, (key, object))| {
        let is_its =
            |line: &&Line| line.verb == "create" && line.is_unheard() && line.asked() == Some(&key.workspace) && line.kind() == key.kind;
        let at = lines.iter().rposition(|line| is_its(&line) && line.request_object["metadata"]["name"] == *key.name)?;
        Some((at, object.clone()))
    });
    made.collect()
}

/// Without what a virtual workspace asked of the server behind it for a request that is here itself. One that was given up, since who asked it
/// was killed, may have been done all the same: then its answer is that of the server behind.
pub(super) fn without_echoes(lines: Vec<Line>) -> Vec<Line> {
    let (inner, mut lines): (Vec<Line>, Vec<Line>) = lines.into_iter().partition(|line| line.is_inner);
    let mut asked: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.is_write()) {
        asked.entry(line.meant()).or_default().push(at);
    }
    for line in inner {
        let all = asked.get(&line.meant()).map(Vec::as_slice).unwrap_or_default();
        // Several may write one object at once: whose echo it is its version tells.
        let told = |at: &&usize| lines[**at].is_done() && lines[**at].version() == line.version();
        // On a busy machine the server behind is asked after whoever was killed has stopped asking.
        let may_be = |at: &&usize| {
            let outer = &lines[**at];
            outer.is_unheard() && outer.request_received_timestamp <= line.request_received_timestamp && outer.may_have_become(&line)
        };
        match all.iter().rev().find(may_be).copied() {
            _ if all.iter().any(|at| told(&at)) => {}
            Some(at) if line.is_done() => {
                (lines[at].response_object, lines[at].response_status) = (line.response_object, line.response_status);
            }
            // A refusal is of no consequence, whoever heard it.
            _ if !line.is_done() && !all.is_empty() => {}
            _ => lines.push(line),
        }
    }
    lines
}

impl Line {
    /// Whether what this write was to change of the state before it is found in what somebody made later.
    fn is_carried_on(&self, before: &Self, after: &Self) -> bool {
        let parts: &[&str] = if self.object_ref.subresource == "status" { &["/status"] } else { &["/metadata/finalizers", "/spec"] };
        let mut changed = parts.iter().filter(|at| self.request_object.pointer(at) != before.response_object.pointer(at)).peekable();
        changed.peek().is_some() && changed.all(|at| self.request_object.pointer(at) == after.response_object.pointer(at))
    }

    /// Is known to have been done by now, though nobody heard of it.
    fn was_done_as(&mut self, version: u64, generations: i64) {
        self.response_object = self.request_object.clone();
        if let Some(generation) = self.response_object["metadata"]["generation"].as_i64() {
            self.response_object["metadata"]["generation"] = (generation + generations).into();
        }
        self.response_object["metadata"]["resourceVersion"] = version.to_string().into();
        self.response_status.code = 200;
    }

    /// Whether a virtual workspace can have made that write of it: the same object by its version, or all conditions that it applies.
    fn may_have_become(&self, inner: &Self) -> bool {
        let version = |line: &Self| line.request_object.pointer("/metadata/resourceVersion").cloned();
        let conditions =
            |line: &Self| line.request_object.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        match self.verb.as_str() {
            "update" => version(self) == version(inner),
            "patch" => conditions(self).iter().all(|condition| conditions(inner).contains(condition)),
            _ => true,
        }
    }
}
