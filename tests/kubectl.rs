//! `kubectl`, without extra flags, against what the embedded control plane shows of itself: discovery, `OpenAPI` and tables over TLS.
//!
//! The service here has one custom kind, one compiled-in kind and one object of each, and does not write. Where there is no `kubectl`, the
//! answers that it reads are checked instead.

#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Output;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, header};
use kcp_provider_runtime::embedded::body::{self, Body};
use kcp_provider_runtime::embedded::errors::Refusal;
use kcp_provider_runtime::embedded::front::kubeconfig::kubeconfig;
use kcp_provider_runtime::embedded::front::listener::Listener;
use kcp_provider_runtime::embedded::front::negotiation::{Representation, Shape, negotiate};
use kcp_provider_runtime::embedded::front::{discovery, openapi, protobuf, table};
use kcp_provider_runtime::embedded::schema::Schema;
use kcp_provider_runtime::embedded::served::{self, Names, Origin, Served};
use kube::config::KubeConfigOptions;
use serde_json::{Value, json};

/// Forty seconds after the objects were created.
const NOW: i64 = 1_000_000;
const CREATED: &str = "1970-01-12T13:46:00Z";
const GROUP: &str = "kubernetes.edge-connect.eu";

fn kinds() -> Vec<Arc<Served>> {
    let text = include_str!("../apiexports/apiresourceschema-kubernetesclusters.kubernetes.edge-connect.eu.yaml");
    let schema: Value = serde_saphyr::from_str(text).unwrap();
    let mut kinds = served::versions(&schema["spec"], &"s".into(), &Origin::Definition).unwrap();
    kinds.push(Arc::new(Served {
        names: Names {
            group: "".into(),
            plural: "namespaces".into(),
            singular: "namespace".into(),
            kind: "Namespace".into(),
            list_kind: "NamespaceList".into(),
            short: vec!["ns".into()],
            categories: Vec::new(),
        },
        version: "v1".into(),
        namespaced: false,
        verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
        status: true,
        columns: Vec::new(),
        schema: Schema::compiled(&json!({"type": "object"})).unwrap(),
        open_api: Arc::new(json!({"type": "object"})),
        storage: "".into(),
        origin: Origin::BuiltIn,
    }));
    kinds
}

fn objects(kind: &str) -> Value {
    match kind {
        "Namespace" => json!({
            "apiVersion": "v1", "kind": "Namespace", "status": {"phase": "Active"},
            "metadata": {"name": "default", "uid": "u1", "resourceVersion": "5", "creationTimestamp": CREATED},
        }),
        _ => json!({
            "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "KubernetesCluster",
            "metadata": {"name": "one", "namespace": "default", "uid": "u2", "resourceVersion": "7", "creationTimestamp": CREATED},
            "spec": {"region": "eu-de", "version": "1.31", "nodePools": []}, "status": {"ready": true},
        }),
    }
}

/// What was asked, as `GET /path?query`.
type Asked = Arc<Mutex<Vec<String>>>;

fn answer(request: &Request<Bytes>) -> Result<Value, Refusal> {
    let kinds = kinds();
    let path = request.uri().path().trim_start_matches("/clusters/root");
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let found = match parts.as_slice() {
        ["api"] => Some(discovery::api_versions()),
        ["apis"] => Some(discovery::api_groups(&kinds)),
        ["api", version] => discovery::resources(&kinds, "", version),
        ["apis", group] => discovery::api_group(&kinds, group),
        ["apis", group, version] => discovery::resources(&kinds, group, version),
        ["openapi", "v2"] => Some(openapi::v2(&kinds)),
        ["openapi", "v3"] => Some(openapi::v3_index(&kinds)),
        ["openapi", "v3", "api", version] => openapi::v3(&kinds, "", version),
        ["openapi", "v3", "apis", group, version] => openapi::v3(&kinds, group, version),
        ["api", "v1", rest @ ..] => return object(request, &kinds, "", rest),
        ["apis", group, _, rest @ ..] => return object(request, &kinds, group, rest),
        _ => None,
    };
    found.ok_or_else(Refusal::no_such_resource)
}

fn accept(request: &Request<Bytes>) -> &str {
    request.headers().get(header::ACCEPT).map_or("", |value| value.to_str().unwrap())
}

fn object(request: &Request<Bytes>, kinds: &[Arc<Served>], group: &str, rest: &[&str]) -> Result<Value, Refusal> {
    let rest = if let ["namespaces", _, rest @ ..] = rest
        && !rest.is_empty()
    {
        rest
    } else {
        rest
    };
    let kind = |plural: &str| kinds.iter().find(|served| (&*served.names.group, &*served.names.plural) == (group, plural));
    let served = rest.first().and_then(|plural| kind(plural)).ok_or_else(Refusal::no_such_resource)?;
    let accept = accept(request);
    let stored = objects(&served.names.kind);
    let sent = || match request.headers().get(header::CONTENT_TYPE) {
        Some(type_) if type_ == protobuf::PROTOBUF => protobuf::decode(request.body()),
        _ => serde_json::from_slice(request.body()).map_err(|error| Refusal::bad_request(error.to_string())),
    };
    match (request.method().as_str(), rest) {
        ("GET", [_]) => {
            let meta = json!({"resourceVersion": "9"});
            Ok(match negotiate(accept, Shape::List)? {
                Representation::Table { .. } => table::table(served, &[stored], &meta, NOW, table::IncludeObject::Metadata),
                Representation::Partial { .. } => table::partial_list(&[stored], &meta),
                Representation::Object => {
                    json!({"apiVersion": served.api_version(), "kind": served.names.list_kind, "metadata": meta, "items": [stored]})
                }
            })
        }
        ("GET", [_, name]) if stored["metadata"]["name"] == *name => Ok(match negotiate(accept, Shape::One)? {
            Representation::Table { .. } => {
                table::table(served, std::slice::from_ref(&stored), &stored["metadata"], NOW, table::IncludeObject::Metadata)
            }
            Representation::Partial { .. } => table::partial(&stored),
            Representation::Object => stored,
        }),
        ("GET", [_, name]) => Err(Refusal::not_found(served.about(name))),
        ("POST", [_]) => sent(),
        ("PATCH", [_, _]) => Ok(stored),
        _ => Err(Refusal::method_not_allowed(served.about(""), "this")),
    }
}

/// Two changes of one object as tables, and the end.
fn watch() -> Body {
    let served = kinds().remove(0);
    let changes = ["eu-nl", "eu-at"].map(|region| {
        let mut object = objects("KubernetesCluster");
        object["spec"]["region"] = region.into();
        let table = table::table(&served, &[object], &json!({"resourceVersion": "9"}), NOW, table::IncludeObject::Metadata);
        let table = if region == "eu-nl" { table } else { table::without_headings(table) };
        Bytes::from(format!("{}\n", json!({"type": "MODIFIED", "object": table})))
    });
    body::stream(futures::stream::iter(changes))
}

async fn listener(asked: Asked) -> Listener {
    let service = tower::service_fn(move |request: Request<Bytes>| {
        let asked = asked.clone();
        async move {
            asked.lock().unwrap().push(format!("{} {}", request.method(), request.uri()));
            let builder = Response::builder();
            let response: Response<Body> = if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                builder.header(header::CONTENT_TYPE, "application/json").body(watch()).unwrap()
            } else if request.uri().path().ends_with("/openapi/v2") && accept(&request).contains("protobuf") {
                builder.header(header::CONTENT_TYPE, openapi::V2_PROTOBUF).body(body::full(openapi::v2_protobuf())).unwrap()
            } else {
                let (code, value) = answer(&request).map_or_else(|refusal| (refusal.code, refusal.status()), |value| (200, value));
                builder.status(code).header(header::CONTENT_TYPE, "application/json").body(body::full(value.to_string())).unwrap()
            };
            Ok::<_, Infallible>(response)
        }
    });
    Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), service).await.unwrap()
}

struct World {
    listener: Listener,
    home: tempfile::TempDir,
    asked: Asked,
}

impl World {
    async fn new() -> Self {
        let asked = Asked::default();
        let (listener, home) = (listener(asked.clone()).await, tempfile::tempdir().unwrap());
        let text =
            kubeconfig(&listener.url(), listener.ca_pem(), &[("admin", "token")], &[("root", "root", "admin"), ("base", "", "admin")]);
        std::fs::write(home.path().join("kubeconfig"), text).unwrap();
        Self { listener, home, asked }
    }

    /// Calls `kubectl`; `None` where there is none.
    async fn kubectl(&self, arguments: &[&str]) -> Option<Output> {
        let home = self.home.path();
        let mut command = tokio::process::Command::new("kubectl");
        command
            .args(arguments)
            .env("HOME", home)
            .env("KUBECONFIG", home.join("kubeconfig"))
            .env_remove("KUBECTL_COMMAND_HEADERS")
            .kill_on_drop(true);
        match command.output().await {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            output => Some(output.unwrap()),
        }
    }

    /// What a call printed; it must succeed.
    async fn shown(&self, arguments: &[&str]) -> Option<String> {
        let output = self.kubectl(arguments).await?;
        let (out, error) = (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned());
        assert!(output.status.success(), "{arguments:?}: {out}{error}");
        Some(out)
    }

    fn write(&self, name: &str, object: &Value) -> String {
        let path = self.home.path().join(name);
        std::fs::write(&path, object.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// Lines of words.
fn lines(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_needs_no_flags() {
    let world = World::new().await;
    let Some(shown) = world.shown(&["get", "kc"]).await else {
        eprintln!("there is no kubectl here; only the answers are checked");
        return;
    };
    assert_eq!(
        lines(&shown),
        [vec!["NAME", "REGION", "VERSION", "PROVIDER", "SCHEDULED", "READY", "AGE"], vec!["one", "eu-de", "1.31", "true", "40s"]]
    );
    let shown = world.shown(&["get", "ns", "default"]).await.unwrap();
    assert_eq!(lines(&shown), [vec!["NAME", "STATUS", "AGE"], vec!["default", "Active", "40s"]]);
    let shown =
        world.shown(&["get", "kubernetesclusters.kubernetes.edge-connect.eu", "one", "-o", "jsonpath={.spec.region}"]).await.unwrap();
    assert_eq!(shown, "eu-de");

    let shown = world.shown(&["get", "kc", "--watch", "--no-headers"]).await.unwrap();
    assert_eq!(lines(&shown).iter().map(|line| line[1]).collect::<Vec<_>>(), ["eu-de", "eu-nl", "eu-at"]);
    let shown = world.shown(&["create", "namespace", "zz"]).await.unwrap();
    assert_eq!(shown.trim(), "namespace/zz created", "which is sent in protobuf");

    let shown = world.shown(&["api-resources", "--no-headers"]).await.unwrap();
    assert_eq!(lines(&shown)[1], ["kubernetesclusters", "kc", "kubernetes.edge-connect.eu/v1alpha1", "true", "KubernetesCluster"]);
    assert!(world.shown(&["api-versions"]).await.unwrap().contains("kubernetes.edge-connect.eu/v1alpha1"));

    let shown = world.shown(&["explain", "kc.spec.nodePools.replicas"]).await.unwrap();
    assert!(shown.contains("How many nodes.") && shown.contains("GROUP:      kubernetes.edge-connect.eu"), "{shown}");
    assert!(world.shown(&["explain", "kc.metadata.finalizers"]).await.unwrap().contains("FIELD: finalizers"));
    world.shown(&["explain", "kc", "--recursive"]).await.unwrap();

    let output = world.kubectl(&["get", "kc", "two"]).await.unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(error.trim(), "Error from server (NotFound): kubernetesclusters.kubernetes.edge-connect.eu \"two\" not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_asks_the_server_to_validate_what_it_applies() {
    let world = World::new().await;
    let mut object = objects("KubernetesCluster");
    object["spec"]["region"] = "eu-nl".into();
    object["metadata"] = json!({"name": "one", "namespace": "default"});
    let file = world.write("one.json", &object);
    for (arguments, wanted) in [
        (vec!["apply", "-f", &file], "PATCH"),
        (vec!["apply", "--server-side", "-f", &file], "PATCH"),
        (vec!["apply", "--server-side", "--dry-run=server", "-f", &file], "PATCH"),
        (vec!["create", "-f", &file], "POST"),
    ] {
        if world.shown(&arguments).await.is_none() {
            return;
        }
        let asked = std::mem::take(&mut *world.asked.lock().unwrap());
        let write = asked.iter().find(|line| line.starts_with(wanted)).unwrap_or_else(|| panic!("{arguments:?}: {asked:?}"));
        assert!(write.contains("fieldValidation=Strict"), "{arguments:?}: {write}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rust_client_trusts_the_kubeconfig() {
    let world = World::new().await;
    let text = std::fs::read_to_string(world.home.path().join("kubeconfig")).unwrap();
    let config = kube::Config::from_custom_kubeconfig(serde_saphyr::from_str(&text).unwrap(), &KubeConfigOptions::default()).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let groups = client.list_api_groups().await.unwrap();
    assert_eq!(groups.groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), [GROUP]);
    let resources = client.list_api_group_resources(&format!("{GROUP}/v1alpha1")).await.unwrap();
    assert_eq!(
        resources.resources.iter().map(|resource| resource.name.as_str()).collect::<Vec<_>>(),
        ["kubernetesclusters", "kubernetesclusters/status"]
    );
    drop(client);
    world.listener.stop().await;
}
