//! What is said of a cluster's readiness.
//!
//! Pure: from the tenant's object with the scheduler's conditions, and the projection with the provider's report.

use crate::api::condition::{self, ConditionStatus};
use crate::api::meta::ServiceObject;
use crate::api::projection::{Projection, ProjectionStatus};
use crate::api::reason::Reason;
use crate::api::tenant::{KubernetesCluster, PROJECTION_FINALIZER};
use crate::mutants::{Mutant, mutated};
use crate::reconciler::ReportedCondition;

use super::message::named;
use super::plan::{PROJECTED, SCHEDULED};
use super::project::{Ownership, ownership};

/// The condition type that says what the provider reports.
pub const PROVIDER_CLUSTER_READY: &str = "ProviderClusterReady";
/// The condition type that rolls everything up.
pub const READY: &str = "Ready";

/// What is to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// `ProviderClusterReady`.
    pub provider: ReportedCondition,
    /// `Ready`.
    pub ready: ReportedCondition,
}

impl Verdict {
    /// Whether the cluster is ready.
    pub fn is_ready(&self) -> bool {
        self.ready.status == ConditionStatus::True
    }
}

/// Says how ready a cluster is, or `None` while the scheduler has not spoken for this generation and no old `Ready=True` has to be taken
/// back: whoever reads `Ready` must never see a stale True, and nobody needs a word twice.
pub fn judge(cluster: &KubernetesCluster, projection: Option<&Projection>) -> Option<Verdict> {
    let conditions = cluster.conditions();
    let generation = cluster.metadata.generation();
    let decided = condition::find(conditions, SCHEDULED).is_some_and(|scheduled| scheduled.observed_generation == Some(generation));
    let was_ready = condition::find(conditions, READY).is_some_and(|ready| ready.status == ConditionStatus::True);
    if !decided && !was_ready {
        return None;
    }
    let provider = provider_condition(cluster, projection);
    let mut pending: Vec<String> = [SCHEDULED, PROJECTED]
        .into_iter()
        .filter(|type_| !condition::holds_for(conditions, type_, generation))
        .map(|type_| match condition::find(conditions, type_) {
            Some(found) if found.observed_generation == Some(generation) => format!("{type_} ({})", found.reason),
            _ => format!("{type_} (not looked at yet for generation {generation})"),
        })
        .collect();
    if provider.status != ConditionStatus::True && !mutated(Mutant::ReadyUnasked) {
        pending.push(format!("{PROVIDER_CLUSTER_READY} ({})", provider.reason));
    }
    let ready = if pending.is_empty() {
        ReportedCondition::new(READY, true, Reason::Ready, "the cluster runs as specified")
    } else {
        ReportedCondition::new(READY, false, Reason::Pending, format!("waiting for {}", pending.join(", ")))
    };
    Some(Verdict { provider, ready })
}

/// What is said of a cluster that is being deleted; `None` while nothing is known to hold it up: a cluster that is about to go needs no word.
///
/// Three things hold it: its projection, while that waits for finalizers; finalizers of others on itself; and the scheduler, when it says that
/// it cannot delete the projection.
pub fn judge_deletion(cluster: &KubernetesCluster, projection: Option<&Projection>) -> Option<Verdict> {
    let conditions = cluster.conditions();
    let ours = projection.filter(|projection| ownership(projection, cluster) == Ownership::Ours);
    let waits = ours.filter(|projection| projection.metadata.is_deleting());
    let others = cluster.metadata.finalizers.iter().filter(|finalizer| *finalizer != PROJECTION_FINALIZER);
    let others: Vec<String> = others.cloned().collect();
    let stuck = condition::find(conditions, PROJECTED)
        .filter(|projected| ours.is_some() && waits.is_none() && projected.reason == Reason::Deleting.as_str())
        .map(|projected| projected.message.clone());

    let mut parts: Vec<String> =
        waits.map(|waits| format!("the projection waits for: {}", named(&waits.metadata.finalizers))).into_iter().collect();
    parts.extend(stuck);
    if !others.is_empty() {
        parts.push(format!("the cluster itself waits for: {}", named(&others)));
    }
    let message = (!parts.is_empty()).then(|| format!("the cluster is being deleted; {}", parts.join("; ")))?;
    Some(Verdict {
        provider: provider_condition(cluster, projection),
        ready: ReportedCondition::new(READY, false, Reason::Deleting, message),
    })
}

fn provider_condition(cluster: &KubernetesCluster, projection: Option<&Projection>) -> ReportedCondition {
    let say = |holds, reason, message: String| ReportedCondition::new(PROVIDER_CLUSTER_READY, holds, reason, message);
    let Some(projection) = projection.filter(|projection| ownership(projection, cluster) == Ownership::Ours) else {
        return say(false, Reason::NoProjection, "there is no projection of this cluster yet".into());
    };
    let provider = &projection.spec.provider_ref.name;
    let Some(status) = &projection.status else {
        return say(false, Reason::ProviderNotReady, format!("{provider} has not reported yet"));
    };
    let generation = projection.metadata.generation();
    match reported_generation(status) {
        Some(observed) if observed >= generation || mutated(Mutant::OldReportCounts) => {}
        observed => {
            let observed = observed.map_or_else(|| "no generation".to_owned(), |observed| format!("generation {observed}"));
            return say(
                false,
                Reason::StatusOutdated,
                format!("the report of {provider} speaks of {observed}, the projection is at {generation}"),
            );
        }
    }
    let theirs = condition::find(&status.conditions, READY);
    let ready = status.ready.unwrap_or_else(|| theirs.is_some_and(|theirs| theirs.status == ConditionStatus::True))
        && theirs.is_none_or(|theirs| theirs.status == ConditionStatus::True);
    if ready {
        return say(true, Reason::Ready, format!("{provider} reports ready"));
    }
    let why = theirs.map_or_else(String::new, |theirs| format!(": {} ({})", theirs.message, theirs.reason));
    say(false, Reason::ProviderNotReady, format!("{provider} reports not ready{why}"))
}

fn reported_generation(status: &ProjectionStatus) -> Option<i64> {
    status.observed_generation.or_else(|| condition::find(&status.conditions, READY)?.observed_generation)
}

#[cfg(test)]
mod tests;
