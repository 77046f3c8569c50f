use super::*;
use std::os::unix::fs::PermissionsExt as _;

const KUBECONFIG: &str = r"
apiVersion: v1
kind: Config
current-context: root
contexts:
- {name: other, context: {cluster: elsewhere, user: nobody}}
- {name: root, context: {cluster: here, user: kcp-admin}}
clusters:
- {name: elsewhere, cluster: {server: 'https://elsewhere.example:1'}}
- {name: here, cluster: {server: 'https://127.0.0.1:6443/clusters/root', insecure-skip-tls-verify: true}}
users:
- {name: nobody, user: {token: not-this-one}}
- {name: kcp-admin, user: {token: the-token}}
";

async fn client() -> (tempfile::TempDir, AdminClient) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admin.kubeconfig");
    std::fs::write(&path, KUBECONFIG).unwrap();
    (folder, AdminClient::from_kubeconfig(&path).await.unwrap())
}

#[test]
fn paths_are_those_of_the_kubernetes_api() {
    let bindings = Resource::new("apis.kcp.io", "v1alpha2", "apibindings");
    let secrets = Resource::new("", "v1", "secrets");
    for (why, path, expected) in [
        ("a group", bindings.collection_path(""), "/apis/apis.kcp.io/v1alpha2/apibindings"),
        ("the core group has a root of its own", secrets.collection_path(""), "/api/v1/secrets"),
        ("a namespace comes before the kind", secrets.object_path("ns", "s"), "/api/v1/namespaces/ns/secrets/s"),
        (
            "a subresource comes last",
            bindings.subresource("status").object_path("", "b"),
            "/apis/apis.kcp.io/v1alpha2/apibindings/b/status",
        ),
    ] {
        assert_eq!(path, expected, "{why}");
    }
}

#[tokio::test]
async fn a_workspace_replaces_the_path_and_keeps_the_server() {
    let (_folder, client) = client().await;
    for (why, moved, expected) in [
        ("the file's own", client.clone(), "https://127.0.0.1:6443/clusters/root"),
        ("a path", client.in_workspace("root:org").unwrap(), "https://127.0.0.1:6443/clusters/root:org"),
        ("twice does not add up", client.in_workspace("a").unwrap().in_workspace("b").unwrap(), "https://127.0.0.1:6443/clusters/b"),
        ("the server itself", client.at_path("").unwrap(), "https://127.0.0.1:6443"),
        ("from the server itself", client.at_path("").unwrap().in_workspace("a").unwrap(), "https://127.0.0.1:6443/clusters/a"),
        ("another server", client.at_url("https://x.example:9/clusters/*").unwrap(), "https://x.example:9/clusters/*"),
    ] {
        assert_eq!(moved.url(), expected, "{why}");
    }
}

#[tokio::test]
async fn a_written_kubeconfig_has_one_user_one_server_and_is_private() {
    let (folder, client) = client().await;
    let path = folder.path().join("written");
    std::fs::write(&path, "").unwrap();
    client.in_workspace("root:org").unwrap().write_kubeconfig(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("the-token") && !text.contains("not-this-one"), "{text}");
    assert!(!text.contains("elsewhere"), "{text}");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let read = AdminClient::from_kubeconfig(&path).await.unwrap();
    assert_eq!(read.url(), "https://127.0.0.1:6443/clusters/root:org");
}

#[tokio::test]
async fn a_token_is_never_printed() {
    let (_folder, client) = client().await;
    assert!(!format!("{client:?}").contains("the-token"));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_verb_and_path() {
    let (_folder, client) = client().await;
    // Port 1 of the loopback refuses at once.
    let error = client.at_url("https://127.0.0.1:1/clusters/a").unwrap().get(&WORKSPACES, "", "w").await.unwrap_err();
    assert_eq!(error.to_string(), "get https://127.0.0.1:1/clusters/a/apis/tenancy.kcp.io/v1alpha1/workspaces/w failed");
    assert!(!error.is_not_found());
}
