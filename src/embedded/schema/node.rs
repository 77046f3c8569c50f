//! A structural schema as a tree that pruning, defaulting, validation and apply walk.
//!
//! Pure: types only.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use super::cel::RuleSet;
use super::formats::Format;

/// What may stand at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Type {
    /// Nothing is said: `x-kubernetes-preserve-unknown-fields` without a type.
    #[default]
    Any,
    /// `object`.
    Object,
    /// `array`.
    Array,
    /// `string`.
    String,
    /// `integer`.
    Integer,
    /// `number`.
    Number,
    /// `boolean`.
    Boolean,
    /// `x-kubernetes-int-or-string`.
    IntOrString,
}

/// Who owns what of a list, `x-kubernetes-list-type`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// The whole list is one value.
    #[default]
    Atomic,
    /// Each value is an entry.
    Set,
    /// Each entry is an object, known by these fields.
    Map(Vec<String>),
}

/// One place of a schema.
#[allow(clippy::struct_excessive_bools, reason = "each is a keyword of the schema document")]
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// What may stand here.
    pub type_: Type,
    /// Named fields of an object.
    pub properties: BTreeMap<String, Node>,
    /// The schema of every other field (`additionalProperties`).
    pub additional: Option<Box<Node>>,
    /// The schema of a list's entries.
    pub items: Option<Box<Node>>,
    /// How a list is merged and owned.
    pub list: ListType,
    /// `x-kubernetes-map-type: atomic`: the object is one value.
    pub atomic: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded: bool,
    /// `null` may stand here.
    pub nullable: bool,
    /// What stands here when nothing does.
    pub default: Option<Value>,
    /// What validation demands, as the schema document says it; the validator compiles what it needs.
    pub rules: Rules,
}

/// The value validations of one place. Filled and read by this folder only, but for `required`.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Fields that must be there, in the schema's order.
    pub required: Vec<String>,
    /// `type` as messages name it: none, one, or `integer` and `string` for int-or-string.
    pub(super) types: Vec<String>,
    /// A `format` that the server knows; others are not looked at.
    pub(super) format: Option<Format>,
    /// Smallest number, and whether it is itself too small.
    pub(super) minimum: Option<(f64, bool)>,
    /// Greatest number, and whether it is itself too great.
    pub(super) maximum: Option<(f64, bool)>,
    /// `multipleOf`.
    pub(super) multiple_of: Option<f64>,
    /// Fewest characters.
    pub(super) min_length: Option<i64>,
    /// Most characters.
    pub(super) max_length: Option<i64>,
    /// `pattern`.
    pub(super) pattern: Option<Pattern>,
    /// Fewest entries.
    pub(super) min_items: Option<i64>,
    /// Most entries.
    pub(super) max_items: Option<i64>,
    /// `uniqueItems`.
    pub(super) unique_items: bool,
    /// Fewest fields.
    pub(super) min_properties: Option<i64>,
    /// Most fields.
    pub(super) max_properties: Option<i64>,
    /// The only values allowed; empty for any.
    pub(super) allowed: Vec<Value>,
    /// `allOf`.
    pub(super) all_of: Vec<Node>,
    /// `anyOf`.
    pub(super) any_of: Vec<Node>,
    /// `oneOf`.
    pub(super) one_of: Vec<Node>,
    /// `not`.
    pub(super) not: Option<Box<Node>>,
    /// `additionalProperties` was a boolean, so [`Node::additional`] says nothing of its values.
    pub(super) additional_flag: Option<bool>,
    /// `x-kubernetes-validations`.
    pub(super) cel: Option<Arc<RuleSet>>,
    /// Whether this node or one below it has `x-kubernetes-validations`.
    pub(super) cel_below: bool,
}

/// A regular expression that is compiled once.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// As the schema says it.
    pub(super) text: String,
    /// Compiled.
    pub(super) regex: Regex,
}

impl Node {
    /// The schema of a named field: its own, or that of every other field.
    pub(super) fn child(&self, name: &str) -> Option<&Node> {
        self.properties.get(name).or(self.additional.as_deref())
    }

    /// Like [`Node::child`], without what `additionalProperties: true` allows and does not describe.
    pub(super) fn described(&self, name: &str) -> Option<&Node> {
        self.properties.get(name).or_else(|| self.additional.as_deref().filter(|_| self.rules.additional_flag.is_none()))
    }
}
