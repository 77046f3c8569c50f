//! Pure: what there is in a `kcm dev`: a catalog of two providers, three tenants, their clusters, and what should become of each.

use serde_json::{Value, json};

use crate::api::catalog::{KubernetesClusterOffering, VirtualMachineType};
use crate::api::meta::Kind;
use crate::api::provider::Provider;
use crate::api::tenant::KubernetesCluster;

/// The provider workspace, below `root`.
pub const PROVIDER_WORKSPACE: &str = "provider";
/// Who builds clusters, each through a door of its own.
pub const PROVIDERS: [&str; 2] = ["ionos", "otc"];
/// The namespace of every cluster.
pub const NAMESPACE: &str = "default";
/// The tenant without a Provider; its cluster cannot be scheduled until it has one.
pub const UNSCHEDULABLE: &str = "initech";

/// A tenant: a workspace below `root`, the providers it has an account with, and what it orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// The workspace's name.
    pub name: &'static str,
    /// Names of its `Provider` objects.
    pub providers: &'static [&'static str],
    /// Its clusters.
    pub clusters: &'static [Order],
}

/// One cluster as it is ordered, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// `metadata.name`.
    pub name: &'static str,
    /// `spec.region`.
    pub region: &'static str,
    /// `spec.version`.
    pub version: &'static str,
    /// Its pools.
    pub pools: &'static [Pool],
    /// The provider that the rules choose, once the tenant has a Provider for it.
    pub chosen: &'static str,
}

/// One pool as it is ordered, and the machine type that the rules choose for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Its name.
    pub name: &'static str,
    /// How many nodes.
    pub replicas: i32,
    /// Cores of each node.
    pub cpu: &'static str,
    /// Memory of each node.
    pub memory: &'static str,
    /// The type that fits.
    pub fits: &'static str,
}

const fn pool(name: &'static str, replicas: i32, cpu: &'static str, memory: &'static str, fits: &'static str) -> Pool {
    Pool { name, replicas, cpu, memory, fits }
}

/// The three tenants. Two of them have a cluster `shop` in the same namespace, which are two different clusters.
pub const TENANTS: [Tenant; 3] = [
    Tenant {
        name: "acme",
        providers: &["otc"],
        clusters: &[
            Order {
                name: "shop",
                region: "eu-de",
                version: "1.34.2",
                pools: &[pool("system", 3, "2", "4Gi", "m-2-8"), pool("workers", 5, "4", "16Gi", "m-4-16")],
                chosen: "otc",
            },
            Order { name: "lab", region: "eu-nl", version: "1.33.6", pools: &[pool("workers", 1, "4", "8Gi", "m-4-16")], chosen: "otc" },
        ],
    },
    Tenant {
        name: "globex",
        providers: &["ionos", "otc"],
        clusters: &[
            // Both providers could; the lower name wins.
            Order { name: "shop", region: "eu-de", version: "1.34.2", pools: &[pool("workers", 2, "2", "8Gi", "m-2-8")], chosen: "ionos" },
            // ionos has no type of that size.
            Order { name: "batch", region: "eu-de", version: "1.34.2", pools: &[pool("big", 4, "6", "24Gi", "m-8-32")], chosen: "otc" },
        ],
    },
    Tenant {
        name: UNSCHEDULABLE,
        providers: &[],
        clusters: &[Order {
            name: "payroll",
            region: "eu-nl",
            version: "1.34.2",
            pools: &[pool("workers", 3, "4", "16Gi", "m-4-16")],
            chosen: "otc",
        }],
    },
];

/// The Provider that lets the unschedulable cluster be scheduled.
pub fn fix() -> Value {
    provider("otc")
}

/// A tenant's account with a provider.
pub fn provider(name: &str) -> Value {
    object::<Provider>(
        json!({ "name": name }),
        &json!({ "credentialsSecretRef": { "namespace": NAMESPACE, "name": format!("{name}-account") } }),
    )
}

/// The machine types, then the offerings that name them.
pub fn catalog() -> Vec<Value> {
    vec![
        machine("m-2-8", "2", "8Gi", &["eu-de", "eu-nl"]),
        machine("m-4-16", "4", "16Gi", &["eu-de", "eu-nl"]),
        machine("m-8-32", "8", "32Gi", &["eu-de"]),
        machine("c-8-16", "8", "16Gi", &["eu-nl"]),
        offering("otc-standard", "otc", &["eu-de", "eu-nl"], &["1.33.6", "1.34.2"], &["m-2-8", "m-4-16", "m-8-32"]),
        offering("otc-wide", "otc", &["eu-nl"], &["1.34.2"], &["c-8-16"]),
        offering("ionos-compact", "ionos", &["eu-de"], &["1.34.2"], &["m-2-8", "m-4-16"]),
    ]
}

/// The cluster as the tenant applies it.
pub fn cluster(order: &Order) -> Value {
    let pool =
        |pool: &Pool| json!({ "name": pool.name, "replicas": pool.replicas, "capabilities": { "cpu": pool.cpu, "memory": pool.memory } });
    let pools: Vec<Value> = order.pools.iter().map(pool).collect();
    let spec = json!({ "region": order.region, "version": order.version, "nodePools": pools });
    object::<KubernetesCluster>(json!({ "namespace": NAMESPACE, "name": order.name }), &spec)
}

/// Three lines to type: look, mend what cannot be scheduled, and change something. `file` holds [`fix`].
pub fn lines(kubeconfig: &str, file: &str) -> [String; 3] {
    let kubectl = format!("kubectl --kubeconfig {kubeconfig}");
    [
        format!("{kubectl} --context globex get kc,pkc"),
        format!("{kubectl} --context {UNSCHEDULABLE} apply -f {file}"),
        format!("{kubectl} --context acme patch kc lab --type merge -p '{{\"spec\":{{\"version\":\"1.34.2\"}}}}'"),
    ]
}

fn machine(name: &str, cpu: &str, memory: &str, regions: &[&str]) -> Value {
    let spec = json!({ "providerMachineType": format!("flavor.{name}"), "cpu": cpu, "memory": memory, "availableRegions": regions });
    object::<VirtualMachineType>(json!({ "name": name }), &spec)
}

fn offering(name: &str, provider: &str, regions: &[&str], versions: &[&str], types: &[&str]) -> Value {
    object::<KubernetesClusterOffering>(
        json!({ "name": name }),
        &json!({
            "providerRef": { "name": provider },
            "availableRegions": regions,
            "availableVersions": versions,
            "availableVirtualMachineTypes": types,
        }),
    )
}

#[allow(clippy::needless_pass_by_value, reason = "the arguments are literals")]
fn object<K: Kind>(metadata: Value, spec: &Value) -> Value {
    json!({ "apiVersion": K::REF.api_version(), "kind": K::REF.kind, "metadata": metadata, "spec": spec })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::api::reason::Reason;
    use crate::kcm::catalog::{Catalog, Change};
    use crate::kcm::schedule::{Decision, Request, schedule};

    #[test]
    fn every_object_is_one_of_its_kind() {
        for object in catalog() {
            match object["kind"].as_str() {
                Some("VirtualMachineType") => drop(serde_json::from_value::<VirtualMachineType>(object).unwrap()),
                Some("KubernetesClusterOffering") => drop(serde_json::from_value::<KubernetesClusterOffering>(object).unwrap()),
                other => panic!("{other:?} is no kind of the catalog"),
            }
        }
        serde_json::from_value::<Provider>(fix()).unwrap();
        for order in TENANTS.iter().flat_map(|tenant| tenant.clusters) {
            serde_json::from_value::<KubernetesCluster>(cluster(order)).unwrap();
        }
    }

    fn decision(order: &Order, providers: &[&str]) -> Decision {
        let read = |kind: &str| catalog().into_iter().filter(|object| object["kind"] == kind).collect::<Vec<_>>();
        let types: Vec<VirtualMachineType> = serde_json::from_value(Value::Array(read("VirtualMachineType"))).unwrap();
        let offerings: Vec<KubernetesClusterOffering> = serde_json::from_value(Value::Array(read("KubernetesClusterOffering"))).unwrap();
        let types = types.iter().map(|type_| Change::Type(&type_.metadata.name, Some(&type_.spec)));
        let offerings = offerings.iter().map(|offering| Change::Offering(&offering.metadata.name, Some(&offering.spec)));
        let catalog = Catalog::default().apply(types.chain(offerings));
        let providers: BTreeSet<String> = providers.iter().map(|name| (*name).to_owned()).collect();
        let cluster = serde_json::from_value(cluster(order)).unwrap();
        schedule(Request { cluster: &cluster, catalog: &catalog, providers: &providers, projection: None })
    }

    #[test]
    fn the_rules_choose_what_the_scenario_expects() {
        for tenant in &TENANTS {
            for order in tenant.clusters {
                let fixed = if tenant.name == UNSCHEDULABLE { &["otc"] } else { tenant.providers };
                let Decision::Scheduled { provider, pools, .. } = decision(order, fixed) else { panic!("{} is not scheduled", order.name) };
                assert_eq!(provider, order.chosen, "{} of {}", order.name, tenant.name);
                let types: Vec<String> = pools.into_iter().map(|pool| pool.type_).collect();
                assert_eq!(types, order.pools.iter().map(|pool| pool.fits).collect::<Vec<_>>(), "{} of {}", order.name, tenant.name);
                if tenant.name == UNSCHEDULABLE {
                    assert_eq!(decision(order, tenant.providers).reason(), Reason::ProviderNotConfigured);
                }
            }
        }
    }

    #[test]
    fn two_tenants_have_a_cluster_of_the_same_name() {
        let names: Vec<&str> = TENANTS.iter().flat_map(|tenant| tenant.clusters).map(|order| order.name).collect();
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(distinct.len() + 1, names.len());
    }

    #[test]
    fn one_line_mends_the_tenant_without_a_provider() {
        let lines = lines("/f/kubeconfig", "/f/fix.yaml");
        assert!(lines.iter().all(|line| line.starts_with("kubectl --kubeconfig /f/kubeconfig --context ")), "{lines:?}");
        assert!(lines[1].ends_with("--context initech apply -f /f/fix.yaml"), "{lines:?}");
        assert!(TENANTS.iter().any(|tenant| tenant.name == UNSCHEDULABLE && tenant.providers.is_empty()));
    }
}
