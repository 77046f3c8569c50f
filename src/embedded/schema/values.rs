//! Whether a value is what its schema demands (kube-openapi `validation/validate`, with the ratcheting of apiextensions-apiserver).
//!
//! Pure: from a value to what is wrong with it. Fields are looked at in the order of their names, where upstream takes Go's random order.

use serde_json::{Map, Value};

use super::super::errors::Cause;
use super::messages::{invalid, invalid_shown, required, too_many, type_invalid};
use super::node::{ListType, Node};
use super::path::Path;
use super::ratchet;
use super::scalars;

/// What is wrong at and below a place.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    issues: Vec<Issue>,
    /// How many checks were passed; of several alternatives that fail, the one with most is told.
    matched: u32,
}

/// One thing that is wrong.
#[derive(Debug)]
pub(super) struct Issue {
    /// The sentence; the same sentence is told once.
    said: String,
    /// `None` for a sentence about several schemas, which upstream tells without a field.
    field: Option<String>,
    cause: Cause,
}

impl Issue {
    /// Something wrong at a path: `cause` gets its field later.
    pub(super) fn new(path: String, said: String, cause: impl FnOnce(&str) -> Cause) -> Self {
        let cause = cause(&said);
        Self { said, field: Some(path), cause }
    }

    fn of_schemas(said: String) -> Self {
        let cause = invalid_shown("", "\"\"", &said);
        Self { said, field: None, cause }
    }

    /// The cause, below `base`: empty, or the field under which this value stands.
    fn into_cause(self, base: &str) -> Cause {
        let name = self.field.unwrap_or_default();
        let name = name.strip_prefix('.').unwrap_or(&name);
        let field = match (base.is_empty(), name.is_empty()) {
            (true, true) => "<nil>".to_owned(),
            (true, false) => name.to_owned(),
            (false, true) => base.to_owned(),
            (false, false) => format!("{base}.{name}"),
        };
        Cause { field, ..self.cause }
    }
}

impl Outcome {
    fn add(&mut self, issue: Issue) {
        if self.issues.iter().all(|known| known.said != issue.said) {
            self.issues.push(issue);
        }
    }

    fn extend(&mut self, issues: impl IntoIterator<Item = Issue>) {
        for issue in issues {
            self.add(issue);
        }
    }

    fn merge(&mut self, other: Self) {
        self.matched += other.matched;
        self.extend(other.issues);
    }

    fn is_valid(&self) -> bool {
        self.issues.is_empty()
    }
}

/// Checks a value below `base`, the field it stands under. With an old value, what was wrong before and did not change passes.
pub(super) fn validate(node: &Node, value: &Value, old: Option<&Value>, base: &str) -> Vec<Cause> {
    let outcome = ratcheted(node, value, &Path::Root, old);
    outcome.issues.into_iter().map(|issue| issue.into_cause(base)).collect()
}

fn ratcheted(node: &Node, value: &Value, path: &Path<'_>, old: Option<&Value>) -> Outcome {
    let mut outcome = check(node, value, path, old);
    if !outcome.is_valid() && old.is_some_and(|old| ratchet::unchanged(node, value, old)) {
        outcome.issues.clear();
    }
    outcome
}

/// One value. The counts are those of upstream, check by check.
fn check(node: &Node, value: &Value, path: &Path<'_>, old: Option<&Value>) -> Outcome {
    let mut outcome = Outcome::default();
    let rules = &node.rules;
    let typed = scalars::wrong_type(node, value, path);
    if value.is_null() {
        outcome.matched += u32::from(typed.is_none());
        outcome.extend(typed.into_iter().chain(scalars::not_allowed(rules, value, path)));
        return outcome;
    }
    if !rules.types.is_empty() || rules.format.is_some() {
        outcome.matched += 1 + u32::from(typed.is_none());
        outcome.extend(typed);
    }
    alternatives(node, value, path, &mut outcome);
    match value {
        Value::String(text) => {
            outcome.extend(scalars::string(rules, text, path));
            outcome.matched += 1;
            if let Some(format) = &rules.format {
                outcome.extend(scalars::formatted(format, text, path));
                outcome.matched += 1;
            }
        }
        Value::Number(number) => {
            outcome.extend(scalars::number(rules, number, path));
            outcome.matched += 2;
        }
        Value::Array(entries) => list(node, entries, path, old, &mut outcome),
        _ => {}
    }
    outcome.extend(scalars::not_allowed(rules, value, path));
    outcome.matched += 2;
    if let Value::Object(fields) = value {
        object(node, fields, path, old, &mut outcome);
        outcome.matched += 1;
    }
    outcome
}

fn list(node: &Node, entries: &[Value], path: &Path<'_>, old: Option<&Value>, outcome: &mut Outcome) {
    if let Some(items) = &node.items {
        let old = old.filter(|_| matches!(node.list, ListType::Map(_)));
        for (index, entry) in entries.iter().enumerate() {
            let previous = old.and_then(|old| ratchet::entry(node, old, entry));
            outcome.merge(ratcheted(items, entry, &Path::Index(path, index), previous));
        }
    }
    let (rules, size) = (&node.rules, entries.len());
    let count = i64::try_from(size).unwrap_or(i64::MAX);
    if let Some(least) = rules.min_items.filter(|least| count < *least) {
        outcome.add(about(path, &format!("should have at least {least} items"), |said| invalid("", &size.into(), said)));
    }
    if let Some(most) = rules.max_items.filter(|most| count > *most) {
        outcome.add(about(path, &format!("should have at most {most} items"), |_| too_many("", size, most)));
    }
    if rules.unique_items && entries.iter().enumerate().any(|(index, entry)| entries[..index].contains(entry)) {
        outcome.add(about(path, "shouldn't contain duplicates", |said| invalid_shown("", "\"\"", said)));
    }
    outcome.matched += 2;
}

fn object(node: &Node, fields: &Map<String, Value>, path: &Path<'_>, old: Option<&Value>, outcome: &mut Outcome) {
    let (rules, size) = (&node.rules, fields.len());
    let count = i64::try_from(size).unwrap_or(i64::MAX);
    if let Some(least) = rules.min_properties.filter(|least| count < *least) {
        outcome.add(about(path, &format!("should have at least {least} properties"), |said| invalid("", &size.into(), said)));
    }
    if let Some(most) = rules.max_properties.filter(|most| count > *most) {
        outcome.add(about(path, &format!("should have at most {most} properties"), |_| too_many("", size, most)));
    }
    let previous = |name: &str| {
        let is_type = path.is_root() && (name == "kind" || name == "apiVersion");
        old.filter(|_| !is_type).and_then(|old| old.get(name))
    };
    for (name, value) in fields.iter().filter(|(name, _)| !node.properties.contains_key(*name)) {
        if rules.additional_flag == Some(false) {
            let here = path.open_api();
            let said = format!("{here}.{name} in body is a forbidden property");
            outcome.add(Issue::new(here, said, |said| invalid("", &name.as_str().into(), said)));
        } else if let Some(child) = node.described(name) {
            outcome.merge(ratcheted(child, value, &Path::Key(path, name), previous(name)));
        }
    }
    // Walking the object's own names is shorter than the schema's for most objects, and both are sorted.
    for (name, value) in fields {
        if let Some(property) = node.properties.get(name) {
            outcome.merge(ratcheted(property, value, &Path::Field(path, name), previous(name)));
        }
    }
    for name in rules.required.iter().filter(|name| !fields.contains_key(*name)) {
        let missing = format!("{}.{name}", path.open_api());
        let said = format!("{missing} in body is required");
        outcome.add(Issue::new(missing, said, |_| required("", "")));
    }
}

/// `anyOf`, `oneOf`, `allOf` and `not`. Nothing below them is ratcheted.
fn alternatives(node: &Node, value: &Value, path: &Path<'_>, outcome: &mut Outcome) {
    let rules = &node.rules;
    if !rules.any_of.is_empty() {
        any_of(&rules.any_of, value, path, outcome);
    }
    if !rules.one_of.is_empty() {
        one_of(&rules.one_of, value, path, outcome);
    }
    if !rules.all_of.is_empty() {
        let mut passed = 0;
        for schema in &rules.all_of {
            let result = check(schema, value, path, None);
            passed += usize::from(result.is_valid());
            outcome.merge(result);
        }
        if passed != rules.all_of.len() {
            let extent = if passed == 0 { ". None validated" } else { "" };
            outcome.add(schemas(path, &format!("must validate all the schemas (allOf){extent}")));
        }
    }
    if rules.not.as_ref().is_some_and(|schema| check(schema, value, path, None).is_valid()) {
        outcome.add(schemas(path, "must not validate the schema (not)"));
    }
    outcome.matched += 2;
}

fn any_of(schemas_: &[Node], value: &Value, path: &Path<'_>, outcome: &mut Outcome) {
    let mut best: Option<Outcome> = None;
    for schema in schemas_ {
        let result = check(schema, value, path, None);
        if result.is_valid() {
            outcome.merge(result);
            return;
        }
        if best.as_ref().is_none_or(|best| result.matched > best.matched) {
            best = Some(result);
        }
    }
    outcome.add(schemas(path, "must validate at least one schema (anyOf)"));
    outcome.merge(best.unwrap_or_default());
}

fn one_of(schemas_: &[Node], value: &Value, path: &Path<'_>, outcome: &mut Outcome) {
    let (mut first, mut best): (Option<Outcome>, Option<Outcome>) = (None, None);
    let mut passed = 0;
    for schema in schemas_ {
        let result = check(schema, value, path, None);
        if result.is_valid() {
            passed += 1;
            first = first.or(Some(result));
        } else if passed == 0 && best.as_ref().is_none_or(|best| result.matched > best.matched) {
            best = Some(result);
        }
    }
    match passed {
        1 => outcome.merge(first.unwrap_or_default()),
        0 => {
            outcome.add(schemas(path, "must validate one and only one schema (oneOf). Found none valid"));
            outcome.merge(best.unwrap_or_default());
        }
        several => {
            outcome.add(schemas(path, &format!("must validate one and only one schema (oneOf). Found {several} valid alternatives")));
        }
    }
}

fn schemas(path: &Path<'_>, what: &str) -> Issue {
    Issue::of_schemas(format!("{} {what}", super::messages::quoted(&path.open_api())))
}

/// An issue whose sentence is `<path> in body <what>`.
pub(super) fn about(path: &Path<'_>, what: &str, cause: impl FnOnce(&str) -> Cause) -> Issue {
    let path = path.open_api();
    let said = format!("{path} in body {what}");
    Issue::new(path, said, cause)
}

/// An issue of a type: `<path> in body must be of type <wanted>: "<found>"`.
pub(super) fn mistyped(path: &Path<'_>, wanted: &str, found: &str) -> Issue {
    let what = format!("must be of type {wanted}: {}", super::messages::quoted(found));
    about(path, &what, |said| type_invalid("", found, said))
}
