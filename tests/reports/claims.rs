//! Claims that a tenant rejects, narrows or accepts late; and finalizers of several providers on one object.

use std::time::Duration;

use async_trait::async_trait;
use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::api::manifest::export::Claim;
use kcp_provider_runtime::api::names::ObjectName;
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::kit::{Resource, Workspace, World};
use kcp_provider_runtime::reconciler::{
    Actor, CallError, Context, Deletion, Failure, Inputs, Names, Recheck, Reconciler, Report, ReportedCondition,
};
use kcp_provider_runtime::runtime;
use serde_json::{Value, json};

use crate::kinds::{ConfigMap, Toy};
use crate::support::{Fate, Faults};

/// Paints toys in colours of the tenant's `ConfigMap`.
struct Painter(Names<ConfigMap>);

impl Painter {
    fn new(inputs: &mut Inputs<Toy>) -> Self {
        Self(inputs.names(|_| Vec::new(), |_| Vec::new()))
    }
}

#[async_trait]
impl Reconciler for Painter {
    type Object = Toy;
    type Config = ();
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "painter", finalizer: None, conditions: &["Painted"] }
    }

    async fn create_or_update(&self, ctx: &Context<()>, toy: &Toy) -> Result<Report, CallError> {
        let not_yet = |reason, message: String| {
            Ok(Report::new(()).with(ReportedCondition::new("Painted", false, reason, message)).recheck(Recheck::Backoff))
        };
        if toy.counted
            && let Err(unavailable) = self.0.get(ctx)
        {
            return not_yet(Reason::ReconcileFailed, unavailable.to_string());
        }
        match ctx.clusters.control_plane.get::<ConfigMap>(&ObjectName::namespaced("default", "colours")).await {
            Ok(Some(_)) => Ok(Report::new(()).with(ReportedCondition::new("Painted", true, Reason::Custom("Dry"), "it is painted"))),
            Ok(None) => not_yet(Reason::Custom("NoColours"), "there is no ConfigMap default/colours, or it may not be seen".into()),
            Err(error) if matches!(error.failure(), Failure::Forbidden(_)) => not_yet(Reason::AccessDenied, error.to_string()),
            Err(error) => Err(error),
        }
    }

    async fn delete(&self, _: &Context<()>, _: &Toy) -> Result<Deletion, CallError> {
        Ok(Deletion::Done)
    }
}

const VERBS: [&str; 3] = ["get", "list", "watch"];
const BINDING: &str = "/apis/apis.kcp.io/v1alpha2/apibindings/toys.test";

async fn toys() -> World {
    let mut world = World::new().await;
    let condition = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true, "required": ["type"], "properties": {"type": {"type": "string"}},
    });
    // As a map by type: of a list that is one value, each provider would take the other's condition away, again and again.
    let conditions = json!({"type": "array", "items": condition, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]});
    let status = json!({"type": "object", "properties": {"conditions": conditions}});
    let properties = json!({"counted": {"type": "boolean"}, "status": status});
    world.export(Resource::new::<Toy>(json!({"type": "object", "properties": properties}))).await;
    world.claim(Claim { group: "", resource: "configmaps", verbs: &VERBS, identity_hash: None }).await;
    world
}

fn toy(name: &str, counted: bool) -> Value {
    json!({"apiVersion": "toys.test/v1", "kind": "Toy", "metadata": {"name": name}, "counted": counted})
}

/// A tenant who has colours, a toy, and this opinion of the claim.
async fn tenant(world: &World, name: &str, verbs: &[&str], state: &str, selector: Value) -> Workspace {
    let workspace = world.workspace(name).await;
    answer(&workspace, verbs, state, selector).await;
    workspace.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "colours"}})).await;
    workspace.apply(toy("car", false)).await;
    workspace
}

#[allow(clippy::needless_pass_by_value, reason = "the argument is a literal")]
async fn answer(workspace: &Workspace, verbs: &[&str], state: &str, selector: Value) {
    let claim = json!({"group": "", "resource": "configmaps", "verbs": verbs, "state": state, "selector": selector});
    workspace.client().merge(BINDING, &json!({"spec": {"permissionClaims": [claim]}})).await.ok().unwrap();
}

/// Reports 21, 24, 25 and 26: the claim is rejected, or accepted for fewer verbs than are needed.
#[tokio::test(start_paused = true)]
async fn a_claim_that_is_not_granted_is_named_and_once_it_is_the_object_goes_on_by_itself() {
    let world = toys().await;
    let all = json!({"matchAll": true});
    let rejecting = tenant(&world, "rejecting", &VERBS, "Rejected", all.clone()).await;
    let narrow = tenant(&world, "narrow", &["list", "watch"], "Accepted", all.clone()).await;
    let generous = tenant(&world, "generous", &VERBS, "Accepted", all.clone()).await;
    world.serve(Painter::new);
    generous.condition::<Toy>("car", "Painted", True, "Dry").await;
    for workspace in [&rejecting, &narrow] {
        let told = workspace.condition::<Toy>("car", "Painted", False, "AccessDenied").await;
        assert!(told.message.contains("configmaps") && told.message.contains("get"), "{workspace}: {}", told.message);
    }
    world.advance(Duration::from_hours(2)).await;
    for workspace in [&rejecting, &narrow] {
        answer(workspace, &VERBS, "Accepted", all.clone()).await;
        let began = world.now();
        workspace.condition::<Toy>("car", "Painted", True, "Dry").await;
        assert!(world.now().duration_since(began).as_secs() <= 310, "the longest backoff is five minutes");
    }
}

/// Report 22: a claimed object that cannot be seen, though the claim is accepted, looks as one that is not there; either proves nothing.
#[tokio::test(start_paused = true)]
async fn a_claimed_object_that_is_not_seen_is_missed_and_nothing_is_deleted() {
    let world = toys().await;
    let acme = tenant(&world, "acme", &VERBS, "Accepted", json!({"matchAll": true})).await;
    world.serve(Painter::new);
    acme.condition::<Toy>("car", "Painted", True, "Dry").await;
    acme.delete::<ConfigMap>("colours").await;
    acme.apply(toy("kite", false)).await;
    acme.condition::<Toy>("kite", "Painted", False, "NoColours").await;
    world.advance(Duration::from_hours(1)).await;
    let verbs: Vec<_> = world.writes().into_keys().collect();
    assert_eq!(verbs, ["apply"], "of statuses alone");
    acme.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "colours"}})).await;
    acme.condition::<Toy>("kite", "Painted", True, "Dry").await;
}

/// Report 23: "unable to find informer", a 500 for one claimed kind.
#[tokio::test(start_paused = true)]
async fn a_claimed_kind_that_cannot_be_listed_holds_up_only_who_reads_it() {
    let world = toys().await;
    let acme = tenant(&world, "acme", &VERBS, "Accepted", json!({"matchAll": true})).await;
    acme.apply(toy("kite", true)).await;
    let faults = Faults::default();
    faults.add("/clusters/*/api/v1/configmaps", Fate::Code(500));
    world.run_with(runtime::Options { credentials: faults.credentials(&world), ..world.options() }, |runtime| runtime.serve(Painter::new));
    acme.condition::<Toy>("car", "Painted", True, "Dry").await;
    acme.condition::<Toy>("kite", "Painted", False, "ReconcileFailed").await;
    world.advance(Duration::from_hours(1)).await;
    assert!((100..300).contains(&faults.met()), "{} lists in an hour, one in each 15 to 30 s", faults.met());
    faults.end();
    acme.condition::<Toy>("kite", "Painted", True, "Dry").await;
}

/// A provider that only holds on to objects.
struct Holder(&'static str, &'static str, &'static str);

#[async_trait]
impl Reconciler for Holder {
    type Object = Toy;
    type Config = ();
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        let conditions: &'static [&'static str] = if self.0 == "one" { &["One"] } else { &["Other"] };
        Actor { name: self.0, finalizer: Some(self.1), conditions }
    }

    async fn create_or_update(&self, ctx: &Context<()>, toy: &Toy) -> Result<Report, CallError> {
        ctx.hold(toy, json!({})).await?;
        Ok(Report::new(()).with(ReportedCondition::new(self.2, true, Reason::Custom("Held"), "it is held")))
    }

    async fn delete(&self, _: &Context<()>, _: &Toy) -> Result<Deletion, CallError> {
        Ok(Deletion::Done)
    }
}

fn hold(world: &World) {
    world.run(|runtime| runtime.serve(|_: &mut Inputs<Toy>| Holder("one", "one.test/hold", "One")));
    world.run(|runtime| runtime.serve(|_: &mut Inputs<Toy>| Holder("other", "other.test/hold", "Other")));
}

/// Report 37: two providers, each with a finalizer of its own.
#[tokio::test(start_paused = true)]
async fn two_providers_hold_one_object_and_let_go_of_it_once_each() {
    let world = toys().await;
    let acme = world.workspace("acme").await;
    hold(&world);
    acme.apply(toy("car", false)).await;
    acme.condition::<Toy>("car", "One", True, "Held").await;
    acme.condition::<Toy>("car", "Other", True, "Held").await;
    world.settled().await;
    let held = acme.get::<Toy>("car").await.unwrap();
    assert_eq!(held.metadata.finalizers.len(), 2);
    world.forget_requests();
    acme.delete::<Toy>("car").await;
    acme.gone::<Toy>("car").await;
    world.settled().await;
    let done = world.requests().iter().filter(|sent| sent.verb == "update" && sent.code == 200).count();
    assert_eq!(done, 2, "{:?}", world.requests());
}

/// Report 37: a provider that comes when the object is going already.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_going_gets_no_finalizer() {
    let world = toys().await;
    let acme = world.workspace("acme").await;
    let mut kept = toy("car", false);
    kept["metadata"]["finalizers"] = json!(["somebody.test/else"]);
    acme.apply(kept).await;
    acme.delete::<Toy>("car").await;
    hold(&world);
    world.advance(Duration::from_hours(1)).await;
    assert_eq!(world.writes(), [].into());
    acme.merge::<Toy>("car", json!({"metadata": {"finalizers": null}})).await;
    acme.gone::<Toy>("car").await;
}
