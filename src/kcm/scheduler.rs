//! The scheduler: from a tenant's cluster to its projection. Gathers, plans, applies, reports; the plan is made in [`super::plan`].

use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;

use crate::api::catalog::{KubernetesClusterOffering, VirtualMachineType};
use crate::api::condition::{self, ConditionStatus};
use crate::api::config::ProviderConfig;
use crate::api::meta::{Kind, KindRef, ServiceObject};
use crate::api::names::ObjectName;
use crate::api::projection::Projection;
use crate::api::provider::Provider;
use crate::api::reason::Reason;
use crate::api::tenant::{KubernetesCluster, PROJECTION_FINALIZER};
use crate::mutants::{Mutant, mutated};
use crate::reconciler::{
    Actor, CallError, Child, Context, Deletion, Event, Failure, Inputs, NameChange, Names, Objects, Platform, Recheck, Reconciler, Removal,
    Report, ReportedCondition, Topic, Unavailable, View,
};

use super::catalog::{Catalog, Change};
use super::message::named;
use super::plan::{Act, Gathered, PROJECTED, Plan, SCHEDULED, Stand, entitled, is_settled, plan};
use super::project::{Ownership, ownership};
use super::topics;

/// Why a reconcile of KCM failed, for the operator.
#[derive(Debug, thiserror::Error)]
pub enum KcmError {
    /// A request did not succeed.
    #[error("{0}")]
    Call(#[from] CallError),
    /// The projection cannot be read.
    #[error("the projection cannot be read: {0}")]
    Projection(#[from] Unavailable),
}

impl crate::reconciler::ReconcileError for KcmError {
    fn reason(&self) -> Reason {
        match self {
            Self::Call(error) => crate::reconciler::ReconcileError::reason(error),
            Self::Projection(error) => crate::reconciler::ReconcileError::reason(error),
        }
    }
}

/// Owns `Scheduled` and `Projected`, the pin, the finalizer and the projection.
pub struct Scheduler {
    catalog: Platform<Catalog>,
    providers: Names<Provider>,
    projection: Child<Projection>,
    requeue: Option<Duration>,
}

impl Scheduler {
    /// A scheduler that requeues as its configuration says.
    pub fn new(inputs: &mut Inputs<KubernetesCluster>) -> Self {
        inputs
            .config::<ProviderConfig>(needy, |before, after| if before.spec == after.spec { Vec::new() } else { vec![Topic::new(NEEDY)] });
        Self {
            catalog: inputs.platform(topics::concerns_of, |before, after| topics::raised(before, after).into_iter().collect()),
            providers: inputs.names(topics::name_concerns_of, |NameChange { name, present }| topics::name_raised(name, *present)),
            projection: inputs.child(),
            requeue: None,
        }
    }

    /// Requeues unschedulable clusters after this time, whatever the configuration says.
    #[must_use]
    pub fn with_requeue(self, requeue: Option<Duration>) -> Self {
        Self { requeue, ..self }
    }

    fn recheck(&self, reason: Reason, config: &ProviderConfig) -> Recheck {
        match reason {
            Reason::CatalogUnavailable => Recheck::Backoff,
            _ => Recheck::After(self.requeue.unwrap_or_else(|| config.unschedulable_requeue())),
        }
    }

    /// An orphan's end is for good: neither that the cluster is this one nor that the orphan is none is taken from a cache that may lag.
    async fn remove_orphan(
        &self,
        ctx: &Context<ProviderConfig>,
        cluster: &KubernetesCluster,
        orphan: &Projection,
    ) -> Result<Report, KcmError> {
        // One that is going goes, whoever asked for it: only its provider is waited for.
        if !orphan.metadata.is_deleting() {
            let live: Option<KubernetesCluster> = ctx.clusters.control_plane.get(&cluster.object_name()).await?;
            if live.is_none_or(|live| live.metadata.uid() != cluster.metadata.uid()) {
                return Ok(Report::unchanged().recheck(Recheck::Backoff));
            }
            let _ = self.projection.delete(ctx, orphan).await?;
        }
        let message = "the projection of an earlier cluster of this name is being deleted";
        let unknown = ReportedCondition::new(SCHEDULED, ConditionStatus::Unknown, Reason::NotEvaluated, "see Projected");
        Ok(Report::new(()).with(unknown).with(ReportedCondition::new(PROJECTED, false, Reason::Pending, message)))
    }

    async fn place(
        &self,
        ctx: &Context<ProviderConfig>,
        cluster: &KubernetesCluster,
        provider: &str,
        act: &Act,
    ) -> Result<ReportedCondition, KcmError> {
        let pin = if cluster.provider().is_none() { json!({"spec": {"providerRef": {"name": provider}}}) } else { json!({}) };
        if *act == Act::Foreign {
            let message = "a projection of this name exists that KCM did not make; it is left alone: order the cluster under another name, \
                           or ask the platform's operator";
            return Ok(ReportedCondition::new(PROJECTED, false, Reason::ForeignProjection, message));
        }
        if let Act::Create(wanted) = act
            && mutated(Mutant::CreateBeforeFinalizer)
        {
            let _ = ctx.clusters.control_plane.create(&**wanted).await?;
        }
        let held = ctx.hold(cluster, pin).await?;
        match act {
            Act::AwaitRemoval { blockers } => return Ok(leaving(blockers)),
            Act::Create(wanted) => match self.projection.create(ctx, &held, wanted).await {
                Err(error) if matches!(error.failure(), Failure::NotAllowed(_)) => {
                    let message = "nothing new can be created here: the workspace's binding is being deleted";
                    return Ok(ReportedCondition::new(PROJECTED, false, Reason::Pending, message));
                }
                created => created.map(drop)?,
            },
            Act::Update(wanted) => self.projection.update(ctx, wanted).await.map(drop)?,
            Act::Nothing | Act::Foreign => {}
        }
        Ok(ReportedCondition::new(PROJECTED, true, Reason::InSync, "the projection matches the spec"))
    }
}

/// What is said of a projection that somebody else deletes; its end wakes the cluster, and it is created anew.
fn leaving(blockers: &[String]) -> ReportedCondition {
    let message =
        format!("somebody is deleting the projection, which waits for: {}; only once it is gone can it be created anew", named(blockers));
    ReportedCondition::new(PROJECTED, false, Reason::Pending, message)
}

fn says_deleting(cluster: &KubernetesCluster) -> bool {
    condition::find(cluster.conditions(), PROJECTED).is_some_and(|projected| projected.reason == Reason::Deleting.as_str())
}

const NEEDY: &str = "needy";

fn needy(cluster: &KubernetesCluster) -> Vec<Topic> {
    if is_settled(cluster) { Vec::new() } else { vec![Topic::new(NEEDY)] }
}

impl View for Catalog {
    fn kinds() -> Vec<KindRef> {
        vec![KubernetesClusterOffering::REF, VirtualMachineType::REF]
    }

    fn fold(before: Option<&Self>, all: &Objects<'_>, changed: &[(KindRef, ObjectName)]) -> Self {
        let mut offerings = Vec::new();
        let mut types = Vec::new();
        for (kind, name) in changed {
            if *kind == KubernetesClusterOffering::REF {
                offerings.push((&*name.name, all.get::<KubernetesClusterOffering>(name)));
            } else {
                types.push((&*name.name, all.get::<VirtualMachineType>(name)));
            }
        }
        let offerings = offerings.iter().map(|(name, found)| Change::Offering(name, found.as_ref().map(|offering| &offering.spec)));
        let types = types.iter().map(|(name, found)| Change::Type(name, found.as_ref().map(|type_| &type_.spec)));
        before.cloned().unwrap_or_default().apply(types.chain(offerings))
    }
}

#[async_trait]
impl Reconciler for Scheduler {
    type Object = KubernetesCluster;
    type Config = ProviderConfig;
    type Status = ();
    type Error = KcmError;

    fn actor(&self) -> Actor {
        Actor { name: "cluster-scheduler", finalizer: Some(PROJECTION_FINALIZER), conditions: &[SCHEDULED, PROJECTED] }
    }

    async fn create_or_update(&self, ctx: &Context<ProviderConfig>, cluster: &KubernetesCluster) -> Result<Report, KcmError> {
        let catalog = self.catalog.get(ctx, ctx.config.catalog_max_staleness());
        let providers = self.providers.get(ctx);
        let projection = self.projection.get(ctx)?;
        let empty = Catalog::default();
        let blind = mutated(Mutant::UnreadableIsEmpty);
        let plan = plan(&Gathered {
            cluster,
            catalog: catalog.as_deref().or_else(|problem| if blind { Ok(&empty) } else { Err(problem.to_string()) }),
            providers: providers.as_deref().map_err(ToString::to_string),
            projection: projection.as_ref(),
            entitled: entitled(&ctx.workspace, ctx.config.spec.runtime.allowed_workspaces()),
        });
        // A tenant may take the finalizer away; whoever has a projection gets it back, placed anew or not.
        let ours = projection.as_ref().is_some_and(|projection| ownership(projection, cluster) == Ownership::Ours);
        // A defect that releases what this holds at once would go on for ever at one instant.
        if ours && matches!(plan, Plan::Keep | Plan::Refuse { .. }) && !mutated(Mutant::RefusalReleases) {
            let _ = ctx.hold(cluster, json!({})).await?;
        }
        match plan {
            // What could not be read wakes the cluster when it can be; nothing else is to be done before.
            Plan::Keep => Ok(Report::unchanged()),
            Plan::RemoveOrphan(orphan) => self.remove_orphan(ctx, cluster, &orphan).await,
            Plan::Refuse { reason: Reason::OfferingNotFound, .. }
                if cluster.provider().is_some() && mutated(Mutant::LostOfferingUnpins) =>
            {
                let _ = ctx.hold(cluster, json!({"spec": {"providerRef": null}})).await?;
                Ok(Report::unchanged())
            }
            Plan::Refuse { .. } if mutated(Mutant::RefusalReleases) && !cluster.metadata.finalizers.is_empty() => {
                let mut released = cluster.clone();
                released.metadata.finalizers.clear();
                let _ = ctx.clusters.control_plane.replace(&released).await?;
                Ok(Report::unchanged())
            }
            Plan::Refuse { reason, message, stand } => {
                let projected = match stand {
                    Stand::InSync => ReportedCondition::new(PROJECTED, true, Reason::InSync, "the projection matches the spec"),
                    Stand::Other => ReportedCondition::new(PROJECTED, false, Reason::NotScheduled, "see Scheduled"),
                    Stand::Leaving { blockers } => leaving(&blockers),
                };
                let recheck = self.recheck(reason, &ctx.config);
                let scheduled = ReportedCondition::new(SCHEDULED, false, reason, message);
                // What the cluster says already it has been told.
                let news = scheduled.is_news_to(cluster.conditions()).then(|| Event::warning(reason, scheduled.message.as_str()));
                let report = Report::new(()).with(scheduled).with(projected).recheck(recheck);
                Ok(news.into_iter().fold(report, Report::with_event))
            }
            Plan::Place { provider, message, act } => {
                let projected = self.place(ctx, cluster, &provider, &act).await?;
                let report = Report::new(()).with(ReportedCondition::new(SCHEDULED, true, Reason::Scheduled, message)).with(projected);
                // Its topics are those of the provider that the spec names: of the one where it lives it hears by the clock only.
                let elsewhere = cluster.provider().is_some_and(|named| named != provider);
                Ok(if elsewhere { report.recheck(self.recheck(Reason::Scheduled, &ctx.config)) } else { report })
            }
        }
    }

    async fn delete(&self, ctx: &Context<ProviderConfig>, cluster: &KubernetesCluster) -> Result<Deletion, KcmError> {
        if !cluster.metadata.finalizers.iter().any(|finalizer| finalizer == PROJECTION_FINALIZER) {
            return Ok(Deletion::Done);
        }
        // What the cache does not show, or shows as another's, may be there and ours: only the server's own word releases the finalizer.
        let ours = |projection: &Projection| ownership(projection, cluster) == Ownership::Ours;
        let projection = match self.projection.get(ctx)?.filter(ours) {
            Some(projection) => Some(projection),
            None if mutated(Mutant::ReleaseOnCachedAbsence) => None,
            None => self.projection.look(ctx, &cluster.object_name()).await?.filter(ours),
        };
        let Some(projection) = projection else { return Ok(Deletion::Done) };
        let mut recheck = Recheck::OnChange;
        let mut message =
            format!("the provider is still taking the cluster down; the projection waits for: {}", named(&projection.metadata.finalizers));
        if !projection.metadata.is_deleting() {
            match self.projection.delete(ctx, &projection).await {
                Ok(Removal::Gone) => return Ok(Deletion::Done),
                Ok(Removal::Going) => {}
                // Said once, so that the tenant knows; then it fails as any other call does, which the operator sees.
                Err(error) if matches!(error.failure(), Failure::Forbidden(_) | Failure::NotAllowed(_)) && !says_deleting(cluster) => {
                    recheck = Recheck::Backoff;
                    message = format!("the projection cannot be deleted: {error}");
                }
                Err(error) => return Err(error.into()),
            }
        }
        let deleting = ReportedCondition::new(PROJECTED, false, Reason::Deleting, message);
        Ok(Deletion::Pending(Report::new(()).with(deleting).recheck(recheck)))
    }
}

#[cfg(test)]
mod tests;
