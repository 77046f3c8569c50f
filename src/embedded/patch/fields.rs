//! Paths into an object, and sets of them: who owns what is said with these.
//!
//! Pure: the algebra of `structured-merge-diff/v4/fieldpath`. A set is a tree; that a place has children in the set does not make the
//! place itself a member.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

/// A value of a set or of a key, ordered: numbers, strings, booleans, lists, objects, null. `1` and `1.0` are the same.
#[derive(Clone, Debug)]
pub struct Scalar(pub Value);

impl Scalar {
    fn rank(&self) -> u8 {
        match self.0 {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default()),
            },
            (Value::String(a), Value::String(b)) => a.cmp(b),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Null, Value::Null) => Ordering::Equal,
            (a, b) => self.rank().cmp(&other.rank()).then_with(|| a.to_string().cmp(&b.to_string())),
        }
    }
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}

/// One step of a path. The order is the one sets are printed in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// A field of an object.
    Field(String),
    /// The entry of a list that has these values in these fields, sorted by field.
    Key(Vec<(String, Scalar)>),
    /// A value of a list that is a set.
    Value(Scalar),
    /// The entry at this place of a list.
    Index(i64),
}

impl Element {
    /// The field of that name.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }
}

impl fmt::Display for Element {
    /// As messages show it: `.spec`, `[name="x"]`, `[="finalizer"]`, `[0]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let each: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", value.0)).collect();
                write!(f, "[{}]", each.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", value.0),
            Self::Index(at) => write!(f, "[{at}]"),
        }
    }
}

/// Steps from the object's root.
pub type Path = Vec<Element>;

/// A path as messages show it: `.spec.nodes[name="x"].size`.
pub fn show(path: &[Element]) -> String {
    path.iter().map(Element::to_string).collect()
}

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    members: BTreeSet<Element>,
    children: BTreeMap<Element, Set>,
}

impl Set {
    /// The set of these paths.
    pub fn of(paths: impl IntoIterator<Item = Path>) -> Self {
        let mut set = Self::default();
        paths.into_iter().for_each(|path| set.insert(&path));
        set
    }

    /// Adds a path; the empty one, the whole object, is never a member.
    pub fn insert(&mut self, path: &[Element]) {
        match path {
            [] => {}
            [last] => {
                self.members.insert(last.clone());
            }
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    /// Puts a set below a place; an empty one leaves no trace.
    pub fn put(&mut self, at: Element, set: Self) {
        if !set.is_empty() {
            self.children.insert(at, set);
        }
    }

    /// Whether the path itself is a member.
    pub fn has(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.members.contains(last),
            [first, rest @ ..] => self.children.get(first).is_some_and(|set| set.has(rest)),
        }
    }

    /// Whether the place directly below the root is a member.
    pub fn has_member(&self, at: &Element) -> bool {
        self.members.contains(at)
    }

    /// The members directly below the root.
    pub fn members(&self) -> impl Iterator<Item = &Element> {
        self.members.iter()
    }

    /// The places directly below the root that have members below them.
    pub fn children(&self) -> impl Iterator<Item = (&Element, &Self)> {
        self.children.iter()
    }

    /// What is below one place, if anything.
    pub fn below(&self, at: &Element) -> Option<&Self> {
        self.children.get(at)
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    /// Members of either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.members.extend(other.members.iter().cloned());
        for (at, set) in &other.children {
            let joined = both.children.get(at).map_or_else(|| set.clone(), |mine| mine.union(set));
            both.children.insert(at.clone(), joined);
        }
        both
    }

    /// Members of both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut shared = Self { members: self.members.intersection(&other.members).cloned().collect(), ..Self::default() };
        for (at, mine) in &self.children {
            if let Some(theirs) = other.children.get(at) {
                shared.put(at.clone(), mine.intersection(theirs));
            }
        }
        shared
    }

    /// Members of this one and not of the other. What is below a member of the other stays.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut rest = Self { members: self.members.difference(&other.members).cloned().collect(), ..Self::default() };
        for (at, mine) in &self.children {
            rest.put(at.clone(), other.children.get(at).map_or_else(|| mine.clone(), |theirs| mine.difference(theirs)));
        }
        rest
    }

    /// Members of this one that are neither members of the other nor below one.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut rest = Self { members: self.members.difference(&other.members).cloned().collect(), ..Self::default() };
        for (at, mine) in self.children.iter().filter(|(at, _)| !other.members.contains(at)) {
            rest.put(at.clone(), other.children.get(at).map_or_else(|| mine.clone(), |theirs| mine.without(theirs)));
        }
        rest
    }

    /// Every member, those of a place before those below it.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Path, paths: &mut Vec<Path>) {
        for member in &self.members {
            paths.push(prefix.iter().chain([member]).cloned().collect());
        }
        for (at, set) in &self.children {
            prefix.push(at.clone());
            set.collect(prefix, paths);
            prefix.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> Path {
        text.split('.').map(Element::field).collect()
    }

    fn set(paths: &[&str]) -> Set {
        Set::of(paths.iter().map(|text| path(text)))
    }

    #[test]
    fn sets_are_joined_and_told_apart_place_by_place() {
        let (left, right) = (set(&["a", "a.b", "a.c.d", "e"]), set(&["a.b", "a.c", "e.f", "g"]));
        assert_eq!(left.union(&right), set(&["a", "a.b", "a.c", "a.c.d", "e", "e.f", "g"]));
        assert_eq!(left.intersection(&right), set(&["a.b"]));
        assert_eq!(left.difference(&right), set(&["a", "a.c.d", "e"]), "what is below a member of the other stays");
        assert_eq!(left.without(&right), set(&["a", "e"]), "what is below a member of the other goes");
    }

    #[test]
    fn a_place_is_no_member_because_something_below_it_is() {
        let set = set(&["a.b"]);
        assert!(set.has(&path("a.b")) && !set.has(&path("a")) && !set.has(&path("a.b.c")) && !set.has(&[]));
        assert!(set.difference(&set).is_empty());
    }

    #[test]
    fn a_path_reads_as_in_messages() {
        let entry = Element::Key(vec![("name".into(), Scalar(json!("x"))), ("port".into(), Scalar(json!(80)))]);
        let path = [Element::field("spec"), Element::field("nodes"), entry, Element::Value(Scalar(json!("v"))), Element::Index(2)];
        assert_eq!(show(&path), r#".spec.nodes[name="x",port=80][="v"][2]"#);
    }

    #[test]
    fn a_whole_number_is_the_same_with_and_without_a_point() {
        assert_eq!(Scalar(json!(1)), Scalar(json!(1.0)));
        assert!(Scalar(json!(2)) < Scalar(json!(10)) && Scalar(json!(10)) < Scalar(json!("2")));
    }
}
