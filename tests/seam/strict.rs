//! A provider that does nothing without a configuration.

use async_trait::async_trait;
use kcp_provider_runtime::api::config::{FieldError, RuntimeSettings};
use kcp_provider_runtime::api::meta::KindRef;
use kcp_provider_runtime::reconciler::{Actor, CallError, Context, Deletion, ProviderConfig, Reconciler, Report, no_settings};
use serde::{Deserialize, Serialize};

use crate::provider::Toy;

pub(crate) const PAINTS: KindRef = KindRef { group: "toys.test", version: "v1", kind: "Paints", plural: "paints", namespaced: false };

#[derive(Default, Deserialize)]
pub(crate) struct Paints {
    #[serde(default)]
    pub(crate) spec: Spec,
}

#[derive(Default, Deserialize)]
pub(crate) struct Spec {
    pub(crate) brand: String,
}

impl ProviderConfig for Paints {
    const KIND: Option<KindRef> = Some(PAINTS);

    fn runtime(&self) -> &RuntimeSettings {
        no_settings()
    }

    fn validate(&self) -> Result<(), Vec<FieldError>> {
        Ok(())
    }

    fn absent() -> Option<Self> {
        None
    }
}

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
