//! What becomes of objects when their owners are deleted.

use serde_json::{Value, json};

use crate::support::{Answer, Client};

struct Maps {
    client: Client,
    path: String,
}

impl Maps {
    async fn new() -> Self {
        let client = Client::new();
        let tenant = client.workspace("tenant").await;
        Self { client, path: format!("/clusters/{tenant}/api/v1/namespaces/default/configmaps") }
    }

    async fn make(&self, name: &str, owners: &[(&Value, bool)], finalizers: &[&str]) -> Value {
        let owner = |(owner, blocks): &(&Value, bool)| {
            let metadata = &owner["metadata"];
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"], "blockOwnerDeletion": blocks})
        };
        let owners: Vec<Value> = owners.iter().map(owner).collect();
        let metadata = json!({"name": name, "ownerReferences": owners, "finalizers": finalizers});
        let made = self.client.post(&self.path, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).await;
        assert_eq!(made.code, 201, "{made:?}");
        made.body
    }

    async fn get(&self, name: &str) -> Answer {
        self.client.get(&format!("{}/{name}", self.path)).await
    }

    async fn is_there(&self, name: &str) -> bool {
        self.get(name).await.code == 200
    }

    async fn delete(&self, name: &str, policy: &str) {
        let deleted = self.client.delete(&format!("{}/{name}?propagationPolicy={policy}", self.path)).await;
        assert_eq!(deleted.code, 200, "{deleted:?}");
    }

    async fn release(&self, name: &str, field: &str) {
        let released = self.client.merge(&format!("{}/{name}", self.path), &json!({"metadata": {field: null}})).await;
        assert_eq!(released.code, 200, "{released:?}");
    }
}

const HOLD: &[&str] = &["example.org/hold"];

#[tokio::test]
async fn an_owner_that_goes_in_the_foreground_waits_for_all_generations() {
    let maps = Maps::new().await;
    let owner = maps.make("owner", &[], &[]).await;
    let child = maps.make("child", &[(&owner, true)], &[]).await;
    maps.make("grandchild", &[(&child, true)], HOLD).await;
    maps.delete("owner", "Foreground").await;
    assert!(maps.is_there("owner").await && maps.is_there("child").await && maps.is_there("grandchild").await);
    maps.release("grandchild", "finalizers").await;
    assert!(!maps.is_there("owner").await && !maps.is_there("child").await && !maps.is_there("grandchild").await);
}

#[tokio::test]
async fn an_owner_that_waits_goes_when_its_dependent_names_it_no_more() {
    let maps = Maps::new().await;
    let owner = maps.make("owner", &[], &[]).await;
    maps.make("child", &[(&owner, true)], HOLD).await;
    maps.delete("owner", "Foreground").await;
    assert!(maps.is_there("owner").await);
    maps.release("child", "ownerReferences").await;
    assert!(!maps.is_there("owner").await);
}

#[tokio::test]
async fn a_dependent_of_two_stays_with_the_other_when_one_goes_in_the_foreground() {
    let maps = Maps::new().await;
    let (one, two) = (maps.make("one", &[], &[]).await, maps.make("two", &[], &[]).await);
    maps.make("child", &[(&one, true), (&two, true)], &[]).await;
    maps.delete("one", "Foreground").await;
    assert!(!maps.is_there("one").await);
    let child = maps.get("child").await.body;
    let owners = child["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(owners.iter().map(|owner| &owner["name"]).collect::<Vec<_>>(), ["two"]);
}

#[tokio::test]
async fn two_that_own_each_other_go_in_the_foreground() {
    let maps = Maps::new().await;
    let one = maps.make("one", &[], &[]).await;
    let two = maps.make("two", &[(&one, true)], &[]).await;
    let owner =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "two", "uid": two["metadata"]["uid"], "blockOwnerDeletion": true}]);
    let patched = maps.client.merge(&format!("{}/one", maps.path), &json!({"metadata": {"ownerReferences": owner}})).await;
    assert_eq!(patched.code, 200, "{patched:?}");
    maps.delete("one", "Foreground").await;
    assert!(!maps.is_there("one").await && !maps.is_there("two").await);
}

#[tokio::test]
async fn a_deletion_in_the_background_ends_the_waiting_of_one_in_the_foreground() {
    let maps = Maps::new().await;
    let owner = maps.make("owner", &[], &[]).await;
    maps.make("child", &[(&owner, true)], HOLD).await;
    maps.delete("owner", "Foreground").await;
    maps.delete("owner", "Background").await;
    assert!(!maps.is_there("owner").await && maps.is_there("child").await);
}

#[tokio::test]
async fn orphans_stay_and_name_their_owner_no_more() {
    let maps = Maps::new().await;
    let owner = maps.make("owner", &[], &[]).await;
    maps.make("child", &[(&owner, true)], &[]).await;
    maps.delete("owner", "Orphan").await;
    assert!(!maps.is_there("owner").await);
    assert_eq!(maps.get("child").await.body["metadata"]["ownerReferences"], json!(null));
}

#[tokio::test]
async fn what_is_outside_of_namespaces_is_not_owned_by_what_is_in_one() {
    let maps = Maps::new().await;
    let owner = maps.make("owner", &[], &[]).await;
    let roles = maps.path.replace("api/v1/namespaces/default/configmaps", "apis/rbac.authorization.k8s.io/v1/clusterroles");
    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r", "ownerReferences": reference}});
    assert_eq!(maps.client.post(&roles, &role).await.code, 201);
    maps.delete("owner", "Background").await;
    assert_eq!(maps.client.get(&format!("{roles}/r")).await.code, 200);
}
