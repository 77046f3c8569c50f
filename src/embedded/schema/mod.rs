//! Structural schemas: compiled once for each content and process; prune, default, validate, CEL.
//!
//! Reading order: [`node`] (the tree).

pub mod node;
