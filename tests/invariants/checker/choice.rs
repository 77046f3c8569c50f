//! Invariants of the decision: what was written follows from the inputs by the scheduling rules, worked out here a second time and plainly.
//!
//! A reconciler may act on inputs that are no longer the latest, each with a lag of its own: what was written must follow from some combination of
//! states that were lately there.
//!
//! Pure: functions of one step.

use std::collections::{BTreeMap, BTreeSet};

use kcp_provider_runtime::api::catalog::{KubernetesClusterOffering, VirtualMachineType};
use kcp_provider_runtime::api::projection::{Projection, REQUESTS_ANNOTATION};
use kcp_provider_runtime::api::tenant::{Capabilities, KubernetesCluster, NodePool};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Step;
use super::event::{Key, OFFERING, PROJECTION, PROVIDER, TENANT, TYPE};
use super::state::{Past, State, owner, text};

/// The provider and a type for each pool, or the reason why there are none.
pub(super) type Choice = Result<(String, Vec<String>), &'static str>;

/// What a decision depends on.
struct Inputs<'a> {
    tenant: &'a KubernetesCluster,
    offerings: &'a [KubernetesClusterOffering],
    types: &'a BTreeMap<String, VirtualMachineType>,
    providers: &'a BTreeSet<String>,
    projection: Option<&'a Projection>,
}

fn read<T: DeserializeOwned>(object: &Value) -> Option<T> {
    T::deserialize(object).ok()
}

fn offerings(state: &State) -> Vec<KubernetesClusterOffering> {
    let mut offerings: Vec<KubernetesClusterOffering> = state.all(OFFERING).filter_map(|(_, object)| read(object)).collect();
    offerings.sort_by(|a, b| (&a.spec.provider_ref.name, &a.metadata.name).cmp(&(&b.spec.provider_ref.name, &b.metadata.name)));
    offerings
}

fn types(state: &State) -> BTreeMap<String, VirtualMachineType> {
    state.all(TYPE).filter_map(|(key, object)| Some((key.name.clone(), read(object)?))).collect()
}

fn providers(state: &State, key: &Key) -> BTreeSet<String> {
    state.all(PROVIDER).filter(|(own, _)| own.workspace == key.workspace).map(|(key, _)| key.name.clone()).collect()
}

impl Inputs<'_> {
    /// Scheduling rules 1 to 5.
    fn decide(&self) -> Choice {
        let spec = &self.tenant.spec;
        let lives = self.projection.map(|projection| projection.spec.provider_ref.name.as_str());
        let pin = lives.or_else(|| self.tenant.provider());
        let (mut serves, mut candidate) = (false, false);
        for offering in self.offerings.iter().filter(|offering| pin.is_none_or(|pin| offering.spec.provider_ref.name == pin)) {
            if !offering.spec.available_regions.contains(&spec.region) || !offering.spec.available_versions.contains(&spec.version) {
                continue;
            }
            serves = true;
            if !self.providers.contains(&offering.spec.provider_ref.name) {
                continue;
            }
            candidate = true;
            let types: Option<Vec<String>> = spec.node_pools.iter().map(|pool| self.pick(offering, pool)).collect();
            if let Some(types) = types {
                return Ok((offering.spec.provider_ref.name.clone(), types));
            }
        }
        Err(match (serves, candidate) {
            (false, _) => "OfferingNotFound",
            (true, false) => "ProviderNotConfigured",
            (true, true) => "CapabilityMismatch",
        })
    }

    fn pick(&self, offering: &KubernetesClusterOffering, pool: &NodePool) -> Option<String> {
        let kept = self.projection.and_then(|projection| kept(projection, pool));
        let offered = offering.spec.available_virtual_machine_types.iter().filter(|name| kept.as_ref().is_none_or(|kept| kept == *name));
        let fits = |(name, type_): (&String, &VirtualMachineType)| {
            let spec = &type_.spec;
            let enough = spec.cpu >= pool.capabilities.cpu && spec.memory >= pool.capabilities.memory;
            (enough && spec.available_regions.contains(&self.tenant.spec.region))
                .then(|| (spec.cpu.as_nanos(), spec.memory.as_nanos(), name.clone()))
        };
        offered.filter_map(|name| self.types.get_key_value(name)).filter_map(fits).min().map(|(_, _, name)| name)
    }
}

/// What a projection's pools were chosen for.
fn requests(projection: &Projection) -> BTreeMap<String, Capabilities> {
    let record = projection.metadata.annotations.get(REQUESTS_ANNOTATION).map_or("", String::as_str);
    serde_json::from_str(record).unwrap_or_default()
}

/// The type that a pool has and keeps, since what it asks for is unchanged.
fn kept(projection: &Projection, pool: &NodePool) -> Option<String> {
    let lives = projection.spec.node_pools.iter().find(|live| live.name == pool.name)?;
    let changed = requests(projection).get(&pool.name).is_some_and(|recorded| *recorded != pool.capabilities);
    (!changed).then(|| lives.type_.clone())
}

/// The state as it was, one such change further back with each item.
fn lately(state: &State, past: &[&Past], concerns: impl Fn(&Key) -> bool) -> Vec<State> {
    let mut states = vec![state.clone()];
    for past in past.iter().rev().filter(|past| concerns(&past.key)) {
        let mut earlier = states.last().cloned().unwrap_or_default();
        earlier.put(past.key.clone(), past.before.as_deref().cloned());
        states.push(earlier);
    }
    states
}

/// The tenant's object as it was lately, the latest first.
fn tenants(step: &Step<'_>) -> Vec<KubernetesCluster> {
    let (own, past) = (step.event.key.of(TENANT), step.memory.lately(step.event.at));
    lately(step.state, &past, |other| *other == own).iter().filter_map(|state| read(state.get(&own)?)).collect()
}

/// Combinations that are tried: more than a minute of rush among everybody makes.
const COMBINATIONS: usize = 1_000_000;

/// Whether some combination of inputs that were lately there is as wanted, each input with a lag of its own; else what the first ones come to.
///
/// `projection` are the projections that the decision may have seen.
fn lately_so(step: &Step<'_>, projections: &[Option<Projection>], wanted: impl Fn(&Inputs<'_>) -> bool) -> Result<(), Vec<Choice>> {
    let (key, past) = (&step.event.key, &step.memory.lately(step.event.at));
    let states = |concerns: &dyn Fn(&Key) -> bool| lately(step.state, past, concerns);
    let offerings: Vec<_> = states(&|key| key.kind == OFFERING).iter().map(offerings).collect();
    let types: Vec<_> = states(&|key| key.kind == TYPE).iter().map(types).collect();
    let of_here = |other: &Key| other.kind == PROVIDER && other.workspace == key.workspace;
    let providers: Vec<_> = states(&of_here).iter().map(|state| providers(state, key)).collect();
    let tenants = tenants(step);
    let (mut tried, mut shown) = (0, Vec::new());
    for tenant in &tenants {
        for projection in projections {
            for providers in &providers {
                for types in &types {
                    for offerings in &offerings {
                        let inputs = Inputs { tenant, offerings, types, providers, projection: projection.as_ref() };
                        if wanted(&inputs) {
                            return Ok(());
                        }
                        tried += 1;
                        if shown.len() < 5 {
                            shown.push(inputs.decide());
                        }
                        if tried == COMBINATIONS {
                            return Err(shown);
                        }
                    }
                }
            }
        }
    }
    Err(shown)
}

/// The projection as it is, when it is the tenant object's own.
fn own(state: &State, key: &Key) -> Option<Projection> {
    let uid = text(state.get(&key.of(TENANT))?, "/metadata/uid").to_owned();
    let projection = state.get(&key.of(PROJECTION))?;
    (owner(projection) == uid).then(|| read(projection)).flatten()
}

/// The same as it was lately, the latest first.
fn own_lately(step: &Step<'_>) -> Vec<Option<Projection>> {
    let (key, past) = (&step.event.key, &step.memory.lately(step.event.at));
    let of = key.of(PROJECTION);
    lately(step.state, past, |other| *other == of).iter().map(|state| own(state, key)).collect()
}

fn written(step: &Step<'_>) -> Option<Projection> {
    let after = step.after().filter(|_| step.is_of(PROJECTION) && step.is_ours() && !is_unchanged(step))?;
    read(after)
}

fn is_unchanged(step: &Step<'_>) -> bool {
    step.before.is_some_and(|before| step.after().is_some_and(|after| before["spec"] == after["spec"]))
}

pub(super) fn the_winner_follows(step: &Step<'_>) -> Option<String> {
    let pinned = |object: &Value| text(object, "/spec/providerRef/name").to_owned();
    if step.is_of(TENANT) && step.is_ours() {
        let (before, after) = (pinned(step.before?), pinned(step.after()?));
        if before == after {
            return None;
        }
        if own_lately(step).iter().flatten().any(|projection| projection.spec.provider_ref.name == after) {
            return None;
        }
        let chosen = |inputs: &Inputs<'_>| inputs.decide().is_ok_and(|(provider, _)| provider == after);
        return lately_so(step, &[None], chosen).err().map(|choices| format!("the pin is {after:?}; by the rules: {choices:?}"));
    }
    let written = written(step)?;
    let before: Option<Projection> = step.before.and_then(read);
    let types: Vec<String> = written.spec.node_pools.iter().map(|pool| pool.type_.clone()).collect();
    let is = Ok((written.spec.provider_ref.name.clone(), types));
    lately_so(step, &[before], |inputs| inputs.decide() == is).err().map(|choices| format!("it is {is:?}; by the rules: {choices:?}"))
}

pub(super) fn pools_are_the_tenants(step: &Step<'_>) -> Option<String> {
    let spec = written(step)?.spec;
    let is: Vec<_> = spec.node_pools.iter().map(|pool| (&pool.name, pool.replicas)).collect();
    let matches = |tenant: &KubernetesCluster| {
        let wanted = &tenant.spec;
        let pools: Vec<_> = wanted.node_pools.iter().map(|pool| (&pool.name, pool.replicas)).collect();
        pools == is && (&wanted.region, &wanted.version) == (&spec.region, &spec.version)
    };
    (!tenants(step).iter().any(matches)).then(|| format!("it has {is:?} in {} with {}", spec.region, spec.version))
}

pub(super) fn live_pools_keep_their_type(step: &Step<'_>) -> Option<String> {
    let (before, after): (Projection, Projection) = (step.before.and_then(read)?, written(step)?);
    let (asked, asks) = (requests(&before), requests(&after));
    let moved = after.spec.node_pools.iter().find(|pool| {
        let lived = before.spec.node_pools.iter().find(|lived| lived.name == pool.name);
        lived.is_some_and(|lived| lived.type_ != pool.type_) && asked.get(&pool.name) == asks.get(&pool.name)
    })?;
    Some(format!("the pool {} moved to {}", moved.name, moved.type_))
}

pub(super) fn the_reason_follows(step: &Step<'_>) -> Option<String> {
    const JUDGED: [&str; 3] = ["OfferingNotFound", "ProviderNotConfigured", "CapabilityMismatch"];
    let of = |object| super::conditions::condition(object, "Scheduled");
    let said = of(step.after().filter(|_| step.is_of(TENANT) && step.is_ours())?)?;
    if step.before.and_then(of) == Some(said) || !JUDGED.contains(&text(said, "/reason")) {
        return None;
    }
    let refused = |inputs: &Inputs<'_>| inputs.decide().is_err_and(|reason| reason == text(said, "/reason"));
    lately_so(step, &own_lately(step), refused).err().map(|choices| format!("it says {}; by the rules: {choices:?}", said["reason"]))
}

/// At rest, where every input is the latest: what the rules say of a cluster, and its own projection.
pub(super) fn at_rest(state: &State, key: &Key) -> Option<(Choice, Option<Projection>)> {
    let (tenant, projection) = (read(state.get(&key.of(TENANT))?)?, own(state, key));
    let (offerings, types, providers) = (offerings(state), types(state), providers(state, key));
    let inputs = Inputs { tenant: &tenant, offerings: &offerings, types: &types, providers: &providers, projection: projection.as_ref() };
    Some((inputs.decide(), projection))
}
