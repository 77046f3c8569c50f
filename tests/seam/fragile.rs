//! A provider every part of which panics over what is called so, with words that no tenant may read.

use std::fmt;

use async_trait::async_trait;
use kcp_provider_runtime::api::condition::Condition;
use kcp_provider_runtime::api::config::{FieldError, RuntimeSettings};
use kcp_provider_runtime::api::meta::{KindRef, Meta, ServiceObject};
use kcp_provider_runtime::api::names::ObjectName;
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::kind;
use kcp_provider_runtime::reconciler::{
    Actor, Context, Deletion, Inputs, NameChange, Objects, Platform, ProviderConfig, ReconcileError, Reconciler, Report, ReportedCondition,
    Topic, View, no_settings,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Calls;
use crate::keeper::PAINTS;

/// What is in every panic here and must be in nothing that a tenant reads.
pub(crate) const SECRET: &str = "hunter2";

/// The functions that panic over a toy or a configuration of that colour, over a pot, or over a name.
pub(crate) fn panic_over(colour: &str, what: &str) {
    assert_ne!(colour, what, "{SECRET} is wrong");
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Toy {
    metadata: Meta,
    #[serde(default)]
    colour: Colour,
}

kind!(Toy, "toys.test", "v1", "Toy", "toys", namespaced: true);

impl ServiceObject for Toy {
    fn conditions(&self) -> &[Condition] {
        &[]
    }
}

#[derive(Clone, Default, Serialize)]
struct Colour(String);

impl<'de> Deserialize<'de> for Colour {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let colour = String::deserialize(deserializer)?;
        panic_over(&colour, "unread");
        Ok(Self(colour))
    }
}

/// What paint is in, in the provider workspace.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Pot {
    metadata: Meta,
    colour: String,
}

kind!(Pot, "toys.test", "v1", "Pot", "pots", namespaced: false);

/// The names of all pots.
#[derive(Clone, Debug, Default, PartialEq)]
struct Shelf(Vec<String>);

impl View for Shelf {
    fn kinds() -> Vec<KindRef> {
        vec![<Pot as kcp_provider_runtime::api::meta::Kind>::REF]
    }

    fn fold(_: Option<&Self>, all: &Objects<'_>, _: &[(KindRef, ObjectName)]) -> Self {
        for pot in all.names::<Pot>().filter_map(|name| all.get::<Pot>(name)) {
            panic_over(&pot.colour, "unfolded");
        }
        Self(all.names::<Pot>().map(|name| name.name.to_string()).collect())
    }
}

/// Whose brand is in force.
#[derive(Default, Deserialize)]
pub(crate) struct Paints {
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
struct Spec {
    #[serde(default)]
    brand: String,
}

impl ProviderConfig for Paints {
    const KIND: Option<KindRef> = Some(PAINTS);

    fn runtime(&self) -> &RuntimeSettings {
        panic_over(&self.spec.brand, "unset");
        no_settings()
    }

    fn validate(&self) -> Result<(), Vec<FieldError>> {
        panic_over(&self.spec.brand, "unchecked");
        Ok(())
    }
}

/// The status, which says what is on the shelf and whose brand it is.
pub(crate) struct Mixed(String, String);

impl Serialize for Mixed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        panic_over(&self.0, "unsaid");
        serializer.collect_map([("colour", &self.1)])
    }
}

#[derive(Debug)]
pub(crate) struct Misfortune(String);

impl fmt::Display for Misfortune {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic_over(&self.0, "unexplained");
        f.write_str("it is out of stock")
    }
}

impl std::error::Error for Misfortune {}

impl ReconcileError for Misfortune {
    fn reason(&self) -> Reason {
        Reason::ReconcileFailed
    }
}

pub(crate) struct Fragile {
    pots: Platform<Shelf>,
    calls: Calls,
}

impl Fragile {
    pub(crate) fn new(inputs: &mut Inputs<Toy>, calls: Calls) -> Self {
        let of = |toy: &Toy| {
            panic_over(&toy.colour.0, "unheard");
            Vec::new()
        };
        let _ = inputs.names::<Toy>(of, |NameChange { name, .. }| {
            panic_over(name, "unraised");
            vec![Topic::new("names")]
        });
        inputs.config::<Paints>(of, |_, after| {
            panic_over(&after.spec.brand, "unraised");
            Vec::new()
        });
        let pots = inputs.platform::<Shelf>(of, |_, after| {
            after.0.iter().for_each(|pot| panic_over(pot, "unraised"));
            vec![Topic::new("pots")]
        });
        Self { pots, calls }
    }

    /// What a status would say, or why there is nothing to say.
    fn look(&self, ctx: &Context<Paints>) -> Result<String, String> {
        let found = self.pots.get(ctx, std::time::Duration::from_mins(1)).map_err(|missing| missing.to_string())?;
        Ok(format!("{} of {:?}", found.0.join("+"), ctx.config.spec.brand))
    }
}

#[async_trait]
impl Reconciler for Fragile {
    type Object = Toy;
    type Config = Paints;
    type Status = Mixed;
    type Error = Misfortune;

    fn actor(&self) -> Actor {
        Actor { name: "fragile", finalizer: None, conditions: &["Mixed"] }
    }

    async fn create_or_update(&self, ctx: &Context<Paints>, toy: &Toy) -> Result<Report<Mixed>, Misfortune> {
        self.calls.lock().unwrap().push(format!("{}/{}", ctx.workspace, toy.metadata.name));
        let colour = &toy.colour.0;
        if colour == "unexplained" {
            return Err(Misfortune(colour.clone()));
        }
        let (status, reason, message) = match self.look(ctx) {
            Ok(message) => (true, Reason::Ready, message),
            Err(problem) => (false, Reason::CatalogUnavailable, problem),
        };
        let report = Report::new(Mixed(colour.clone(), message.clone()));
        Ok(report.with(ReportedCondition::new("Mixed", status, reason, message)))
    }

    async fn delete(&self, _: &Context<Paints>, _: &Toy) -> Result<Deletion<Mixed>, Misfortune> {
        Ok(Deletion::Done)
    }

    fn unevaluated(&self, _: i64) -> Option<Mixed> {
        panic!("{SECRET} cannot be evaluated")
    }
}
