//! Patches: JSON merge patch, JSON patch, and server-side apply with its managed fields.
//!
//! Reading order: `fields` (paths and sets of them), `print` (`fieldsV1`), `shape` (what the schema says of a place), `check`,
//! `walk` and `merge` (values and sets), `managed` (who owns what), `apply`; `json` stands for itself.

pub mod apply;
pub mod check;
pub mod fields;
pub mod json;
pub mod last_applied;
pub mod managed;
pub mod merge;
pub mod owners;
pub mod print;
pub mod shape;
pub mod walk;

#[cfg(test)]
mod tests;

pub use apply::apply;
pub use json::{json, merge};
