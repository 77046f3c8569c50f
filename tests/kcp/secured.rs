//! What a provider keeps of its tenants' secrets, by a provider that is the manager's identity with the opt-in role.

#[path = "../seam/cloud.rs"]
#[allow(dead_code, reason = "each target uses its part of it")]
mod cloud;

use kcp_provider_runtime::api::manifest::export;
use kcp_provider_runtime::api::manifest::rbac::{self, MANAGER, MANAGER_NAMESPACE};
use kcp_provider_runtime::api::tenant::KubernetesCluster;
use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use kcp_provider_runtime::runtime::Runtime;
use serde_json::json;

use crate::support::kcp;
use crate::support::platform::{CLUSTERS, EXPORTS, Platform, SOON, condition, eventually};
use crate::workload::{CONFIG_MAPS, ROLE_BINDINGS, ROLES};
use cloud::{Cloud, Clouds};

const SECRETS: Resource = Resource::new("", "v1", "secrets");

/// The names of those in the provider workspace that are about external work.
async fn of_work(platform: &Platform, kind: &Resource) -> Vec<String> {
    let all = platform.client().list(kind, MANAGER_NAMESPACE).await.unwrap();
    let ours = all.iter().filter(|object| object["metadata"]["labels"]["runtime.edge-connect.eu/controller"] == "clouds");
    ours.map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

async fn set_password(tenant: &AdminClient, password: &str) {
    let metadata = json!({"name": "cloud", "namespace": "default"});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": password}});
    tenant.create(&SECRETS, "default", &secret).await.unwrap();
}

/// Lets the provider read the Secrets of whoever binds from now on.
async fn claim_secrets(platform: &Platform) {
    let mut live = platform.client().get(&EXPORTS, "", export::EXPORT).await.unwrap();
    let claims = live["spec"]["permissionClaims"].as_array_mut().unwrap();
    claims.push(json!({"group": "", "resource": "secrets", "verbs": ["get"]}));
    platform.client().replace(&EXPORTS, "", export::EXPORT, &live).await.unwrap();
}

#[tokio::test]
async fn the_work_of_a_workspace_that_is_deleted_ends_with_the_password_that_was_in_it_and_nothing_keeps_that_longer() {
    let platform = Platform::new().await;
    claim_secrets(&platform).await;
    for (resource, object) in [&ROLES, &ROLE_BINDINGS].into_iter().zip(rbac::secured(MANAGER_NAMESPACE, (MANAGER_NAMESPACE, MANAGER))) {
        platform.client().create(resource, MANAGER_NAMESPACE, &object).await.unwrap();
    }
    let cloud = Cloud::default();
    cloud.accept("hush");
    let runtime = Runtime::new(platform.options().await).serve(|inputs| Clouds::<KubernetesCluster>::new(inputs, &cloud));
    let mut handle = runtime.handle();
    let task = tokio::spawn(runtime.run());
    let ready = tokio::time::timeout(SOON, handle.ready()).await;
    ready.unwrap_or_else(|_| panic!("the rights are not enough: {:?}", handle.missing()));

    let (tenant, other) = (platform.tenant().await, platform.tenant().await);
    for tenant in [&tenant, &other] {
        set_password(tenant.client(), "hush").await;
        tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
        let open = tenant.wait("demo", "Open", "True", "Ready").await;
        assert!(condition(&open, "Open").unwrap()["message"].as_str().unwrap().contains("REDACTED"), "{open}");
    }
    let (mut kept, mut recorded) = (of_work(&platform, &SECRETS).await, of_work(&platform, &CONFIG_MAPS).await);
    kept.sort();
    recorded.sort();
    assert_eq!((cloud.count(), kept.len(), &kept), (2, 2, &recorded), "a Secret beside each record");

    kcp().await.admin.delete_workspace("root", &tenant.name().await).await.unwrap();
    eventually("its account is closed, and its password and its record are gone", async || {
        (cloud.count(), of_work(&platform, &SECRETS).await.len(), of_work(&platform, &CONFIG_MAPS).await.len()) == (1, 1, 1)
    })
    .await;

    // What a request that was given up writes after the end, of which nothing tells any more.
    let mut late = platform.client().get(&SECRETS, MANAGER_NAMESPACE, &of_work(&platform, &SECRETS).await[0]).await.unwrap();
    late["metadata"]["name"] = "work-late".into();
    late["metadata"]["ownerReferences"][0]["name"] = "work-late".into();
    late["metadata"]["ownerReferences"][0]["uid"] = "00000000-0000-4000-8000-000000000000".into();
    for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        late["metadata"].as_object_mut().unwrap().remove(field);
    }
    platform.client().create(&SECRETS, MANAGER_NAMESPACE, &late).await.unwrap();
    eventually("the server takes away what has no record", async || !of_work(&platform, &SECRETS).await.contains(&"work-late".to_owned()))
        .await;
    assert_eq!(of_work(&platform, &SECRETS).await.len(), 1, "and nothing else");

    other.client().delete(&CLUSTERS, "default", "demo").await.unwrap();
    other.client().wait_gone(&CLUSTERS, "default", "demo", SOON).await.unwrap();
    assert_eq!(cloud.count(), 0);
    assert_eq!((of_work(&platform, &SECRETS).await, of_work(&platform, &CONFIG_MAPS).await), (vec![], vec![]));
    handle.stop();
    task.await.unwrap().unwrap();
}
