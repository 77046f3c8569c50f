//! What later versions of kcp answer otherwise.

use kcp_provider_runtime::embedded::{Options, Version};
use serde_json::json;

use crate::lives::{BINDINGS, bound};
use crate::support::Client;

fn like(version: Version) -> Client {
    Client::with(Options { version, ..Options::default() })
}

#[tokio::test]
async fn a_binding_shows_its_path_since_0_30() {
    for (version, path) in [(Version::V0_28, json!(null)), (Version::V0_30, json!("root:tenant"))] {
        let client = like(version);
        let (_, tenant, _) = bound(&client).await;
        let binding = client.get(&format!("/clusters/{tenant}/{BINDINGS}/toys")).await;
        assert_eq!(binding.body["metadata"]["annotations"]["kcp.io/path"], path, "{version:?}");
    }
}

#[tokio::test]
async fn an_account_can_be_given_rights_in_another_workspace_since_0_31() {
    for (version, code) in [(Version::V0_28, 403), (Version::V0_31, 200)] {
        let client = like(version);
        let (home, away) = (client.workspace("home").await, client.workspace("away").await);
        let accounts = format!("/clusters/{home}/api/v1/namespaces/default/serviceaccounts");
        client.post(&accounts, &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bot"}})).await;
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let token = client.post(&format!("{accounts}/bot/token"), &request).await;
        let user = format!("system:kcp:serviceaccount:{home}:default:bot");
        let rbac = "rbac.authorization.k8s.io";
        let grant = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "bot"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}]});
        let granted = client.post(&format!("/clusters/{away}/apis/{rbac}/v1/clusterrolebindings"), &grant).await;
        assert_eq!(granted.code, 201, "{granted:?}");
        let bot = client.as_bearer(token.body["status"]["token"].as_str().unwrap());
        let answer = bot.get(&format!("/clusters/{away}/api/v1/configmaps")).await;
        assert_eq!(answer.code, code, "{version:?}: {answer:?}");
    }
}

#[tokio::test]
async fn a_kind_that_nobody_has_bound_is_an_empty_list_without_a_version_later() {
    for (version, code) in [(Version::V0_28, 404), (Version::Later, 200)] {
        let client = like(version);
        let (_, tenant, through) = bound(&client).await;
        client.delete(&format!("/clusters/{tenant}/{BINDINGS}/toys")).await;
        let list = client.get(&format!("{through}/clusters/*/apis/play.example.org/v1/toys")).await;
        assert_eq!(list.code, code, "{version:?}: {list:?}");
        if code == 200 {
            assert_eq!((&list.body["metadata"]["resourceVersion"], &list.body["items"]), (&json!(""), &json!([])));
        }
    }
}
