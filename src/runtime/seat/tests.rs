//! One call without a server: what is refused before anything is sent, and when the runtime keeps silent. A write fails here, and shows by that.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::api::condition::Condition;
use crate::api::config::RuntimeSettings;
use crate::api::meta::{Meta, ServiceObject};
use crate::api::names::LogicalCluster;
use crate::api::names::ObjectKey;
use crate::reconciler::{Seen, no_settings};
use crate::runtime::events::Recorder;
use crate::runtime::port::LivePort;
use crate::runtime::queue::Outcome;
use crate::runtime::raw::Keep;

#[derive(Clone, Serialize, Deserialize)]
struct Toy {
    metadata: Meta,
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

/// Without defaults, so that it can be missing.
#[derive(Default, Deserialize)]
struct Paints {}

impl ProviderConfig for Paints {
    const KIND: Option<KindRef> = None;

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

/// Says what it was made with.
struct Parrot(Says);

type Says = fn() -> Report<Value>;

#[async_trait]
impl Reconciler for Parrot {
    type Object = Toy;
    type Config = Paints;
    type Status = Value;
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "parrot", finalizer: None, conditions: &["Painted", "Dry"] }
    }

    async fn create_or_update(&self, _: &Context<Paints>, _: &Toy) -> Result<Report<Value>, CallError> {
        Ok((self.0)())
    }

    async fn delete(&self, _: &Context<Paints>, _: &Toy) -> Result<Deletion<Value>, CallError> {
        Ok(Deletion::Pending((self.0)()))
    }
}

fn painted(type_: &'static str) -> ReportedCondition {
    ReportedCondition::new(type_, true, Reason::Ready, "")
}

/// A toy that was painted in its first generation.
fn toy(generation: i64) -> Value {
    let metadata = json!({"name": "car", "namespace": "default", "uid": "u", "resourceVersion": "7", "generation": generation});
    let condition = json!({"type": "Painted", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "1970-01-01T00:00:00Z",
        "observedGeneration": 1});
    json!({"metadata": metadata, "colour": "red", "status": {"conditions": [condition]}})
}

async fn call(says: Says, object: &Value, configured: bool) -> Ended {
    let config =
        AnyConfig { value: Arc::new(Paints {}), poll: None, allowed: Arc::from([]), external_url: None, purpose: Arc::from("workload") };
    run(Parrot(says), object, if configured { Ok(config) } else { Err("it cannot be read".into()) }).await
}

async fn run<R: Reconciler>(reconciler: R, object: &Value, config: Result<AnyConfig, String>) -> Ended {
    let raw = Raw::read(&object.to_string(), Keep::Body).unwrap();
    let job = Job {
        key: ObjectKey::new(LogicalCluster::new("1abc"), raw.name.clone()),
        raw: Arc::new(raw),
        seen: Seen::default(),
        config,
        last_config: None,
        superseded_by: None,
        others: Vec::new(),
        claims: Arc::from(""),
        port: LivePort::default(),
        base: String::new(),
        minter: None,
        recorder: Recorder::default(),
        path: None,
        external: None,
        moment: Moment { mono: Duration::ZERO, wall: jiff::Timestamp::UNIX_EPOCH },
    };
    Seat::new(|_| reconciler).run(job).await
}

fn silent() -> Report<Value> {
    Report::unchanged()
}

#[tokio::test]
async fn what_a_provider_must_not_say_fails_its_call() {
    let cases: [(Says, Option<Reason>, &str); 9] = [
        (silent, None, "there is nothing to write"),
        (|| Report::unchanged().with(painted("Painted")), None, "it is so already"),
        (|| Report::new(Value::Null), None, "no fields"),
        (|| Report::new(json!({})), None, "no fields either"),
        (|| Report::unchanged().with(painted("Dry")), Some(Reason::ReconcileFailed), "it is sent, though the fields are unchanged"),
        (|| Report::unchanged().with(painted("Ready")), Some(Reason::ReconcileFailed), "another's condition"),
        (|| Report::unchanged().with(painted("Painted")).with(painted("Painted")), Some(Reason::ReconcileFailed), "said twice"),
        (|| Report::new(json!("red")), Some(Reason::ReconcileFailed), "no object"),
        (|| Report::new(json!({"conditions": []})), Some(Reason::ReconcileFailed), "conditions as a field"),
    ];
    for (says, failed, why) in cases {
        let ended = call(says, &toy(1), true).await;
        assert_eq!(ended.failed, failed, "{why}");
        assert_eq!(ended.outcome, if failed.is_some() { Outcome::Backoff } else { Outcome::Settled }, "{why}");
    }
}

#[test]
fn a_refusal_names_the_type() {
    let actor = Parrot(silent).actor();
    let foreign = status::check(&actor, &[painted("Ready")]).unwrap_err();
    assert_eq!(foreign, "parrot reported the condition Ready, and owns Painted, Dry only");
    assert!(fields(Some(&vec![1])).is_err_and(|problem| problem.contains("Vec<i32>")));
}

#[tokio::test]
async fn without_a_configuration_what_was_decided_stays_and_what_was_not_is_told() {
    let mut going = toy(1);
    going["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:00Z".into();
    for (object, told, waits, why) in [
        (toy(1), false, true, "it is decided for this generation"),
        (toy(2), true, true, "it is decided for an earlier one"),
        (going, false, false, "a deletion waits for no operator"),
    ] {
        let ended = call(silent, &object, false).await;
        assert_eq!((ended.failed.is_some(), ended.starved), (told, waits), "{why}");
    }
}

#[test]
fn an_unreadable_object_is_nobodys_where_each_provider_has_its_own() {
    let mut object = toy(1);
    object["colour"] = 7.into();
    let raw = Raw::read(&object.to_string(), Keep::Body).unwrap();
    assert!(Seat::new(|_| Parrot(silent)).topics(&raw).is_some(), "whoever serves all of them says so");
    let choosy = Seat::new(|inputs: &mut Inputs<Toy>| {
        inputs.only(|toy| toy.colour == "red");
        Parrot(silent)
    });
    assert!(choosy.topics(&raw).is_none());
}

/// A configuration that cannot be made from nothing.
#[derive(Deserialize)]
struct Bare {}

impl Default for Bare {
    fn default() -> Self {
        panic!("nobody thought of this")
    }
}

impl ProviderConfig for Bare {
    const KIND: Option<KindRef> = None;

    fn runtime(&self) -> &RuntimeSettings {
        no_settings()
    }

    fn validate(&self) -> Result<(), Vec<FieldError>> {
        Ok(())
    }
}

/// Cannot be called without a configuration.
struct Clumsy;

#[async_trait]
impl Reconciler for Clumsy {
    type Object = Toy;
    type Config = Bare;
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "clumsy", finalizer: None, conditions: &["Painted"] }
    }

    async fn create_or_update(&self, _: &Context<Bare>, _: &Toy) -> Result<Report, CallError> {
        Ok(Report::unchanged())
    }

    async fn delete(&self, _: &Context<Bare>, _: &Toy) -> Result<Deletion, CallError> {
        Ok(Deletion::Done)
    }
}

#[tokio::test]
async fn what_panics_beside_a_call_is_its_objects_own() {
    let mut going = toy(1);
    going["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:00Z".into();
    let ended = run(Clumsy, &going, Err("it cannot be read".into())).await;
    assert_eq!((ended.failed, ended.outcome), (Some(Reason::ReconcileFailed), Outcome::Backoff));
    let refused = Seat::new(|_| Clumsy).read_config(None).err().unwrap();
    assert!(refused.len() == 1 && !refused[0].to_string().contains("thought"), "{refused:?}");
}

/// Owns nothing.
struct Mute;

#[async_trait]
impl Reconciler for Mute {
    type Object = Toy;
    type Config = Paints;
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "mute", finalizer: None, conditions: &[] }
    }

    async fn create_or_update(&self, _: &Context<Paints>, _: &Toy) -> Result<Report, CallError> {
        Ok(Report::unchanged())
    }

    async fn delete(&self, _: &Context<Paints>, _: &Toy) -> Result<Deletion, CallError> {
        Ok(Deletion::Done)
    }
}

#[test]
#[should_panic(expected = "the actor mute owns no condition")]
fn a_reconciler_without_a_condition_is_not_served() {
    let options = crate::runtime::Options::new(crate::runtime::Credentials::Inferred, "toys.test");
    let _ = crate::runtime::Runtime::new(options).serve(|_| Mute);
}
