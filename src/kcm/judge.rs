//! Judges single offerings: the part of the rules that [`super::schedule`] and [`super::explain`] share.
//!
//! Pure: what `explain` says of an offering and what the decision does with it come from the same lines.

use super::catalog::bits::Bits;
use super::catalog::{Catalog, MachineType, Offering};
use super::requests::Requests;
use super::schedule::Request;
use crate::api::tenant::NodePool;
use crate::mutants::{Mutant, mutated};

/// One request, made ready to judge many offerings.
pub(super) struct Judge<'a> {
    pub(super) request: Request<'a>,
    /// The only provider that counts (rule 4): the one where the cluster lives, else the one that its spec names.
    pub(super) pin: Option<&'a str>,
    /// The region where the cluster lives, where its spec asks for another: it never moves, so nothing serves it.
    pub(super) lives_in: Option<&'a str>,
    /// In the tenant's order.
    pub(super) demands: Vec<Demand<'a>>,
}

/// What one pool demands.
pub(super) struct Demand<'a> {
    pub(super) pool: &'a NodePool,
    /// The type that a live pool keeps (rule 5).
    pub(super) kept: Option<&'a str>,
    /// The types of the whole catalog that would do, smallest first (rule 2).
    fitting: Vec<&'a MachineType>,
    /// The same, by slot.
    slots: Bits,
}

/// What is to be said of one offering; the first that holds, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    RegionNotServed,
    VersionNotServed,
    OtherProvider,
    ProviderNotConfigured,
    /// It is a candidate, but not for this pool, the first such in the tenant's order.
    PoolUnsatisfied(usize),
    Fits,
}

/// Why a kept type is no longer possible (rule 5); the first that holds, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost<'a> {
    Unknown,
    NotOffered,
    NotInRegion,
    TooSmall(&'a MachineType),
}

impl<'a> Judge<'a> {
    pub(super) fn new(request: Request<'a>) -> Self {
        let Request { cluster, catalog, projection, .. } = request;
        // Its nodes are where its projection says, whatever was written into the spec since.
        let pin = projection.map(|projection| projection.spec.provider_ref.name.as_str()).or_else(|| cluster.provider());
        let lives_in = projection.map(|projection| projection.spec.region.as_str()).filter(|region| *region != cluster.spec.region);
        let record = projection.map(Requests::of);
        let demands = cluster.spec.node_pools.iter().map(|pool| {
            let unchanged = record.as_ref().is_some_and(|record| !record.changed(pool)) && !mutated(Mutant::MoveLivePools);
            let live = projection.filter(|_| unchanged).and_then(|p| p.spec.node_pools.iter().find(|live| live.name == pool.name));
            Demand::new(pool, live.map(|live| live.type_.as_str()), catalog, &cluster.spec.region)
        });
        Self { request, pin, lives_in, demands: demands.collect() }
    }

    pub(super) fn catalog(&self) -> &'a Catalog {
        self.request.catalog
    }

    pub(super) fn region(&self) -> &'a str {
        &self.request.cluster.spec.region
    }

    pub(super) fn version(&self) -> &'a str {
        &self.request.cluster.spec.version
    }

    /// The offerings that serve region and version, pinned: of that provider, by provider name, then offering name.
    pub(super) fn serving(&self) -> impl Iterator<Item = &'a Offering> {
        let in_region = match self.pin {
            _ if self.lives_in.is_some() => &[][..],
            Some(provider) => self.catalog().serving_of(self.region(), provider),
            None => self.catalog().serving(self.region()),
        };
        in_region.iter().map(AsRef::as_ref).filter(|offering| offering.has_version(self.version()))
    }

    /// Rules 1, 2, 4 and 5 for one offering.
    pub(super) fn judge(&self, offering: &Offering) -> Judgement {
        if !self.serves_region(offering) {
            Judgement::RegionNotServed
        } else if !offering.has_version(self.version()) {
            Judgement::VersionNotServed
        } else if self.pin.is_some_and(|pin| pin != offering.provider()) {
            Judgement::OtherProvider
        } else if !self.request.providers.contains(offering.provider()) {
            Judgement::ProviderNotConfigured
        } else {
            self.unsatisfied(offering).map_or(Judgement::Fits, Judgement::PoolUnsatisfied)
        }
    }

    /// Whether the offering serves the region asked for; none does that for a cluster that lives elsewhere.
    pub(super) fn serves_region(&self, offering: &Offering) -> bool {
        self.lives_in.is_none() && offering.is_in(self.region())
    }

    /// The provider that the spec names, where the cluster lives with another one.
    pub(super) fn named_in_vain(&self) -> Option<&'a str> {
        self.request.cluster.provider().filter(|named| self.pin.is_some_and(|pin| pin != *named))
    }

    /// The first pool that no type of the offering serves, whatever else speaks for or against it.
    pub(super) fn unsatisfied(&self, offering: &Offering) -> Option<usize> {
        self.demands.iter().position(|demand| !demand.is_served_by(offering))
    }

    /// Why none of these offerings can keep the type; asked only where none serves the demand.
    pub(super) fn lost(&self, kept: &str, listed: &Bits) -> Lost<'a> {
        let Some(type_) = self.catalog().machine_type(kept) else { return Lost::Unknown };
        if !listed.contains(type_.slot()) {
            Lost::NotOffered
        } else if type_.is_in(self.region()) {
            Lost::TooSmall(type_)
        } else {
            Lost::NotInRegion
        }
    }
}

impl<'a> Demand<'a> {
    fn new(pool: &'a NodePool, kept: Option<&'a str>, catalog: &'a Catalog, region: &str) -> Self {
        let fitting: Vec<&MachineType> = if let Some(name) = kept {
            catalog.machine_type(name).filter(|type_| type_.is_in(region) && fits(pool, type_)).into_iter().collect()
        } else {
            let types = catalog.types_in(region);
            let start = types.partition_point(|type_| *type_.cpu() < pool.capabilities.cpu);
            types[start..].iter().map(AsRef::as_ref).filter(|type_| fits(pool, type_)).collect()
        };
        let mut slots = Bits::default();
        for type_ in &fitting {
            slots.insert(type_.slot());
        }
        Self { pool, kept, fitting, slots }
    }

    pub(super) fn is_served_by(&self, offering: &Offering) -> bool {
        self.slots.intersects(offering.listed())
    }

    /// The type that the pool takes from the offering: the smallest that fits, or the one it keeps.
    pub(super) fn pick(&self, offering: &Offering) -> Option<&'a MachineType> {
        if mutated(Mutant::LargestType) {
            return self.fitting.iter().copied().rfind(|type_| offering.listed().contains(type_.slot()));
        }
        self.fitting.iter().copied().find(|type_| offering.listed().contains(type_.slot()))
    }
}

/// Whether a machine of the type has what each node of the pool must have.
fn fits(pool: &NodePool, type_: &MachineType) -> bool {
    *type_.cpu() >= pool.capabilities.cpu && (mutated(Mutant::MemoryIgnored) || *type_.memory() >= pool.capabilities.memory)
}
