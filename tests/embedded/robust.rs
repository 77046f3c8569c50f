//! Whatever is sent, there is an answer: nothing panics, nothing goes on for ever, no token is shown, and the same is answered again.

use http::Method;
use kcp_provider_runtime::embedded::{ControlPlane, Options};
use serde_json::{Value, json};

use crate::lives::{BINDINGS, bound, export, schema, toy};
use crate::support::Client;

/// Every value that is made of one by replacing one part of it.
fn spoilt(value: &Value) -> Vec<Value> {
    let mut all: Vec<Value> = [json!("x"), json!(7), json!(true), json!([]), json!({}), json!(null), json!([null]), json!(["x"])].into();
    let inner: Vec<(Value, Vec<Value>)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, inner)| (json!(name), spoilt(inner))).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, inner)| (json!(at), spoilt(inner))).collect(),
        _ => Vec::new(),
    };
    for (at, others) in inner {
        for other in others {
            let mut copy = value.clone();
            match &at {
                Value::String(name) => copy[name.as_str()] = other,
                at => copy[usize::try_from(at.as_u64().unwrap()).unwrap()] = other,
            }
            all.push(copy);
        }
    }
    all
}

fn bodies(tenant: &str, provider: &str) -> Vec<(String, Value)> {
    let (core, rbac) = ("api/v1/namespaces", "apis/rbac.authorization.k8s.io/v1");
    let (apis, kcp) = ("apis/apis.kcp.io", "apis.kcp.io/v1alpha1");
    let tenants: Vec<(String, Value)> = [
        (core.into(), json!({"kind": "Namespace", "metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"finalizers": ["kubernetes"]}, "status": {}})),
        (
            format!("{core}/default/configmaps"),
            json!({"kind": "ConfigMap", "data": {"a": "b"}, "metadata": {"name": "c", "finalizers": ["a/b"], "annotations": {"a": "b"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}]}}),
        ),
        (
            format!("{core}/default/secrets"),
            json!({"kind": "Secret", "type": "kubernetes.io/service-account-token", "data": {"a": "Yg=="}, "stringData": {"c": "d"},
                "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "default"}}}),
        ),
        (format!("{core}/default/serviceaccounts"), json!({"kind": "ServiceAccount", "metadata": {"name": "a"}})),
        (
            format!("{core}/default/serviceaccounts/default/token"),
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["a"], "expirationSeconds": 600}}),
        ),
        (
            format!("{rbac}/clusterrolebindings"),
            json!({"kind": "ClusterRoleBinding", "metadata": {"name": "r"}, "subjects": [{"kind": "User", "name": "u"}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}),
        ),
        (
            format!("{rbac}/clusterroles"),
            json!({"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}),
        ),
        (
            "apis/apiextensions.k8s.io/v1/customresourcedefinitions".into(),
            json!({"kind": "CustomResourceDefinition", "metadata": {"name": "things.example.org"},
                "spec": {"group": "example.org", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}),
        ),
        (
            BINDINGS.into(),
            json!({"kind": "APIBinding", "metadata": {"name": "b"}, "spec": {
                "reference": {"export": {"path": "root:provider", "name": "toys"}}, "permissionClaims": [
                    {"group": "", "resource": "secrets", "verbs": ["*"], "selector": {"matchAll": true}, "state": "Accepted"}]}}),
        ),
        ("apis/play.example.org/v1/namespaces/default/toys".into(), toy("car")),
    ]
    .into();
    let mut other = export("v1");
    other["metadata"]["name"] = "other".into();
    other["spec"]["identity"] = json!({"secretRef": {"namespace": "default", "name": "i"}});
    let providers: Vec<(String, Value)> = [
        (format!("{apis}/v1alpha1/apiresourceschemas"), schema("v9", "red")),
        (format!("{apis}/v1alpha2/apiexports"), other),
        (
            format!("{apis}/v1alpha1/apiexports"),
            json!({"apiVersion": kcp, "kind": "APIExport", "metadata": {"name": "old"}, "spec": {
                "latestResourceSchemas": ["v1.toys.play.example.org"], "permissionClaims": [{"group": "", "resource": "secrets", "all": true}]}}),
        ),
        (
            format!("{apis}/v1alpha1/apiexportendpointslices"),
            json!({"apiVersion": kcp, "kind": "APIExportEndpointSlice", "metadata": {"name": "e"},
                "spec": {"export": {"name": "toys", "path": "root:provider"}}}),
        ),
    ]
    .into();
    let universal = json!({"name": "universal", "path": "root"});
    let roots: Vec<(String, Value)> = [
        (
            "apis/tenancy.kcp.io/v1alpha1/workspaces".into(),
            json!({"kind": "Workspace", "metadata": {"name": "w"}, "spec": {"type": universal}}),
        ),
        (
            "apis/tenancy.kcp.io/v1alpha1/workspacetypes".into(),
            json!({"kind": "WorkspaceType", "metadata": {"name": "t"}, "spec": {"defaultChildWorkspaceType": universal,
                "extend": {"with": [universal]}, "defaultAPIBindings": [{"path": "root:provider", "export": "toys"}]}}),
        ),
    ]
    .into();
    let at = |workspace: &str, all: Vec<(String, Value)>| {
        let whole = |(path, mut body): (String, Value)| {
            if body["apiVersion"].is_null() {
                let version = path.strip_prefix("apis/").map_or("v1", |rest| rest.split_at(rest.match_indices('/').nth(1).unwrap().0).0);
                body["apiVersion"] = version.into();
            }
            (format!("/clusters/{workspace}/{path}"), body)
        };
        all.into_iter().map(whole).collect::<Vec<_>>()
    };
    [at(tenant, tenants), at(provider, providers), at("root", roots)].concat()
}

#[tokio::test]
async fn no_body_makes_it_panic() {
    let client = Client::new();
    let (provider, tenant, _) = bound(&client).await;
    for (path, good) in bodies(&tenant, &provider) {
        let name = good["metadata"]["name"].as_str().unwrap_or_default();
        let one = format!("{path}/{name}");
        for body in spoilt(&good) {
            client.post(&path, &body).await;
            client.delete(&one).await;
            client.merge(&one, &json!({"metadata": {"finalizers": null}})).await;
        }
        let made = client.post(&path, &good).await;
        assert!(made.code == 201 || made.code == 422, "{path}: {made:?}");
        let status = json!({"status": {"phase": "x", "conditions": [{"type": "Ready", "status": "True"}], "boundResources": [{"schema": {}}],
            "identityHash": "x", "acceptedNames": {}, "storedVersions": ["v1"], "endpoints": [{"url": "x"}], "appliedPermissionClaims": [{"group": ""}]}});
        for body in spoilt(&good).into_iter().chain(spoilt(&status)) {
            client.put(&one, &body).await;
            client.merge(&one, &body).await;
            client.merge(&format!("{one}/status"), &body).await;
            client
                .send(Method::PATCH, &format!("{one}?fieldManager=m&force=true"), "application/apply-patch+yaml", body.to_string().into())
                .await;
        }
        client.delete(&one).await;
    }
}

#[tokio::test]
async fn no_patch_makes_something_else_of_an_object() {
    let client = Client::new();
    let (_, tenant, _) = bound(&client).await;
    let path = format!("/clusters/{tenant}/apis/play.example.org/v1/namespaces/default/toys");
    client.post(&path, &toy("car")).await;
    for (media_type, patch) in [
        ("application/json-patch+json", json!([{"op": "replace", "path": "", "value": "x"}])),
        ("application/json-patch+json", json!([{"op": "remove", "path": "/metadata"}])),
        ("application/merge-patch+json", json!("x")),
        ("application/merge-patch+json", json!({"metadata": null})),
    ] {
        client.send(Method::PATCH, &format!("{path}/car"), media_type, patch.to_string().into()).await;
        assert_eq!(client.get(&format!("{path}/car")).await.body["spec"]["size"], 2, "{media_type} {patch}");
    }
}

#[tokio::test]
async fn a_lock_that_somebody_wrote_over_is_written_again() {
    let client = Client::new();
    bound(&client).await;
    let tenant = client.workspace("another").await;
    let logical = format!("/clusters/{tenant}/apis/core.kcp.io/v1alpha1/logicalclusters/cluster");
    let spoilt = json!({"metadata": {"annotations": {"internal.apis.kcp.io/resource-bindings": "[]"}}});
    assert_eq!(client.merge(&logical, &spoilt).await.code, 200);
    let binding = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "toys"},
        "spec": {"reference": {"export": {"path": "root:provider", "name": "toys"}}}});
    assert_eq!(client.post(&format!("/clusters/{tenant}/{BINDINGS}"), &binding).await.code, 201);
    let logical = client.get(&logical).await.body;
    assert_eq!(logical["metadata"]["annotations"]["internal.apis.kcp.io/resource-bindings"], r#"{"toys.play.example.org":{"n":"toys"}}"#);
}

#[tokio::test]
async fn odd_numbers_and_urls_are_answered() {
    let client = Client::new();
    let (_, tenant, through) = bound(&client).await;
    let toys = "apis/play.example.org/v1/toys";
    for (why, path, code) in [
        ("a shard that is not there", format!("/shards/9{through}/clusters/*/{toys}"), 403),
        ("a limit that is all there is", format!("/clusters/{tenant}/{toys}?limit={}", i64::MAX), 200),
        ("a limit that is no number", format!("/clusters/{tenant}/{toys}?limit={}", u64::MAX), 400),
        ("a watch for ever", format!("/clusters/{tenant}/{toys}?watch=true&timeoutSeconds={}", i64::MAX), 200),
        ("half of a percent sign", format!("/clusters/{tenant}/{toys}?labelSelector=%E4%B8%ADa%2"), 200),
    ] {
        let request = http::Request::get(&path).header("authorization", "Bearer kcp-admin").body(bytes::Bytes::new()).unwrap();
        let answer = tower::ServiceExt::oneshot(client.control_plane.clone(), request).await.unwrap();
        assert_eq!(answer.status(), code, "{why}: {path}");
    }
}

#[tokio::test]
async fn what_is_nested_too_deep_is_refused() {
    let client = Client::new();
    let tenant = client.workspace("tenant").await;
    let crds = format!("/clusters/{tenant}/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.org"},
        "spec": {"group": "example.org", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    assert_eq!(client.post(&crds, &crd).await.code, 201);
    let things = format!("/clusters/{tenant}/apis/example.org/v1/things");
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
    let thing =
        |name: &str, levels| json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": name}, "a": nested(levels)});
    assert_eq!(client.post(&things, &thing("deep", 90)).await.code, 201);
    let pointer = "/a".repeat(90);
    let deeper = json!([{"op": "replace", "path": pointer, "value": nested(90)}]);
    let patched = client.send(Method::PATCH, &format!("{things}/deep"), "application/json-patch+json", deeper.to_string().into()).await;
    assert_eq!(patched.code, 400, "{patched:?}");
    assert_eq!(client.merge(&format!("{things}/deep"), &json!({"b": 1})).await.code, 200);
    for (media_type, open) in
        [("application/json", "["), ("application/yaml", "["), ("application/yaml", "- "), ("application/yaml", "{a: ")]
    {
        let answer = client.send(Method::POST, &things, media_type, open.repeat(100_000).into()).await;
        assert_eq!(answer.code, 400, "{media_type} {open}");
    }
}

#[tokio::test]
async fn no_token_is_shown() {
    let users = vec![("hidden-token".to_owned(), "alice".to_owned(), Vec::new())];
    let options = Options { users, ..Options::default() };
    let server = kcp_provider_runtime::embedded::Server::start(options.clone()).await.unwrap();
    for shown in [format!("{options:?}"), format!("{server:?}"), format!("{:?}", ControlPlane::new(options))] {
        assert!(!shown.contains("hidden-token"), "{shown}");
    }
}

/// Requests of all sorts, and then everything that there is.
async fn played(seed: u64) -> String {
    let client = Client::with(Options { seed, ..Options::default() });
    let (provider, tenant, through) = bound(&client).await;
    let mut answers = Vec::new();
    for (path, good) in bodies(&tenant, &provider) {
        answers.push(client.post(&path, &good).await);
        let one = format!("{path}/{}", good["metadata"]["name"].as_str().unwrap_or_default());
        answers.push(client.merge(&one, &json!({"metadata": {"labels": {"seen": "yes"}}})).await);
        answers.push(client.get(&path).await);
    }
    answers.push(client.get(&format!("{through}/clusters/*/apis/play.example.org/v1/toys")).await);
    answers.push(client.delete(&format!("/clusters/{tenant}/{BINDINGS}/toys")).await);
    for workspace in ["root", &provider, &tenant] {
        for kind in [
            "api/v1/secrets",
            "api/v1/configmaps",
            "api/v1/serviceaccounts",
            "api/v1/namespaces",
            BINDINGS,
            "apis/core.kcp.io/v1alpha1/logicalclusters",
            "apis/tenancy.kcp.io/v1alpha1/workspaces",
            "apis/apis.kcp.io/v1alpha2/apiexports",
            "apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        ] {
            answers.push(client.get(&format!("/clusters/{workspace}/{kind}")).await);
        }
    }
    format!("{answers:#?}")
}

#[tokio::test(start_paused = true)]
async fn the_same_requests_have_the_same_answers_to_the_byte() {
    let once = played(3).await;
    assert_eq!(once, played(3).await);
    assert_ne!(once, played(4).await);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing_that_comes_after() {
    let then = async |rehearse: bool| {
        let client = Client::new();
        let (_, tenant, _) = bound(&client).await;
        let maps = format!("/clusters/{tenant}/api/v1/namespaces/default/configmaps");
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}});
        if rehearse {
            assert_eq!(client.post(&format!("{maps}?dryRun=All"), &map).await.code, 201);
            assert_eq!(client.delete(&format!("{maps}/kube-root-ca.crt?dryRun=All")).await.code, 200);
        }
        client.post(&maps, &map).await
    };
    assert_eq!(then(true).await, then(false).await);
}
