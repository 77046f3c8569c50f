//! The decision: which provider runs a cluster, and which machine type each pool gets, or why nothing can be had.
//!
//! Pure: the same request gives the same decision, whatever order its parts arrived in and however often it is asked. The rules are those
//! of `api.md`, 1 to 5; rule numbers in comments are its. Whether the catalog can be read at all, and whether the workspace may be served,
//! is for the caller to say (`CatalogUnavailable`, `NotEntitled`) before it asks.

use std::collections::BTreeSet;

use super::catalog::{Catalog, Offering};
use super::judge::{Judge, Judgement};
use super::message::{self, clip, list, shown};
use super::refusal;
use crate::api::projection::Projection;
use crate::api::reason::Reason;
use crate::api::tenant::KubernetesCluster;
use crate::mutants::{Mutant, mutated};

/// Everything that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What the tenant wants. Its status is not looked at.
    pub cluster: &'a KubernetesCluster,
    /// What the platform offers.
    pub catalog: &'a Catalog,
    /// The names of the Providers in the tenant's workspace.
    pub providers: &'a BTreeSet<String>,
    /// The cluster's own projection, if it has one; never a foreign one nor an orphan (see [`super::project::ownership`]).
    pub projection: Option<&'a Projection>,
}

/// What is to be done with a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Every pool has a machine type.
    Scheduled {
        /// The provider's name, for spec.providerRef.name where that is not set.
        provider: String,
        /// The provider that spec.providerRef names, where the cluster lives with another one and stays there.
        named: Option<String>,
        /// The offering that serves it, for people: nothing stores it.
        offering: String,
        /// The tenant's pools in their order.
        pools: Vec<PoolType>,
    },
    /// There is no way to serve it as things are. A projection that exists stays as it is.
    Unschedulable {
        /// `OfferingNotFound`, `ProviderNotConfigured` or `CapabilityMismatch`: the first that holds, in this order.
        reason: Reason,
        /// For the tenant; at most 1 KiB.
        message: String,
    },
}

/// A pool and its machine type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolType {
    /// The tenant's name of the pool.
    pub name: String,
    /// A `VirtualMachineType`'s metadata.name.
    pub type_: String,
}

/// Decides for one cluster. Neither blocks nor fails.
pub fn schedule(request: Request<'_>) -> Decision {
    decide(&Judge::new(request))
}

impl Decision {
    /// The reason of the condition Scheduled.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Scheduled { .. } => Reason::Scheduled,
            Self::Unschedulable { reason, .. } => *reason,
        }
    }

    /// The message of the condition Scheduled, at most 1 KiB.
    ///
    /// It does not name the offering: which one of its provider's offerings serves a settled cluster may change without any effect on it, and a
    /// status must not be written for that.
    pub fn message(&self) -> String {
        match self {
            Self::Scheduled { provider, named, pools, .. } => {
                let stays = named.as_ref().map_or_else(String::new, |named| {
                    format!(", where it lives: it never migrates to {}, which spec.providerRef names", shown(named))
                });
                let pools = pools.iter().map(|pool| format!("{}: {}", shown(&pool.name), shown(&pool.type_)));
                clip(format!("provider {}{stays}; {}", shown(provider), list(pools, message::MAX / 2)), message::MAX)
            }
            Self::Unschedulable { message, .. } => message.clone(),
        }
    }
}

/// The decision of a judge; the offerings come in the order of rule 3, so the first that fits wins.
pub(super) fn decide(judge: &Judge<'_>) -> Decision {
    if mutated(Mutant::LastOfferingFirst)
        && let Some(last) = judge.serving().filter(|offering| judge.judge(offering) == Judgement::Fits).last()
    {
        return placed(judge, last);
    }
    let mut refused = Vec::new();
    for offering in judge.serving() {
        match judge.judge(offering) {
            Judgement::Fits => return placed(judge, offering),
            judgement => refused.push((offering, judgement)),
        }
    }
    let (reason, message) = refusal::of(judge, &refused);
    Decision::Unschedulable { reason, message: clip(message, message::MAX) }
}

fn placed(judge: &Judge<'_>, offering: &Offering) -> Decision {
    let pools = judge.demands.iter().map(|demand| {
        let type_ = demand.pick(offering).expect("an offering that fits has a type for each pool");
        PoolType { name: demand.pool.name.clone(), type_: type_.name().to_owned() }
    });
    Decision::Scheduled {
        provider: offering.provider().to_owned(),
        named: judge.named_in_vain().map(str::to_owned),
        offering: offering.name().to_owned(),
        pools: pools.collect(),
    }
}
