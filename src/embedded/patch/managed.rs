//! Who manages which fields.

use serde_json::Value;

use crate::embedded::errors::Refusal;
use crate::embedded::schema::node::Node;

/// How a manager writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Everything else.
    Update,
}

/// Who writes, and how.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The field manager.
    pub manager: &'a str,
    /// How it writes.
    pub operation: Operation,
    /// `group/version` of the request.
    pub api_version: &'a str,
    /// `status`, or `""`.
    pub subresource: &'a str,
    /// RFC 3339, whole seconds.
    pub time: &'a str,
}

/// What an endpoint resets, which nobody can own through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Nothing.
    None,
    /// `status`.
    Status,
    /// Everything else.
    AllButStatus,
}

/// Sets the managed fields of `new`.
pub fn update(_root: &Node, _old: Option<&Value>, _new: &mut Value, _writer: &Writer<'_>) {}

/// Server-side apply.
pub fn apply(
    _root: &Node,
    live: Option<&Value>,
    config: &Value,
    _force: bool,
    _writer: &Writer<'_>,
    _reset: Reset,
) -> Result<Value, Refusal> {
    let mut merged = live.cloned().unwrap_or_else(|| config.clone());
    json_patch::merge(&mut merged, config);
    Ok(merged)
}
