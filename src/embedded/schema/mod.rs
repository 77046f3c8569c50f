//! Structural schemas: compiled once for each content and process; prune, default, validate, CEL.
//!
//! The behaviour and the words are those of apiextensions-apiserver 1.32. Where upstream walks a Go map and so has no order, names are sorted.
//!
//! Reading order: `node` (the tree), `compile` with `structural` and `document` (from a document to the tree), `prune`,
//! `default`, `values` with `scalars` and `formats`, `lists`, `cel`, `ratchet` (what did not change passes), `cache`.

mod cache;
mod cel;
mod compile;
mod default;
mod defaults;
mod document;
mod embedded;
mod field_path;
mod formats;
mod lists;
mod messages;
pub mod node;
mod path;
mod patterns;
mod prune;
mod ratchet;
mod scalars;
mod structural;
mod values;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

use super::errors::Cause;
use node::Node;

/// What is told instead of the results of CEL rules when they were not run.
const NOT_CHECKED: &str =
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

/// A compiled schema. Shared by [`Arc`], for it never changes.
#[derive(Debug)]
pub struct Schema {
    root: Node,
}

impl Schema {
    /// Compiles a document: `spec.versions[].schema` of an `APIResourceSchema`, or `openAPIV3Schema` of a CRD.
    ///
    /// # Errors
    ///
    /// What a server would refuse, with paths relative to the document; the document itself is the empty path.
    pub fn compile(open_api: &Value) -> Result<Schema, Vec<Cause>> {
        Self::compile_at(open_api, "")
    }

    /// Like [`Schema::compile`], with paths below `at`: `spec.versions[0].schema.openAPIV3Schema`. Some messages name paths too.
    pub fn compile_at(open_api: &Value, at: &str) -> Result<Schema, Vec<Cause>> {
        Ok(Schema { root: compile::compile(open_api, at)? })
    }

    /// Like [`Schema::compile`], but of the same document only once in a process; of 1024 documents the newest are kept.
    pub fn compiled(open_api: &Value) -> Result<Arc<Schema>, Vec<Cause>> {
        cache::compiled(open_api)
    }

    /// The tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Removes fields that the schema does not know and returns their paths, sorted, as strict validation names them: `spec.foo`,
    /// `spec.nodePools[0].bar`. `apiVersion`, `kind` and `metadata` of the object and of objects within it stay.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(&self.root, object)
    }

    /// Fills in defaults, also below defaults. A null that may not be null gets the default, or goes if there is none.
    pub fn default(&self, object: &mut Value) {
        default::default(&self.root, object);
    }

    /// What is wrong with an object, a new one or an update of `old`. Of an update, what was wrong and did not change passes.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        self.validate_besides(object, old, Vec::new())
    }

    /// The same after what was `found` besides, such as in the metadata: that comes first, and may keep rules from being run.
    pub fn validate_besides(&self, object: &Value, old: Option<&Value>, found: Vec<Cause>) -> Vec<Cause> {
        let mut causes = found;
        causes.extend(values::validate(&self.root, object, old, ""));
        causes.extend(embedded::validate(&self.root, object));
        self.lists_and_rules(object, old, true, causes)
    }

    /// What is wrong with an update of the `status` subresource. Only the status is looked at, but by CEL rules, and nothing passes for being
    /// unchanged. Messages name fields as below the status, as upstream's do.
    pub fn validate_status(&self, object: &Value, old: &Value, found: Vec<Cause>) -> Vec<Cause> {
        let status = object.get("status").zip(self.root.properties.get("status"));
        let mut causes = found;
        causes.extend(status.map(|(status, node)| values::validate(node, status, None, "status")).unwrap_or_default());
        self.lists_and_rules(object, Some(old), false, causes)
    }

    fn lists_and_rules(&self, object: &Value, old: Option<&Value>, ratchets: bool, mut causes: Vec<Cause>) -> Vec<Cause> {
        let duplicates = lists::duplicates(&self.root, object);
        if !duplicates.is_empty() && old.is_none_or(|old| lists::duplicates(&self.root, old).is_empty()) {
            causes.extend(duplicates);
        }
        if !self.root.rules.cel_below {
            return causes;
        }
        if causes.iter().any(blocks_rules) {
            causes.push(messages::invalid("<nil>", &Value::Null, NOT_CHECKED));
        } else {
            causes.extend(cel::validate(&self.root, object, old, ratchets));
        }
        causes
    }
}

/// Whether rules could stumble over this, and are not run.
fn blocks_rules(cause: &Cause) -> bool {
    matches!(
        cause.reason,
        "FieldValueNotSupported" | "FieldValueRequired" | "FieldValueTooLong" | "FieldValueTooMany" | "FieldValueTypeInvalid"
    )
}
