//! What the scheduler does about a cluster, from everything it has gathered.
//!
//! Pure: the plan is made before anything is written, and a condition speaks of a write only after it.

use std::collections::BTreeSet;

use crate::api::allowed::Rule;
use crate::api::condition;
use crate::api::meta::ServiceObject;
use crate::api::projection::Projection;
use crate::api::reason::Reason;
use crate::api::tenant::KubernetesCluster;
use crate::reconciler::Workspace;

use super::catalog::Catalog;
use super::message::shown;
use super::project::{Ownership, desired, differs, ownership};
use super::schedule::{Decision, Request, schedule};

/// The condition type that says whether a provider is selected.
pub const SCHEDULED: &str = "Scheduled";
/// The condition type that says whether the projection matches the spec.
pub const PROJECTED: &str = "Projected";

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// No decision is needed: the cluster is scheduled for its current generation, and what cannot be read now changes nothing.
    Keep,
    /// An orphan of an earlier incarnation stands in the way: delete it, then start afresh.
    RemoveOrphan(Box<Projection>),
    /// Nothing can be placed; a projection that exists stays as it is.
    Refuse {
        /// Why, for `Scheduled`.
        reason: Reason,
        /// For the tenant.
        message: String,
        /// Whether the projection that exists is what the spec asks for.
        stand: Stand,
    },
    /// A provider is selected and every pool resolved.
    Place {
        /// The provider's name.
        provider: String,
        /// For the tenant.
        message: String,
        /// What it takes.
        act: Act,
    },
}

/// How a projection stands that is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stand {
    /// It is what the spec asks for.
    InSync,
    /// There is none, or it is what an earlier spec asked for.
    Other,
    /// Somebody deletes it.
    Leaving {
        /// The finalizers that it waits for.
        blockers: Vec<String>,
    },
}

/// What it takes to make the projection match.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// It does.
    Nothing,
    /// Create it.
    Create(Box<Projection>),
    /// Replace it.
    Update(Box<Projection>),
    /// It is ours and somebody deletes it: only once it is gone can it be created anew.
    AwaitRemoval {
        /// The finalizers that it waits for.
        blockers: Vec<String>,
    },
    /// An object of its name is not ours and is left alone.
    Foreign,
}

/// What was gathered; an `Err` says why it could not be.
pub struct Gathered<'a> {
    /// The tenant's object.
    pub cluster: &'a KubernetesCluster,
    /// The platform's catalog.
    pub catalog: Result<&'a Catalog, String>,
    /// The names of the Providers in the workspace.
    pub providers: Result<&'a BTreeSet<String>, String>,
    /// The object of the projection's name.
    pub projection: Option<&'a Projection>,
    /// Whether the workspace is served, or the rule that says it is not.
    pub entitled: Result<(), String>,
}

/// Makes the plan.
pub fn plan(gathered: &Gathered<'_>) -> Plan {
    let Gathered { cluster, catalog, providers, projection, entitled } = gathered;
    let whose = projection.map(|projection| (projection, ownership(projection, cluster)));
    if let Some((orphan, Ownership::Orphan { .. })) = &whose {
        return Plan::RemoveOrphan(Box::new((**orphan).clone()));
    }
    let ours = whose.as_ref().filter(|(_, whose)| *whose == Ownership::Ours).map(|(projection, _)| *projection);
    let (catalog, providers) = match (catalog, providers) {
        (Ok(catalog), Ok(providers)) => (*catalog, *providers),
        (Err(what), _) => {
            return without_decision(cluster, ours, Reason::CatalogUnavailable, format!("the catalog cannot be read: {what}"));
        }
        (_, Err(what)) => {
            return without_decision(
                cluster,
                ours,
                Reason::CatalogUnavailable,
                format!("the Providers of this workspace cannot be read: {what}"),
            );
        }
    };
    if let Err(rule) = entitled {
        return without_decision(cluster, ours, Reason::NotEntitled, rule.clone());
    }
    let decision = schedule(Request { cluster, catalog, providers, projection: ours });
    let message = decision.message();
    match decision {
        Decision::Unschedulable { reason, message } => Plan::Refuse { reason, message, stand: stand(ours, cluster) },
        Decision::Scheduled { provider, pools, .. } => {
            let wanted = desired(cluster, &provider, &pools);
            let act = match (ours, whose.is_some()) {
                (Some(current), _) if current.metadata.is_deleting() => Act::AwaitRemoval { blockers: current.metadata.finalizers.clone() },
                (Some(current), _) => differs(current, &wanted).map_or(Act::Nothing, |put| Act::Update(Box::new(put))),
                (None, true) => Act::Foreign,
                (None, false) => Act::Create(Box::new(wanted)),
            };
            Plan::Place { provider, message, act }
        }
    }
}

/// Something that a decision needs is missing: it matters only to a cluster that is not scheduled for its current generation.
fn without_decision(cluster: &KubernetesCluster, ours: Option<&Projection>, reason: Reason, message: String) -> Plan {
    if is_settled(cluster) { Plan::Keep } else { Plan::Refuse { reason, message, stand: stand(ours, cluster) } }
}

/// Whether the cluster is scheduled for its current generation.
pub fn is_settled(cluster: &KubernetesCluster) -> bool {
    cluster.provider().is_some() && condition::holds_for(cluster.conditions(), SCHEDULED, cluster.metadata.generation())
}

/// Whether the projection shows what the spec asks for, with whatever types it has.
fn stand(projection: Option<&Projection>, cluster: &KubernetesCluster) -> Stand {
    match projection {
        Some(projection) if projection.metadata.is_deleting() => Stand::Leaving { blockers: projection.metadata.finalizers.clone() },
        Some(projection) if shows(projection, cluster) => Stand::InSync,
        _ => Stand::Other,
    }
}

fn shows(projection: &Projection, cluster: &KubernetesCluster) -> bool {
    let pools: Vec<_> = projection
        .spec
        .node_pools
        .iter()
        .map(|pool| super::schedule::PoolType { name: pool.name.clone(), type_: pool.type_.clone() })
        .collect();
    pools.len() == cluster.spec.node_pools.len()
        && differs(projection, &desired(cluster, &projection.spec.provider_ref.name, &pools)).is_none()
}

/// How many rules a refused tenant is shown: enough to see what kind they are; the others are the names of other tenants.
const SHOWN_RULES: usize = 3;

/// Whether a workspace is served under the rules of `allowedWorkspaces`; the error says why not.
pub fn entitled(workspace: &Workspace, rules: &[String]) -> Result<(), String> {
    if rules.is_empty() {
        return Ok(());
    }
    // Rules that cannot be judged, as the workspace's path is not known.
    let mut unjudged = Vec::new();
    for rule in rules {
        match Rule::parse(rule) {
            Ok(Rule::Name(name)) if name == workspace.logical_cluster.as_str() => return Ok(()),
            Ok(path @ Rule::Path(_)) => match &workspace.path {
                Some(known) if path.matches_path(known) => return Ok(()),
                Some(_) => {}
                None => unjudged.push(rule),
            },
            _ => {}
        }
    }
    if unjudged.is_empty() {
        Err(format!("this workspace is under none of the platform's allowedWorkspaces ({})", some(rules)))
    } else {
        Err(format!(
            "the path of this workspace could not be resolved, so it is not known to be under any of the platform's allowedWorkspaces ({})",
            some(&unjudged)
        ))
    }
}

/// The first rules, and how many there are besides.
fn some(rules: &[impl AsRef<str>]) -> String {
    let listed: Vec<String> = rules.iter().take(SHOWN_RULES).map(|rule| shown(rule.as_ref())).collect();
    match rules.len().saturating_sub(SHOWN_RULES) {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

#[cfg(test)]
mod tests;
