//! What a decision costs and what a change of a large catalog costs.

use std::collections::BTreeSet;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use kcp_provider_runtime::api::catalog::{KubernetesClusterOfferingSpec, VirtualMachineTypeSpec};
use kcp_provider_runtime::api::meta::Meta;
use kcp_provider_runtime::api::quantity::Quantity;
use kcp_provider_runtime::api::tenant::{Capabilities, KubernetesCluster, KubernetesClusterSpec, NodePool, ProviderRef};
use kcp_provider_runtime::kcm::catalog::{Catalog, Change};
use kcp_provider_runtime::kcm::explain::explain;
use kcp_provider_runtime::kcm::schedule::{Decision, Request, schedule};
use kcp_provider_runtime::kcm::topics::raised;

/// The objects of a catalog whose every offering lists every type.
struct Objects {
    types: Vec<(String, VirtualMachineTypeSpec)>,
    offerings: Vec<(String, KubernetesClusterOfferingSpec)>,
}

impl Objects {
    fn new(offerings: i64, types: i64) -> Self {
        let types: Vec<_> = (0..types).map(|n| (format!("machine-type-{n:04}"), machine_type(n))).collect();
        let names: Vec<String> = types.iter().map(|(name, _)| name.clone()).collect();
        let offerings = (0..offerings).map(|n| {
            let spec = KubernetesClusterOfferingSpec {
                provider_ref: ProviderRef { name: format!("provider-{:03}", n % 100) },
                available_regions: ["eu-de", "eu-nl", "ap-sg"].map(str::to_owned).to_vec(),
                available_versions: (25..35).map(|minor| format!("1.{minor}.0")).collect(),
                available_virtual_machine_types: names.clone(),
            };
            (format!("offering-{n:05}"), spec)
        });
        Self { types, offerings: offerings.collect() }
    }

    fn catalog(&self) -> Catalog {
        let types = self.types.iter().map(|(name, spec)| Change::Type(name, Some(spec)));
        let offerings = self.offerings.iter().map(|(name, spec)| Change::Offering(name, Some(spec)));
        Catalog::default().apply(types.chain(offerings))
    }

    fn providers(&self) -> BTreeSet<String> {
        self.offerings.iter().map(|(_, spec)| spec.provider_ref.name.clone()).collect()
    }
}

fn machine_type(n: i64) -> VirtualMachineTypeSpec {
    VirtualMachineTypeSpec {
        provider_machine_type: "any".to_owned(),
        cpu: amount(1 + n / 8),
        memory: amount((1 + n % 8) << 32),
        available_regions: ["eu-de", "eu-nl", "ap-sg"].map(str::to_owned).to_vec(),
    }
}

fn amount(value: i64) -> Quantity {
    Quantity::try_from(value).expect("the amounts here are positive")
}

/// Five pools, the last of which asks for this many cores.
fn cluster(version: &str, last: i64) -> KubernetesCluster {
    let pools = [4, 8, 2, 16, last].into_iter().enumerate().map(|(at, cpu)| NodePool {
        name: format!("pool-{at}"),
        replicas: 3,
        capabilities: Capabilities { cpu: amount(cpu), memory: amount(16 << 30) },
    });
    KubernetesCluster {
        metadata: Meta { name: "demo".to_owned(), ..Meta::default() },
        spec: KubernetesClusterSpec {
            region: "eu-de".to_owned(),
            version: version.to_owned(),
            node_pools: pools.collect(),
            provider_ref: None,
        },
        status: None,
    }
}

fn decisions(criterion: &mut Criterion) {
    let objects = Objects::new(1000, 200);
    let (catalog, providers) = (objects.catalog(), objects.providers());
    let mut measure = |name: &str, cluster: &KubernetesCluster, providers: &BTreeSet<String>, scheduled: bool| {
        let request = Request { cluster, catalog: &catalog, providers, projection: None };
        assert_eq!(matches!(schedule(request), Decision::Scheduled { .. }), scheduled, "{name}");
        criterion.bench_function(name, |bencher| bencher.iter(|| schedule(black_box(request))));
    };
    let none = BTreeSet::new();
    measure("5 pools, 1000 offerings, 200 types: the first serves", &cluster("1.34.0", 4), &providers, true);
    measure("5 pools, 1000 offerings, 200 types: all fail on the last pool", &cluster("1.34.0", 4000), &providers, false);
    measure("5 pools, 1000 offerings, 200 types: no Provider", &cluster("1.34.0", 4), &none, false);
    measure("5 pools, 1000 offerings, 200 types: no such version", &cluster("1.35.0", 4), &providers, false);

    let cluster = cluster("1.34.0", 4000);
    let request = Request { cluster: &cluster, catalog: &catalog, providers: &providers, projection: None };
    criterion.bench_function("explain over 1000 offerings, all fail", |bencher| bencher.iter(|| explain(black_box(request))));
}

fn folds(criterion: &mut Criterion) {
    let objects = Objects::new(10_000, 1000);
    let catalog = objects.catalog();
    let mut offering = objects.offerings[5000].1.clone();
    offering.available_versions.pop();
    let offering = Change::Offering(&objects.offerings[5000].0, Some(&offering));
    let type_ = machine_type(2000);
    let type_ = Change::Type(&objects.types[500].0, Some(&type_));
    for (name, change) in [("an offering", offering), ("a type that all list", type_)] {
        let title = format!("fold {name} into 10000 offerings, 1000 types");
        criterion.bench_function(&title, |bencher| bencher.iter(|| catalog.apply([black_box(change)])));
        let after = catalog.apply([change]);
        let title = format!("topics of {name} among 10000 offerings, 1000 types");
        criterion.bench_function(&title, |bencher| bencher.iter(|| raised(black_box(&catalog), black_box(&after))));
    }
}

fn from_nothing(criterion: &mut Criterion) {
    let objects = Objects::new(10_000, 1000);
    let mut group = criterion.benchmark_group("from nothing");
    group.sample_size(10).bench_function("10000 offerings, 1000 types", |bencher| bencher.iter(|| objects.catalog()));
    group.finish();
}

criterion_group!(benches, decisions, folds, from_nothing);
criterion_main!(benches);
