//! The status reconciler: rolls the provider's report up to the tenant's object. What it says is made in [`super::ready`].

use async_trait::async_trait;
use serde::Serialize;

use crate::api::config::ProviderConfig;
use crate::api::projection::Projection;
use crate::api::tenant::KubernetesCluster;
use crate::reconciler::{Actor, Child, Context, Deletion, Inputs, Reconciler, Report};

use super::ready::{PROVIDER_CLUSTER_READY, READY, Verdict, judge, judge_deletion};
use super::scheduler::KcmError;

/// Owns `ProviderClusterReady`, `Ready`, `status.ready` and `status.observedGeneration`.
pub struct Readiness {
    projection: Child<Projection>,
}

impl Readiness {
    /// A status reconciler.
    pub fn new(inputs: &mut Inputs<KubernetesCluster>) -> Self {
        Self { projection: inputs.child() }
    }
}

/// The status fields of the status reconciler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RolledUp {
    ready: bool,
    observed_generation: i64,
}

fn report(cluster: &KubernetesCluster, verdict: Option<Verdict>) -> Report<RolledUp> {
    let Some(verdict) = verdict else { return Report::unchanged() };
    let status = RolledUp { ready: verdict.is_ready(), observed_generation: cluster.metadata.generation() };
    Report::new(status).with(verdict.provider).with(verdict.ready)
}

#[async_trait]
impl Reconciler for Readiness {
    type Object = KubernetesCluster;
    type Config = ProviderConfig;
    type Status = RolledUp;
    type Error = KcmError;

    fn actor(&self) -> Actor {
        Actor { name: "cluster-status", finalizer: None, conditions: &[PROVIDER_CLUSTER_READY, READY] }
    }

    async fn create_or_update(&self, ctx: &Context<ProviderConfig>, cluster: &KubernetesCluster) -> Result<Report<RolledUp>, KcmError> {
        let projection = self.projection.get(ctx)?;
        Ok(report(cluster, judge(cluster, projection.as_ref())))
    }

    async fn delete(&self, ctx: &Context<ProviderConfig>, cluster: &KubernetesCluster) -> Result<Deletion<RolledUp>, KcmError> {
        let projection = self.projection.get(ctx)?;
        let verdict = judge_deletion(cluster, projection.as_ref());
        Ok(verdict.map_or(Deletion::Done, |verdict| Deletion::Pending(report(cluster, Some(verdict)))))
    }

    fn unevaluated(&self, generation: i64) -> Option<RolledUp> {
        Some(RolledUp { ready: false, observed_generation: generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_nobody_can_judge_is_not_ready() {
        let fields = serde_json::to_value(Readiness::new(&mut Inputs::new()).unevaluated(3)).unwrap();
        assert_eq!(fields, serde_json::json!({"ready": false, "observedGeneration": 3}));
    }
}
