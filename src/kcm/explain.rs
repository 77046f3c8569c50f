//! Explains a decision: every offering, the rule that it meets or fails, and what change would make the cluster schedulable.
//!
//! Pure: the verdicts come from the same functions as the decision, and the decision itself is the production one.

use std::fmt;

use serde::Serialize;

use super::advice;
use super::catalog::Offering;
use super::judge::{Judge, Judgement};
use super::message::{self, clip, list, shown};
use super::nearest;
use super::refusal;
use super::schedule::{Decision, Request, decide};

/// How the decision for one cluster came about; serialises to the entry of `explain -o json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The cluster's namespace.
    pub namespace: String,
    /// The cluster's name.
    pub name: String,
    /// Whether it can be served.
    pub scheduled: bool,
    /// The reason of the condition Scheduled.
    pub reason: String,
    /// The message of the condition Scheduled.
    pub message: String,
    /// The provider, if scheduled.
    pub provider: Option<String>,
    /// The offering, if scheduled.
    pub offering: Option<String>,
    /// The tenant's pools in their order.
    pub node_pools: Vec<ExplainedPool>,
    /// Every offering of the catalog, by provider name, then offering name.
    pub candidates: Vec<Candidate>,
    /// Single changes after which the cluster is schedulable, each tried by the production function; empty if scheduled. Not in the JSON.
    #[serde(skip)]
    pub advice: Vec<String>,
}

/// A pool and what it gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExplainedPool {
    /// The tenant's name of the pool.
    pub name: String,
    /// The machine type, if scheduled.
    #[serde(rename = "type")]
    pub type_: Option<String>,
}

/// What is to be said of one offering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// The offering's name.
    pub offering: String,
    /// Its provider's name.
    pub provider: String,
    /// The verdict on it.
    pub verdict: Verdict,
    /// The first pool that it does not serve, for `PoolUnsatisfied`.
    pub pool: Option<String>,
    /// What is behind the verdict, pool by pool, and the type names that were skipped; at most 1 KiB.
    pub detail: String,
    /// Every rule, met or not. Not in the JSON, where the verdict names the first that is not.
    #[serde(skip)]
    pub rules: Rules,
}

/// Each rule for one offering, whatever the others say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether its regions hold the cluster's.
    pub region: bool,
    /// Whether its versions hold the cluster's.
    pub version: bool,
    /// Whether it is of the provider that the cluster is pinned to; `None` for a cluster that is not pinned.
    pub pinned: Option<bool>,
    /// Whether the workspace holds a Provider for it.
    pub configured: bool,
    /// The first pool that none of its types serves.
    pub unserved_pool: Option<String>,
}

/// The verdict on an offering: the first that holds, in this order, and `Chosen` before `Eligible`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// It serves the cluster.
    Chosen,
    /// It would serve the cluster, but another one comes first by name.
    Eligible,
    /// Its regions do not hold the cluster's.
    RegionNotServed,
    /// Its versions do not hold the cluster's.
    VersionNotServed,
    /// The cluster is pinned to another provider.
    OtherProvider,
    /// The workspace holds no Provider for it.
    ProviderNotConfigured,
    /// No type it offers fits a pool in the region.
    PoolUnsatisfied,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Explains the decision for one cluster. Neither blocks nor fails; it costs one pass over the catalog and some dozens of decisions.
pub fn explain(request: Request<'_>) -> Explanation {
    let judge = Judge::new(request);
    let decision = decide(&judge);
    let metadata = &request.cluster.metadata;
    let chosen = match &decision {
        Decision::Scheduled { offering, .. } => Some(offering.as_str()),
        Decision::Unschedulable { .. } => None,
    };
    let candidates = request.catalog.offerings().into_iter().map(|offering| candidate(&judge, offering, chosen)).collect();
    Explanation {
        namespace: metadata.namespace.as_deref().unwrap_or_default().to_owned(),
        name: metadata.name.clone(),
        scheduled: chosen.is_some(),
        reason: decision.reason().to_string(),
        message: decision.message(),
        offering: chosen.map(str::to_owned),
        candidates,
        advice: if chosen.is_some() { Vec::new() } else { advice::advice(&judge) },
        node_pools: pools(&judge, &decision),
        provider: match decision {
            Decision::Scheduled { provider, .. } => Some(provider),
            Decision::Unschedulable { .. } => None,
        },
    }
}

fn pools(judge: &Judge<'_>, decision: &Decision) -> Vec<ExplainedPool> {
    match decision {
        Decision::Scheduled { pools, .. } => {
            pools.iter().map(|pool| ExplainedPool { name: pool.name.clone(), type_: Some(pool.type_.clone()) }).collect()
        }
        Decision::Unschedulable { .. } => {
            judge.demands.iter().map(|demand| ExplainedPool { name: demand.pool.name.clone(), type_: None }).collect()
        }
    }
}

fn candidate(judge: &Judge<'_>, offering: &Offering, chosen: Option<&str>) -> Candidate {
    let judgement = judge.judge(offering);
    let (verdict, pool) = match judgement {
        Judgement::RegionNotServed => (Verdict::RegionNotServed, None),
        Judgement::VersionNotServed => (Verdict::VersionNotServed, None),
        Judgement::OtherProvider => (Verdict::OtherProvider, None),
        Judgement::ProviderNotConfigured => (Verdict::ProviderNotConfigured, None),
        Judgement::PoolUnsatisfied(pool) => (Verdict::PoolUnsatisfied, Some(judge.demands[pool].pool.name.clone())),
        Judgement::Fits if chosen == Some(offering.name()) => (Verdict::Chosen, None),
        Judgement::Fits => (Verdict::Eligible, None),
    };
    let detail = format!("{}{}", detail(judge, offering, judgement), unknown_types(judge, offering));
    Candidate {
        offering: offering.name().to_owned(),
        provider: offering.provider().to_owned(),
        verdict,
        pool,
        detail: clip(detail, message::MAX),
        rules: Rules {
            region: judge.serves_region(offering),
            version: offering.has_version(judge.version()),
            pinned: judge.pin.map(|pin| pin == offering.provider()),
            configured: judge.request.providers.contains(offering.provider()),
            unserved_pool: judge.unsatisfied(offering).map(|pool| judge.demands[pool].pool.name.clone()),
        },
    }
}

/// What one list in a detail may take.
const LIST: usize = message::MAX / 3;

fn detail(judge: &Judge<'_>, offering: &Offering, judgement: Judgement) -> String {
    match judgement {
        Judgement::RegionNotServed if judge.lives_in.is_some() => {
            format!("the cluster lives in region {} and never moves", shown(judge.lives_in.unwrap_or_default()))
        }
        Judgement::RegionNotServed => {
            let regions = nearest::regions(judge.region(), offering.regions().collect());
            format!("serves {}", list(regions.into_iter().map(shown), LIST))
        }
        Judgement::VersionNotServed => {
            let versions = nearest::versions(judge.version(), offering.versions().collect());
            format!("serves {}", list(versions.into_iter().map(shown), LIST))
        }
        Judgement::OtherProvider => format!("the cluster is pinned to {}", shown(judge.pin.unwrap_or_default())),
        Judgement::ProviderNotConfigured => {
            format!("the workspace holds no Provider {}; {}", shown(offering.provider()), each_pool(judge, offering))
        }
        Judgement::PoolUnsatisfied(_) => format!("{}; {}", each_pool(judge, offering), refusal::largest(judge, offering.listed())),
        Judgement::Fits => each_pool(judge, offering),
    }
}

/// Per pool the type it would take from the offering, or why none.
fn each_pool(judge: &Judge<'_>, offering: &Offering) -> String {
    let pools = judge.demands.iter().enumerate().map(|(at, demand)| {
        let outcome = match (demand.pick(offering), demand.kept) {
            (Some(type_), Some(_)) => format!("{} (kept)", shown(type_.name())),
            (Some(type_), None) => shown(type_.name()),
            (None, _) => format!("none, {}", refusal::unsatisfied(judge, at, offering)),
        };
        format!("{}: {outcome}", shown(&demand.pool.name))
    });
    list(pools, LIST)
}

/// The type names that the offering lists and the catalog does not know (rule 2).
fn unknown_types(judge: &Judge<'_>, offering: &Offering) -> String {
    let listed = judge.catalog().listed(offering);
    let mut unknown = listed.into_iter().filter(|(_, type_)| type_.is_none()).map(|(name, _)| shown(name)).peekable();
    if unknown.peek().is_none() {
        return String::new();
    }
    format!("; skipped, as the catalog does not know them: {}", list(unknown, LIST))
}

/// The explanation for people: plain text with a table of the offerings, ending in a newline.
pub fn render(explanation: &Explanation) -> String {
    let Explanation { namespace, name, scheduled, reason, message, provider, offering, node_pools, candidates, advice } = explanation;
    let head = if *scheduled {
        let (provider, offering) = (provider.as_deref().unwrap_or_default(), offering.as_deref().unwrap_or_default());
        format!("Scheduled on provider {}, offering {}\n", shown(provider), shown(offering))
    } else {
        format!("not schedulable, {reason}\n  {message}\n")
    };
    let pools = node_pools.iter().map(|pool| vec![shown(&pool.name), pool.type_.as_deref().map_or_else(|| "-".to_owned(), shown)]);
    let advice = match advice.as_slice() {
        _ if *scheduled => String::new(),
        [] => "\nNo single change would make it schedulable.\n".to_owned(),
        lines => format!("\nIt would be schedulable after any of:\n  - {}\n", lines.join("\n  - ")),
    };
    [
        format!("{}/{}: {head}", shown(namespace), shown(name)),
        table(&["POOL", "TYPE"], pools.collect()),
        table(
            &["PROVIDER", "OFFERING", "VERDICT", "REGION", "VERSION", "PIN", "CONFIGURED", "POOLS", "DETAIL"],
            candidates.iter().map(row).collect(),
        ),
        advice,
    ]
    .concat()
}

/// An offering's row: the verdict, then each rule by itself.
fn row(candidate: &Candidate) -> Vec<String> {
    let Candidate { offering, provider, verdict, detail, rules, .. } = candidate;
    let met = |met: bool| if met { "met" } else { "failed" }.to_owned();
    vec![
        shown(provider),
        shown(offering),
        verdict.to_string(),
        met(rules.region),
        met(rules.version),
        rules.pinned.map_or_else(|| "-".to_owned(), met),
        met(rules.configured),
        rules.unserved_pool.as_deref().map_or_else(|| met(true), |pool| format!("failed: {}", shown(pool))),
        detail.clone(),
    ]
}

/// Columns as wide as their widest cell, two spaces apart, as kubectl prints them; the last one is not padded.
fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::from("\n");
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}
