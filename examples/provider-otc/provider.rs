//! All that a provider team writes: which projections are its own, how far each one is, and when to look again.
//!
//! This provider builds nothing. Every projection that names it is under construction for a while and ready after that; a changed one goes
//! through it again. A real provider would order machines where this one lets time pass.

use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use kcp_provider_runtime::api::condition::{self, ConditionStatus};
use kcp_provider_runtime::api::meta::ServiceObject;
use kcp_provider_runtime::api::projection::Projection;
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::reconciler::{Actor, CallError, Context, Deletion, Inputs, Recheck, Reconciler, Report, ReportedCondition};
use serde::Serialize;

const READY: &str = "Ready";
const BUILDING: Reason = Reason::Custom("Building");

/// A provider that pretends to build clusters.
pub(crate) struct Provider {
    name: &'static str,
    takes: Duration,
}

impl Provider {
    /// Takes the projections whose `spec.providerRef.name` is `name`; each of them takes this long to build.
    pub(crate) fn new(inputs: &mut Inputs<Projection>, name: &'static str, takes: Duration) -> Self {
        inputs.only(move |projection| projection.spec.provider_ref.name == name);
        Self { name, takes }
    }

    /// How much longer it is under construction; zero when it is built.
    ///
    /// Nothing is remembered here: the object's own condition says since when, so that a restart neither starts anew nor forgets.
    fn left(&self, projection: &Projection, now: Timestamp) -> Duration {
        let conditions = projection.conditions();
        let generation = projection.metadata.generation();
        if condition::holds_for(conditions, READY, generation) {
            return Duration::ZERO;
        }
        let began = condition::find(conditions, READY)
            .filter(|ready| ready.status == ConditionStatus::False && ready.reason == BUILDING.as_str())
            .and_then(|ready| ready.last_transition_time.parse::<Timestamp>().ok());
        // A clock that was set back must not make it wait for longer than it takes.
        let spent = began.map_or(SignedDuration::ZERO, |began| now.duration_since(began)).max(SignedDuration::ZERO);
        self.takes.saturating_sub(spent.unsigned_abs())
    }

    fn report(&self, projection: &Projection, left: Duration) -> Report<Built> {
        let status = Built { ready: left.is_zero(), observed_generation: projection.metadata.generation() };
        if left.is_zero() {
            let nodes: i32 = projection.spec.node_pools.iter().map(|pool| pool.replicas).sum();
            let message = format!("{nodes} nodes run {} in {} of {}", projection.spec.version, projection.spec.region, self.name);
            return Report::new(status).with(ReportedCondition::new(READY, true, Reason::Ready, message));
        }
        let message = format!("{} builds it, which takes {} s", self.name, self.takes.as_secs_f32());
        Report::new(status).with(ReportedCondition::new(READY, false, BUILDING, message)).recheck(Recheck::After(left))
    }
}

/// The status fields that this provider owns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Built {
    ready: bool,
    observed_generation: i64,
}

#[async_trait]
impl Reconciler for Provider {
    type Object = Projection;
    type Config = ();
    type Status = Built;
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: self.name, finalizer: None, conditions: &[READY] }
    }

    async fn create_or_update(&self, ctx: &Context<()>, projection: &Projection) -> Result<Report<Built>, CallError> {
        Ok(self.report(projection, self.left(projection, ctx.now)))
    }

    /// Nothing was built, so nothing has to go first: no finalizer is ever set.
    async fn delete(&self, _: &Context<()>, _: &Projection) -> Result<Deletion<Built>, CallError> {
        Ok(Deletion::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn projection(generation: i64, ready: &Value) -> Projection {
        serde_json::from_value(json!({
            "metadata": {"name": "demo", "namespace": "default", "generation": generation},
            "spec": {"providerRef": {"name": "otc"}, "region": "eu-de", "version": "1.34.2",
                "nodePools": [{"name": "a", "replicas": 3, "type": "m-4-16"}, {"name": "b", "replicas": 2, "type": "m-8-32"}]},
            "status": {"conditions": if ready.is_null() { json!([]) } else { json!([ready]) }},
        }))
        .unwrap()
    }

    fn ready(status: &str, reason: &str, generation: i64, since: &str) -> Value {
        json!({"type": "Ready", "status": status, "reason": reason, "message": "", "observedGeneration": generation, "lastTransitionTime": since})
    }

    #[test]
    fn a_projection_is_built_once_its_time_is_over_and_again_after_a_change() {
        let provider = Provider { name: "otc", takes: Duration::from_secs(2) };
        let now: Timestamp = "2026-01-01T00:00:10Z".parse().unwrap();
        for (why, generation, shown, left) in [
            ("nobody reported yet", 1, Value::Null, 2_000),
            ("it has just begun", 1, ready("False", "Building", 1, "2026-01-01T00:00:10Z"), 2_000),
            ("half of it is done", 1, ready("False", "Building", 1, "2026-01-01T00:00:09Z"), 1_000),
            ("it is done", 1, ready("False", "Building", 1, "2026-01-01T00:00:08Z"), 0),
            ("it was done long ago", 1, ready("True", "Ready", 1, "2026-01-01T00:00:00Z"), 0),
            ("a change is built anew", 2, ready("True", "Ready", 1, "2026-01-01T00:00:00Z"), 2_000),
            ("a change while it is built comes along", 2, ready("False", "Building", 1, "2026-01-01T00:00:09Z"), 1_000),
            ("somebody else's report is not ours", 1, ready("False", "AccessDenied", 1, "2026-01-01T00:00:00Z"), 2_000),
            ("a clock that was set back does not lengthen it", 1, ready("False", "Building", 1, "2026-01-02T00:00:00Z"), 2_000),
        ] {
            let projection = projection(generation, &shown);
            assert_eq!(provider.left(&projection, now), Duration::from_millis(left), "{why}");
        }
    }

    #[test]
    fn it_reports_that_it_builds_then_that_it_is_ready() {
        let provider = Provider { name: "otc", takes: Duration::from_secs(2) };
        let projection = projection(7, &Value::Null);
        let building = provider.report(&projection, Duration::from_millis(500));
        assert_eq!(building.status(), Some(&Built { ready: false, observed_generation: 7 }));
        assert_eq!(building.next_look(), Recheck::After(Duration::from_millis(500)));
        assert_eq!(building.conditions()[0].reason, BUILDING);
        let built = provider.report(&projection, Duration::ZERO);
        assert_eq!(built.status(), Some(&Built { ready: true, observed_generation: 7 }));
        assert_eq!(built.next_look(), Recheck::OnChange);
        assert_eq!(built.conditions()[0].message, "5 nodes run 1.34.2 in eu-de of otc");
    }
}
