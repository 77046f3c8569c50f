//! A workerless provider: for each object it makes a `ConfigMap` on a workload cluster, its cast.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use async_trait::async_trait;
use kcp_provider_runtime::api::meta::{Kind, KindRef, Meta, ServiceObject};
use kcp_provider_runtime::api::names::ObjectName;
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::reconciler::{
    Actor, CallError, Context, Deletion, Inputs, Recheck, Reconciler, Removal, Report, ReportedCondition, WorkloadClient,
};
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A cast: whose it is, and of which generation.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Cast {
    pub(crate) metadata: Meta,
    #[serde(default)]
    pub(crate) data: BTreeMap<String, String>,
}

impl Kind for Cast {
    const REF: KindRef = KindRef { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };

    fn meta(&self) -> &Meta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut Meta {
        &mut self.metadata
    }
}

pub(crate) struct Caster<O> {
    pub(crate) finalizer: Option<&'static str>,
    objects: PhantomData<fn() -> O>,
}

impl<O: ServiceObject> Caster<O> {
    pub(crate) fn new(inputs: &mut Inputs<O>) -> Self {
        inputs.workload();
        Self { finalizer: Some("toys.test/cast"), objects: PhantomData }
    }
}

/// The name of an object's cast.
pub(crate) fn cast_name(workspace: &str, name: &str) -> String {
    format!("cast-{workspace}-{name}")
}

fn name<C>(ctx: &Context<C>, object: &impl Kind) -> ObjectName {
    ObjectName::namespaced("default", cast_name(ctx.identity.as_str(), &object.meta().name))
}

fn workload<C>(ctx: &Context<C>) -> &WorkloadClient {
    ctx.clusters.workload.as_ref().expect("it was asked for")
}

#[async_trait]
impl<O: ServiceObject> Reconciler for Caster<O> {
    type Object = O;
    type Config = ();
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "caster", finalizer: self.finalizer, conditions: &["Cast"] }
    }

    async fn create_or_update(&self, ctx: &Context<()>, object: &O) -> Result<Report, CallError> {
        ctx.hold(object, json!({})).await?;
        let (workload, name) = (workload(ctx), name(ctx, object));
        assert!(workload.kubeconfig().expose_secret().contains("server"), "it is there to be embedded");
        let data =
            BTreeMap::from([("of".into(), object.meta().uid().into()), ("generation".into(), object.meta().generation().to_string())]);
        match workload.get::<Cast>(&name).await? {
            None => {
                let metadata = Meta { name: name.name.to_string(), namespace: Some(name.namespace.clone()), ..Meta::default() };
                workload.create(&Cast { metadata, data }).await?;
            }
            Some(cast) if cast.data != data => drop(workload.replace(&Cast { data, ..cast }).await?),
            Some(_) => {}
        }
        let done = ReportedCondition::new("Cast", true, Reason::Custom("Cast"), format!("cast at {}", workload.name()));
        Ok(Report::new(()).with(done))
    }

    async fn delete(&self, ctx: &Context<()>, object: &O) -> Result<Deletion, CallError> {
        let workload = workload(ctx);
        let Some(cast) = workload.get::<Cast>(&name(ctx, object)).await? else { return Ok(Deletion::Done) };
        match workload.delete(&cast).await? {
            Removal::Gone => Ok(Deletion::Done),
            Removal::Going => Ok(Deletion::Pending(Report::unchanged().recheck(Recheck::Backoff))),
        }
    }
}
