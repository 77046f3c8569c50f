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
pub(super) struct Inputs {
    pub(super) tenant: KubernetesCluster,
    offerings: Vec<KubernetesClusterOffering>,
    types: BTreeMap<String, VirtualMachineType>,
    providers: BTreeSet<String>,
}

fn read<T: DeserializeOwned>(object: &Value) -> Option<T> {
    T::deserialize(object).ok()
}

impl Inputs {
    /// The inputs of one tenant object in a state.
    pub(super) fn of(state: &State, key: &Key) -> Option<Self> {
        let mut offerings: Vec<KubernetesClusterOffering> = state.all(OFFERING).filter_map(|(_, object)| read(object)).collect();
        offerings.sort_by(|a, b| (&a.spec.provider_ref.name, &a.metadata.name).cmp(&(&b.spec.provider_ref.name, &b.metadata.name)));
        Some(Self {
            tenant: read(state.get(&key.of(TENANT))?)?,
            offerings,
            types: state.all(TYPE).filter_map(|(key, object)| Some((key.name.clone(), read(object)?))).collect(),
            providers: state.all(PROVIDER).filter(|(own, _)| own.workspace == key.workspace).map(|(key, _)| key.name.clone()).collect(),
        })
    }

    /// Scheduling rules 1 to 5.
    pub(super) fn decide(&self, projection: Option<&Projection>) -> Choice {
        let spec = &self.tenant.spec;
        let lives = projection.map(|projection| projection.spec.provider_ref.name.as_str());
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
            let types: Option<Vec<String>> = spec.node_pools.iter().map(|pool| self.pick(offering, pool, projection)).collect();
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

    fn pick(&self, offering: &KubernetesClusterOffering, pool: &NodePool, projection: Option<&Projection>) -> Option<String> {
        let kept = projection.and_then(|projection| kept(projection, pool));
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

/// Every combination of inputs that was lately there.
fn inputs(step: &Step<'_>) -> Vec<Inputs> {
    let (key, past) = (&step.event.key, &step.memory.lately(step.event.at));
    let mut found = Vec::new();
    for state in lately(step.state, past, |key| [OFFERING, TYPE].contains(&key.kind.as_str())) {
        for state in lately(&state, past, |other| other.kind == PROVIDER && other.workspace == key.workspace) {
            for state in lately(&state, past, |other| *other == key.of(TENANT)) {
                found.extend(Inputs::of(&state, key));
            }
        }
    }
    found
}

/// The projection as it was, when it is the tenant object's own.
fn own(state: &State, key: &Key) -> Option<Projection> {
    let uid = text(state.get(&key.of(TENANT))?, "/metadata/uid").to_owned();
    let projection = state.get(&key.of(PROJECTION))?;
    (owner(projection) == uid).then(|| read(projection)).flatten()
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
        let choices: Vec<Choice> = inputs(step).iter().map(|inputs| inputs.decide(None)).collect();
        let lives = own(step.state, &step.event.key).map(|projection| projection.spec.provider_ref.name);
        let follows = lives.as_ref() == Some(&after) || choices.iter().flatten().any(|(provider, _)| *provider == after);
        return (!follows).then(|| format!("the pin is {after:?}; by the rules: {choices:?}"));
    }
    let written = written(step)?;
    let before: Option<Projection> = step.before.and_then(read);
    let types: Vec<String> = written.spec.node_pools.iter().map(|pool| pool.type_.clone()).collect();
    let is = Ok((written.spec.provider_ref.name.clone(), types));
    let choices: Vec<Choice> = inputs(step).iter().map(|inputs| inputs.decide(before.as_ref())).collect();
    (!choices.contains(&is)).then(|| format!("it is {is:?}; by the rules: {choices:?}"))
}

pub(super) fn pools_are_the_tenants(step: &Step<'_>) -> Option<String> {
    let spec = written(step)?.spec;
    let is: Vec<_> = spec.node_pools.iter().map(|pool| (&pool.name, pool.replicas)).collect();
    let matches = |inputs: &Inputs| {
        let wanted = &inputs.tenant.spec;
        let pools: Vec<_> = wanted.node_pools.iter().map(|pool| (&pool.name, pool.replicas)).collect();
        pools == is && (&wanted.region, &wanted.version) == (&spec.region, &spec.version)
    };
    (!inputs(step).iter().any(matches)).then(|| format!("it has {is:?} in {} with {}", spec.region, spec.version))
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
    let projection = own(step.state, &step.event.key);
    let choices: Vec<Choice> = inputs(step).iter().map(|inputs| inputs.decide(projection.as_ref())).collect();
    let follows = choices.iter().any(|choice| choice.as_ref().err().is_some_and(|reason| *reason == text(said, "/reason")));
    (!follows).then(|| format!("it says {}; by the rules: {choices:?}", said["reason"]))
}

/// At rest, where every input is the latest: what the rules say of a cluster, and its own projection.
pub(super) fn at_rest(state: &State, key: &Key) -> Option<(Choice, Option<Projection>)> {
    let projection = own(state, key);
    Some((Inputs::of(state, key)?.decide(projection.as_ref()), projection))
}
