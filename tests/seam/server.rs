//! As much of a kcp as a provider without inputs needs: an endpoint slice, one binding, and toys with list, watch and status.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::watch;

const TOYS: &str = "/apis/toys.test/v1/toys";

/// A request that was not a list or a watch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    pub(crate) target: String,
    pub(crate) content_type: String,
    pub(crate) body: Value,
}

#[derive(Default)]
struct Inner {
    address: String,
    /// By `workspace/name`.
    toys: BTreeMap<String, Value>,
    /// Every event of a toy with its version, and so what a watch still has to show.
    history: Vec<(u64, String)>,
}

/// The server; cheap to clone.
#[derive(Clone)]
pub(crate) struct Server {
    inner: Arc<Mutex<Inner>>,
    latest: watch::Sender<u64>,
    writes: watch::Sender<Vec<Write>>,
}

impl Server {
    /// Listens on a free port of this machine.
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { inner: Arc::default(), latest: watch::Sender::new(1), writes: watch::Sender::default() };
        server.inner.lock().unwrap().address = format!("http://{}", listener.local_addr().unwrap());
        let app = axum::Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        server
    }

    /// A kubeconfig for it.
    pub(crate) fn kubeconfig(&self) -> String {
        let server = self.inner.lock().unwrap().address.clone();
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": server}}],
            "users": [{"name": "it", "user": {}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        })
        .to_string()
    }

    /// A tenant makes a toy; the server takes whatever colour it is given.
    pub(crate) fn create(&self, workspace: &str, name: &str, colour: impl Into<Value>) {
        let colour = colour.into();
        let metadata = json!({
            "name": name, "namespace": "default", "uid": format!("uid-of-{name}"), "generation": 1,
            "annotations": {"kcp.io/cluster": workspace}, "managedFields": [{"manager": "tenant"}],
        });
        self.change(&format!("{workspace}/{name}"), "ADDED", |toy| {
            *toy = json!({"apiVersion": "toys.test/v1", "kind": "Toy", "metadata": metadata, "colour": colour});
        });
    }

    /// Somebody changes what no provider reads.
    pub(crate) fn touch(&self, toy: &str, note: &str) {
        self.change(toy, "MODIFIED", |toy| toy["metadata"]["annotations"]["note"] = note.into());
    }

    /// Waits until the writes are as wanted.
    pub(crate) async fn wait_for(&self, wanted: impl Fn(&[Write]) -> bool) -> Vec<Write> {
        self.writes.subscribe().wait_for(|writes| wanted(writes)).await.unwrap().clone()
    }

    /// The writes until now.
    pub(crate) fn writes(&self) -> Vec<Write> {
        self.writes.borrow().clone()
    }

    fn change(&self, key: &str, event: &str, change: impl FnOnce(&mut Value)) -> Value {
        let mut inner = self.inner.lock().unwrap();
        let version = *self.latest.borrow() + 1;
        let toy = inner.toys.entry(key.to_owned()).or_default();
        change(toy);
        toy["metadata"]["resourceVersion"] = version.to_string().into();
        let toy = toy.clone();
        inner.history.push((version, format!("{}\n", json!({"type": event, "object": toy}))));
        self.latest.send_replace(version);
        toy
    }

    fn list(&self, path: &str) -> Value {
        let inner = self.inner.lock().unwrap();
        let items: Vec<Value> = if path.ends_with("/apiexportendpointslices") {
            assert!(path.starts_with("/clusters/root:provider/"), "the slice is read in the provider workspace, not at {path}");
            let url = format!("{}/services/apiexport/1abc/toys.test", inner.address);
            vec![json!({"metadata": {"name": "toys.test"}, "status": {"endpoints": [{"url": url}]}})]
        } else if path.ends_with("/apibindings") {
            let metadata = json!({"name": "toys", "annotations": {"kcp.io/cluster": "ws1"}});
            vec![json!({"metadata": metadata, "status": {"phase": "Bound"}})]
        } else if path.starts_with("/clusters/root:provider/") {
            Vec::new()
        } else {
            assert_eq!(path, format!("/services/apiexport/1abc/toys.test/clusters/*{TOYS}"), "one wildcard for all workspaces");
            inner.toys.values().cloned().collect()
        };
        json!({"kind": "List", "metadata": {"resourceVersion": self.latest.borrow().to_string()}, "items": items})
    }

    /// What came after a version, and what will come.
    fn watch(&self, path: &str, from: u64) -> Body {
        let toys = path.ends_with(TOYS);
        let state = (self.clone(), self.latest.subscribe(), from);
        let events = futures::stream::unfold(state, move |(server, mut latest, from)| async move {
            let upto = *latest.wait_for(|version| *version > from).await.ok()?;
            let lines: String = {
                let inner = server.inner.lock().unwrap();
                let new = inner.history.iter().filter(|(version, _)| toys && *version > from && *version <= upto);
                new.map(|(_, line)| line.as_str()).collect()
            };
            Some((Ok::<_, Infallible>(Bytes::from(lines)), (server, latest, upto)))
        });
        Body::from_stream(events.filter(|lines| std::future::ready(lines.as_ref().is_ok_and(|lines| !lines.is_empty()))))
    }

    fn write(&self, write: Write) -> Response {
        let workspace = write.target.split("/clusters/").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let name = write.body["metadata"]["name"].as_str().unwrap_or_default();
        let status = write.body["status"].clone();
        let toy = self.change(&format!("{workspace}/{name}"), "MODIFIED", |toy| toy["status"] = status);
        self.writes.send_modify(|writes| writes.push(write));
        toy.to_string().into_response()
    }
}

async fn answer(State(server): State<Server>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default();
    if parts.method != Method::GET {
        let content_type = parts.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let body = to_bytes(body, 1 << 20).await.unwrap();
        let target = format!("{} {}", parts.method, parts.uri);
        return server.write(Write { target, content_type, body: serde_json::from_slice(&body).unwrap() });
    }
    if !query.contains("watch=true") {
        return (StatusCode::OK, server.list(&path).to_string()).into_response();
    }
    let from = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion=")).and_then(|version| version.parse().ok());
    server.watch(&path, from.expect("a watch says where it starts")).into_response()
}
