//! A provider that does nothing without a configuration, and owns a status field.

use async_trait::async_trait;
use kcp_provider_runtime::reconciler::{Actor, CallError, Context, Deletion, Reconciler, Report};
use serde::Serialize;

use crate::keeper::Paints;
use crate::provider::Toy;

/// How often a toy was painted.
#[derive(Serialize)]
pub(crate) struct Coats {
    coats: u32,
}

pub(crate) struct Strict;

#[async_trait]
impl Reconciler for Strict {
    type Object = Toy;
    type Config = Paints;
    type Status = Coats;
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "strict", finalizer: None, conditions: &["Painted"] }
    }

    async fn create_or_update(&self, _: &Context<Paints>, _: &Toy) -> Result<Report<Coats>, CallError> {
        unreachable!("it is not called without a configuration")
    }

    async fn delete(&self, _: &Context<Paints>, _: &Toy) -> Result<Deletion<Coats>, CallError> {
        unreachable!("it is not called without a configuration")
    }

    fn unevaluated(&self, _: i64) -> Option<Coats> {
        Some(Coats { coats: 0 })
    }
}
