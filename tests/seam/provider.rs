//! A whole provider: toys that are painted in the colour their tenant asks for.
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kcp_provider_runtime::api::condition::Condition;
use kcp_provider_runtime::api::meta::{Kind, KindRef, Meta, ServiceObject};
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::reconciler::{Actor, CallError, Context, Deletion, Failure, Reconciler, Report, ReportedCondition};
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Toy {
    pub(crate) metadata: Meta,
    #[serde(default)]
    colour: String,
}
impl Kind for Toy {
    const REF: KindRef = KindRef { group: "toys.test", version: "v1", kind: "Toy", plural: "toys", namespaced: true };
    fn meta(&self) -> &Meta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut Meta {
        &mut self.metadata
    }
}
impl ServiceObject for Toy {
    fn conditions(&self) -> &[Condition] {
        &[]
    }
}
#[derive(Serialize)]
pub(crate) struct Painted {
    colour: String,
}
pub(crate) struct Painter(pub(crate) Arc<Mutex<Vec<String>>>);
#[async_trait]
impl Reconciler for Painter {
    type Object = Toy;
    type Config = ();
    type Status = Painted;
    type Error = CallError;
    fn actor(&self) -> Actor {
        Actor { name: "painter", finalizer: None, conditions: &["Painted"] }
    }
    async fn create_or_update(&self, ctx: &Context<()>, toy: &Toy) -> Result<Report<Painted>, CallError> {
        self.0.lock().unwrap().push(format!("{}/{}", ctx.workspace, toy.metadata.name));
        match toy.colour.as_str() {
            "none" => Err(CallError::new("paint a toy", Failure::Invalid("none is no colour".into()))),
            "explosive" => panic!("the paint exploded"),
            colour => {
                let dry = ReportedCondition::new("Painted", true, Reason::Custom("Dry"), format!("it is {colour}"));
                Ok(Report::new(Painted { colour: colour.to_owned() }).with(dry))
            }
        }
    }
    async fn delete(&self, _: &Context<()>, _: &Toy) -> Result<Deletion<Painted>, CallError> {
        Ok(Deletion::Done)
    }
}
