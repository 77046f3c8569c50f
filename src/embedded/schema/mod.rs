//! Structural schemas: compiled once for each content and process; prune, default, validate, CEL.
//!
//! Reading order: [`node`] (the tree).

pub mod node;

use std::sync::Arc;

use serde_json::Value;

use super::errors::Cause;
use node::Node;

/// One version of a kind's schema, compiled.
#[derive(Debug, Default)]
pub struct Schema {
    root: Node,
}

impl Schema {
    /// Compiles a document.
    pub fn compile(_open_api: &Value) -> Result<Self, Vec<Cause>> {
        Ok(Self { root: Node::default() })
    }

    /// The same, once per content and process.
    pub fn compiled(open_api: &Value) -> Result<Arc<Self>, Vec<Cause>> {
        Self::compile(open_api).map(Arc::new)
    }

    /// The tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Removes what the schema does not know, and says what that was.
    pub fn prune(&self, _object: &mut Value) -> Vec<String> {
        Vec::new()
    }

    /// Fills in what is missing.
    pub fn default(&self, _object: &mut Value) {}

    /// What is wrong.
    pub fn validate(&self, _object: &Value, _old: Option<&Value>) -> Vec<Cause> {
        Vec::new()
    }
}
