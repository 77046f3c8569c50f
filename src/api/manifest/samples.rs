//! Examples that work together: a catalog, a tenant's provider and cluster, and KCM's configuration.
//!
//! Pure: constants as JSON.

use serde_json::{Value, json};

use crate::api::meta::Kind;
use crate::api::{catalog, config, provider, tenant};

/// The name of the configuration that KCM reads unless told otherwise.
pub const PROVIDER_CONFIG: &str = "kcm";

/// KCM's configuration with the values it has anyway.
pub fn provider_config() -> Value {
    object::<config::ProviderConfig>(
        json!({ "name": PROVIDER_CONFIG }),
        json!({ "scheduling": { "unschedulableRequeue": "5m", "catalogMaxStaleness": "5m" }, "pollInterval": "10m" }),
    )
}

/// One offering and its two machine types.
pub fn catalog() -> Vec<Value> {
    let machine = |name: &str, word: &str, cpu: &str, memory: &str| {
        object::<catalog::VirtualMachineType>(
            json!({ "name": name }),
            json!({ "providerMachineType": word, "cpu": cpu, "memory": memory, "availableRegions": ["eu-de", "eu-nl"] }),
        )
    };
    vec![
        object::<catalog::KubernetesClusterOffering>(
            json!({ "name": "otc-standard" }),
            json!({
                "providerRef": { "name": "otc" },
                "availableRegions": ["eu-de", "eu-nl"],
                "availableVersions": ["1.33.6", "1.34.2"],
                "availableVirtualMachineTypes": ["m-4-16", "m-8-32"],
            }),
        ),
        machine("m-4-16", "s3.xlarge.4", "4", "16Gi"),
        machine("m-8-32", "s3.2xlarge.4", "8", "32Gi"),
    ]
}

/// What a tenant applies: whose account is used, and a cluster.
pub fn tenant() -> Vec<Value> {
    vec![
        object::<provider::Provider>(
            json!({ "name": "otc" }),
            json!({ "credentialsSecretRef": { "namespace": "default", "name": "otc-account" } }),
        ),
        object::<tenant::KubernetesCluster>(
            json!({ "namespace": "default", "name": "demo" }),
            json!({
                "region": "eu-de",
                "version": "1.34.2",
                "nodePools": [{ "name": "workers", "replicas": 3, "capabilities": { "cpu": "4", "memory": "16Gi" } }],
            }),
        ),
    ]
}

#[allow(clippy::needless_pass_by_value, reason = "the arguments are literals")]
fn object<K: Kind>(metadata: Value, spec: Value) -> Value {
    json!({ "apiVersion": K::REF.api_version(), "kind": K::REF.kind, "metadata": metadata, "spec": spec })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_an_object_of_its_kind() {
        let config: config::ProviderConfig = serde_json::from_value(provider_config()).unwrap();
        assert_eq!(config.problems(), []);
        assert_eq!(config.unschedulable_requeue(), config::DEFAULT_UNSCHEDULABLE_REQUEUE);
        let offering: catalog::KubernetesClusterOffering = serde_json::from_value(catalog()[0].clone()).unwrap();
        for (at, name) in offering.spec.available_virtual_machine_types.iter().enumerate() {
            let machine: catalog::VirtualMachineType = serde_json::from_value(catalog()[at + 1].clone()).unwrap();
            assert_eq!(&machine.metadata.name, name);
        }
        let provider: provider::Provider = serde_json::from_value(tenant()[0].clone()).unwrap();
        assert_eq!(provider.metadata.name, offering.spec.provider_ref.name, "the sample cluster can be scheduled");
        serde_json::from_value::<tenant::KubernetesCluster>(tenant()[1].clone()).unwrap();
    }
}
