//! The decisions of the project, asked about objects of the model. Each question is asked once and its answer kept: a state space asks the same
//! few thousand questions over and over.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::thread::LocalKey;

use kcp_provider_runtime::kcm::plan::{self, Gathered, Plan, Stand};
use kcp_provider_runtime::kcm::project::{Ownership, ownership};
use kcp_provider_runtime::kcm::ready::{Verdict, judge, judge_deletion};
use kcp_provider_runtime::kcm::topics::{concerns_of, name_concerns_of, name_raised, raised};

use super::kinds;
use super::objects::{CONDITIONS, Projected, Provider, Says, Spoken, Tenant};
use super::state::{Input, Request};
use super::words::Word;

/// What the scheduler is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Planned {
    Keep,
    /// Delete this one, of another incarnation.
    RemoveOrphan(u8),
    Refuse,
    /// With this provider, and this about the projection; `None` where nothing is to be done or can be.
    Place(Provider, Option<Request>),
}

type Memory<K, V> = RefCell<HashMap<K, V>>;
/// An object and its projection.
type Both = (Tenant, Option<Projected>);
type Inputs = (Option<u8>, u8);

thread_local! {
    static PLANS: Memory<(Both, Inputs), (Planned, Says)> = RefCell::default();
    static VERDICTS: Memory<Both, Option<(Says, bool)>> = RefCell::default();
    static CONCERNS: Memory<(Tenant, Input, u8, u8), bool> = RefCell::default();
    static OURS: Memory<(u8, Projected), bool> = RefCell::default();
}

fn once<K: Eq + Hash, V: Copy>(memory: &'static LocalKey<Memory<K, V>>, question: K, ask: impl FnOnce(&K) -> V) -> V {
    if let Some(known) = memory.with_borrow(|memory| memory.get(&question).copied()) {
        return known;
    }
    let answer = ask(&question);
    memory.with_borrow_mut(|memory| memory.insert(question, answer));
    answer
}

/// No decision looks at a version, so all of them are one question.
fn of_any_version(tenant: &Tenant, projection: Option<&Projected>) -> Both {
    (Tenant { version: 0, ..*tenant }, projection.map(|projection| Projected { version: 0, ..*projection }))
}

/// Whether a projection is this object's.
pub(crate) fn is_ours(projection: &Projected, tenant: &Tenant) -> bool {
    once(&OURS, (tenant.uid, *projection), |_| ownership(&kinds::projection(projection), &kinds::cluster(tenant)) == Ownership::Ours)
}

/// What the scheduler does about an object that nobody deletes, over these offerings or none that can be read, and these Providers.
pub(crate) fn plan(tenant: &Tenant, projection: Option<&Projected>, inputs: Inputs) -> (Planned, Says) {
    let (planned, says) = once(&PLANS, (of_any_version(tenant, projection), inputs), |((tenant, projection), inputs)| {
        planned(tenant, projection.as_ref(), *inputs)
    });
    match (planned, projection) {
        (Planned::Place(provider, Some(Request::Replace(put))), Some(current)) => {
            (Planned::Place(provider, Some(Request::Replace(Projected { version: current.version, ..put }))), says)
        }
        _ => (planned, says),
    }
}

fn planned(tenant: &Tenant, projection: Option<&Projected>, (offerings, providers): Inputs) -> (Planned, Says) {
    let (cluster, real) = (kinds::cluster(tenant), projection.map(kinds::projection));
    let (catalog, providers) = (offerings.map(kinds::catalog), kinds::names(providers));
    let plan = plan::plan(&Gathered {
        cluster: &cluster,
        catalog: catalog.as_ref().ok_or_else(|| "its stream is broken".to_owned()),
        providers: Ok(&providers),
        projection: real.as_ref(),
        entitled: Ok(()),
    });
    let say =
        |holds: Option<bool>, reason: &str, message: &str| Some(Spoken { holds, reason: Word::of(reason), message: Word::of(message) });
    let leaving = |blockers: &[String]| say(Some(false), "Pending", &format!("somebody is deleting the projection: {blockers:?}"));
    let in_sync = say(Some(true), "InSync", "the projection matches the spec");
    match plan {
        Plan::Keep => (Planned::Keep, [None; 4]),
        Plan::RemoveOrphan(orphan) => {
            let uid = orphan.metadata.uid().strip_prefix("p-").and_then(|uid| uid.parse().ok()).expect("a uid");
            let pending = say(Some(false), "Pending", "the projection of an earlier cluster of this name is being deleted");
            (Planned::RemoveOrphan(uid), [say(None, "NotEvaluated", "see Projected"), pending, None, None])
        }
        Plan::Refuse { reason, message, stand } => {
            let projected = match stand {
                Stand::InSync => in_sync,
                Stand::Other => say(Some(false), "NotScheduled", "see Scheduled"),
                Stand::Leaving { blockers } => leaving(&blockers),
            };
            (Planned::Refuse, [say(Some(false), reason.as_str(), &message), projected, None, None])
        }
        Plan::Place { provider, message, act } => {
            let provider = Provider::ALL.into_iter().find(|known| known.name() == provider).expect("a known provider");
            let (request, projected) = match act {
                plan::Act::Nothing => (None, in_sync),
                plan::Act::Create(wanted) => (Some(Request::Create(kinds::wanted(&wanted, None))), in_sync),
                plan::Act::Update(wanted) => (Some(Request::Replace(kinds::wanted(&wanted, projection))), in_sync),
                plan::Act::AwaitRemoval { blockers } => (None, leaving(&blockers)),
                plan::Act::Foreign => panic!("the model has no foreign projections"),
            };
            (Planned::Place(provider, request), [say(Some(true), "Scheduled", &message), projected, None, None])
        }
    }
}

/// What the status reconciler says, and whether the cluster is ready; nothing while there is nothing to say.
pub(crate) fn verdict(tenant: &Tenant, projection: Option<&Projected>) -> Option<(Says, bool)> {
    once(&VERDICTS, of_any_version(tenant, projection), |(tenant, projection)| {
        let (cluster, projection) = (kinds::cluster(tenant), projection.as_ref().map(kinds::projection));
        let judge = if tenant.deleting { judge_deletion } else { judge };
        judge(&cluster, projection.as_ref()).map(|verdict| (said(&verdict), verdict.is_ready()))
    })
}

/// By type and not by place: what belongs to another would be seen.
fn said(verdict: &Verdict) -> Says {
    let mut says = [None; 4];
    for condition in [&verdict.provider, &verdict.ready] {
        let at = CONDITIONS.iter().position(|type_| *type_ == condition.type_).expect("a known condition");
        says[at] = Some(kinds::spoken(condition));
    }
    says
}

/// Whether a change of offerings or Providers concerns an object as the cache shows it.
pub(crate) fn concerns(tenant: &Tenant, input: Input, before: u8, after: u8) -> bool {
    once(&CONCERNS, (of_any_version(tenant, None).0, input, before, after), |(tenant, input, before, after)| {
        let cluster = kinds::cluster(tenant);
        match input {
            Input::Offerings => {
                let catalog = kinds::catalog(*before);
                let raised = raised(&catalog, &kinds::change(&catalog, *before, *after));
                concerns_of(&cluster).iter().any(|topic| raised.contains(topic))
            }
            Input::Providers => {
                let changed = kinds::names(before ^ after);
                let present = kinds::names(*after);
                let raised: Vec<_> = changed.iter().flat_map(|name| name_raised(name, present.contains(name))).collect();
                name_concerns_of(&cluster).iter().any(|topic| raised.contains(topic))
            }
        }
    })
}
