//! Whether the defaults of a schema are what it demands itself (apiextensions-apiserver `schema/defaulting/validation.go`).

use super::super::errors::Cause;
use super::messages::invalid;
use super::node::Node;
use super::structural::{join, property};
use super::{cel, prune, values};

/// What is wrong with the defaults at and below a node, whose schema is at this path.
pub(super) fn check(node: &Node, at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    visit(node, at, &mut causes);
    causes
}

fn visit(node: &Node, at: &str, causes: &mut Vec<Cause>) {
    if let Some(default) = &node.default {
        let at = join(at, "default");
        if !prune::prune_below(node, &mut default.clone()).is_empty() {
            causes.push(invalid(at.clone(), default, "must not have unknown fields"));
        }
        let wrong = values::validate(node, default, None, &at);
        if wrong.is_empty() {
            // Rules must accept the default as it is and as it is introduced.
            let mut broken = cel::validate(node, default, Some(default), false);
            if broken.is_empty() {
                broken = cel::validate(node, default, None, false);
            }
            causes.extend(broken.into_iter().map(|cause| below(&at, cause)));
        }
        causes.extend(wrong);
    }
    if let Some(items) = &node.items {
        visit(items, &join(at, "items"), causes);
    }
    for (name, child) in &node.properties {
        visit(child, &property(at, name), causes);
    }
}

fn below(at: &str, cause: Cause) -> Cause {
    let field = if cause.field == "<nil>" { at.to_owned() } else { join(at, &cause.field) };
    Cause { field, ..cause }
}
