//! A structural schema as a tree that pruning, defaulting, validation and apply walk.
//!
//! Pure: types only.

use std::collections::BTreeMap;

use serde_json::Value;

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

/// The value validations of one place. Filled and read by this folder only.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Fields that must be there, in the schema's order.
    pub required: Vec<String>,
}
