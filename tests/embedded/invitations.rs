//! Who may bind an export and use a workspace type of a workspace that is not theirs.

use serde_json::{Value, json};

use crate::lives::{BINDINGS, bound};
use crate::support::{Answer, Client};

const RBAC: &str = "rbac.authorization.k8s.io";
const WORKSPACES: &str = "apis/tenancy.kcp.io/v1alpha1/workspaces";
const TYPES: &str = "apis/tenancy.kcp.io/v1alpha1/workspacetypes";

/// Lets everybody who has logged in do this in a workspace, and nothing else: they may not enter it.
async fn allow(client: &Client, workspace: &str, rule: Value) {
    let allowed = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": "allowed"}, "rules": [rule]});
    assert_eq!(client.post(&format!("/clusters/{workspace}/apis/{RBAC}/v1/clusterroles"), &allowed).await.code, 201);
    grant(client, workspace, "allowed", "allowed", json!({"apiGroup": RBAC, "kind": "Group", "name": "system:authenticated"})).await;
}

async fn grant(client: &Client, workspace: &str, name: &str, role: &str, subject: Value) {
    let binding = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}, "subjects": [subject]});
    assert_eq!(client.post(&format!("/clusters/{workspace}/apis/{RBAC}/v1/clusterrolebindings"), &binding).await.code, 201);
}

/// Alice, who owns a workspace and is nobody elsewhere.
async fn alice(client: &Client) -> (Client, String) {
    let home = client.workspace("home").await;
    grant(client, &home, "owner", "cluster-admin", json!({"apiGroup": RBAC, "kind": "User", "name": "alice"})).await;
    (client.as_bearer("alice"), home)
}

fn server() -> Client {
    let mut options = kcp_provider_runtime::embedded::Options::default();
    options.users.push(("alice".into(), "alice".into(), Vec::new()));
    Client::with(options)
}

async fn bind(user: &Client, workspace: &str, name: &str, export: Value) -> Answer {
    let binding = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": name}, "spec": {"reference": {"export": export}}});
    user.post(&format!("/clusters/{workspace}/{BINDINGS}"), &binding).await
}

#[tokio::test]
async fn an_export_is_bound_by_whom_its_workspace_lets_though_they_may_not_enter_it() {
    let client = server();
    let (provider, _, _) = bound(&client).await;
    let (alice, home) = alice(&client).await;
    let toys = json!({"path": "root:provider", "name": "toys"});
    let refused = bind(&alice, &home, "toys", toys.clone()).await;
    let why =
        "apibindings.apis.kcp.io \"toys\" is forbidden: unable to create APIBinding: no permission to bind to export root:provider:toys";
    assert_eq!((refused.code, &refused.body["message"]), (403, &json!(why)));

    allow(
        &client,
        &provider,
        json!({"apiGroups": ["apis.kcp.io"], "resources": ["apiexports"], "resourceNames": ["toys"], "verbs": ["bind"]}),
    )
    .await;
    assert_eq!(bind(&alice, &home, "toys", toys).await.code, 201);
    let binding = alice.get(&format!("/clusters/{home}/{BINDINGS}/toys")).await;
    assert_eq!(binding.body["status"]["phase"], "Bound", "{binding:?}");
    assert_eq!(alice.get(&format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha2/apiexports/toys")).await.code, 403, "it stays closed");
}

#[tokio::test]
async fn a_binding_within_a_workspace_may_come_before_its_export() {
    let client = server();
    let (alice, home) = alice(&client).await;
    assert_eq!(bind(&alice, &home, "early", json!({"name": "early"})).await.code, 201);
    let early = alice.get(&format!("/clusters/{home}/{BINDINGS}/early")).await;
    let conditions = early.body["status"]["conditions"].as_array().unwrap();
    let valid = conditions.iter().find(|condition| condition["type"] == "APIExportValid").unwrap();
    assert_eq!(valid["reason"], "APIExportNotFound", "{early:?}");
    let export = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "early"}, "spec": {}});
    assert_eq!(alice.post(&format!("/clusters/{home}/apis/apis.kcp.io/v1alpha2/apiexports"), &export).await.code, 201);
    let bound = alice.get(&format!("/clusters/{home}/{BINDINGS}/early")).await;
    assert_eq!(bound.body["status"]["phase"], "Bound", "{bound:?}");
}

#[tokio::test]
async fn a_workspace_type_is_used_by_whom_its_workspace_lets_with_all_that_it_extends() {
    let client = server();
    let (alice, home) = alice(&client).await;
    let vendor = client.workspace("vendor").await;
    for (name, base) in [("plain", json!({"path": "root", "name": "universal"})), ("rich", json!({"path": "root:vendor", "name": "plain"}))]
    {
        let type_ = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": name}, "spec": {"extend": {"with": [base]}}});
        assert_eq!(client.post(&format!("/clusters/{vendor}/{TYPES}"), &type_).await.code, 201);
    }
    let make = async |name: &str, type_: Value| {
        let workspace =
            json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}, "spec": {"type": type_}});
        let made = alice.post(&format!("/clusters/{home}/{WORKSPACES}"), &workspace).await;
        (made.code, made.body["message"].as_str().unwrap_or_default().to_owned())
    };
    let rich = json!({"path": "root:vendor", "name": "rich"});
    let missing = |name: &str| {
        let why = format!("unable to use workspace type root:vendor:{name}: missing verb='use' permission on workspacetype");
        (403, format!("workspaces.tenancy.kcp.io \"w\" is forbidden: {why}"))
    };
    assert_eq!(make("w", rich.clone()).await, missing("plain"));
    let rule = |names: &[&str]| json!({"apiGroups": ["tenancy.kcp.io"], "resources": ["workspacetypes"], "resourceNames": names, "verbs": ["use"]});
    allow(&client, &vendor, rule(&["plain"])).await;
    assert_eq!(make("w", rich.clone()).await, missing("rich"));
    client.merge(&format!("/clusters/{vendor}/apis/{RBAC}/v1/clusterroles/allowed"), &json!({"rules": [rule(&["plain", "rich"])]})).await;
    assert_eq!(make("w", rich).await.0, 201);

    let nowhere = "workspaces.tenancy.kcp.io \"w2\" is forbidden: workspace type \"nope\" cannot be resolved";
    assert_eq!(make("w2", json!({"name": "nope"})).await, (403, nowhere.to_owned()));
    let nowhere = "workspaces.tenancy.kcp.io \"w2\" is forbidden: \
        Internal error occurred: workspacetypes.tenancy.kcp.io \"root:vendor:nope\" not found";
    assert_eq!(make("w2", json!({"path": "root:vendor", "name": "nope"})).await, (403, nowhere.to_owned()));
    assert_eq!(make("w2", json!({"name": "universal"})).await.0, 201, "it is found upwards");
}
