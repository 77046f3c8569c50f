//! `x-kubernetes-validations`: rules in CEL.
//!
//! Reading order: [`rule`] (one rule, compiled), [`check`] (what a rule may name), [`macros`] and [`library`] (what the
//! interpreter lacks), [`convert`] (JSON to CEL), [`walk`] (the rules of an object).

mod check;
mod convert;
mod library;
mod macros;
mod rule;
mod walk;

pub(super) use rule::{RuleSet, compile};
pub(super) use walk::validate;
