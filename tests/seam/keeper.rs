//! A provider that does nothing without a configuration: it keeps toys until they are deleted, and remembers each call.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kcp_provider_runtime::api::config::{FieldError, RuntimeSettings};
use kcp_provider_runtime::api::meta::{KindRef, ServiceObject};
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::reconciler::{
    Actor, CallError, Context, Deletion, ProviderConfig, Reconciler, Report, ReportedCondition, no_settings,
};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

pub(crate) const PAINTS: KindRef = KindRef { group: "toys.test", version: "v1", kind: "Paints", plural: "paints", namespaced: false };

#[derive(Default, Deserialize)]
pub(crate) struct Paints {
    #[serde(default)]
    pub(crate) spec: Spec,
}

/// What else there is in it changes nothing that is reported.
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
        if self.spec.brand == "Mud" { Err(vec![FieldError::new("spec.brand", "mud is no paint")]) } else { Ok(()) }
    }

    fn absent() -> Option<Self> {
        None
    }
}

/// One call, and the brand of paint that was in force for it.
#[derive(Clone)]
pub(crate) struct Called {
    pub(crate) at: Instant,
    pub(crate) toy: String,
    pub(crate) brand: String,
    pub(crate) deletes: bool,
}

pub(crate) type Ledger = Arc<Mutex<Vec<Called>>>;

pub(crate) struct Keeper<O> {
    ledger: Ledger,
    objects: PhantomData<fn() -> O>,
}

impl<O: ServiceObject> Keeper<O> {
    pub(crate) fn new(ledger: Ledger) -> Self {
        Self { ledger, objects: PhantomData }
    }

    fn note(&self, ctx: &Context<Paints>, toy: &O, deletes: bool) {
        let (toy, brand) = (toy.meta().name.clone(), ctx.config.spec.brand.clone());
        self.ledger.lock().unwrap().push(Called { at: Instant::now(), toy, brand, deletes });
    }
}

/// With which brands deletions were done, in their order.
pub(crate) fn deleted_with(ledger: &Ledger) -> Vec<String> {
    ledger.lock().unwrap().iter().filter(|call| call.deletes).map(|call| call.brand.clone()).collect()
}

#[async_trait]
impl<O: ServiceObject> Reconciler for Keeper<O> {
    type Object = O;
    type Config = Paints;
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "keeper", finalizer: Some("toys.test/kept"), conditions: &["Kept", "Clean"] }
    }

    async fn create_or_update(&self, ctx: &Context<Paints>, toy: &O) -> Result<Report, CallError> {
        self.note(ctx, toy, false);
        let _ = ctx.hold(toy, json!({})).await?;
        let kept = ReportedCondition::new("Kept", true, Reason::Ready, format!("with {}", ctx.config.spec.brand));
        Ok(Report::new(()).with(kept).with(ReportedCondition::new("Clean", true, Reason::Ready, "as new")))
    }

    async fn delete(&self, ctx: &Context<Paints>, toy: &O) -> Result<Deletion, CallError> {
        self.note(ctx, toy, true);
        Ok(Deletion::Done)
    }
}
