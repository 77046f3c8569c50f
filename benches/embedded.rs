//! What the embedded control plane does in a second on one core, and what it holds: figures as JSON, one object a line.
//!
//! `cargo bench --bench embedded` measures requests; `-- --scale` also fills 10,000 workspaces with 10 clusters each.

#![allow(clippy::unwrap_used, reason = "a figure that cannot be taken is no figure")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kcp_provider_runtime::api::manifest::{api_resource_schema, binding, export, exported, rbac};
use kcp_provider_runtime::embedded::{ADMIN, ControlPlane, Options};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// For how long each kind of request is repeated.
const LASTS: Duration = Duration::from_secs(3);

struct Bench {
    control_plane: ControlPlane,
}

impl Bench {
    async fn send(&self, method: Method, path: &str, media_type: &str, body: Bytes) -> (u16, Bytes) {
        let request = Request::builder().method(method).uri(path).header("content-type", media_type);
        let request = request.header("authorization", format!("Bearer {ADMIN}")).body(body).unwrap();
        let response = self.control_plane.clone().oneshot(request).await.unwrap();
        (response.status().as_u16(), response.into_body().collect().await.unwrap().to_bytes())
    }

    async fn make(&self, path: &str, object: &Value) -> Value {
        let (code, body) = self.send(Method::POST, path, "application/json", object.to_string().into()).await;
        assert_eq!(code, 201, "{}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    async fn workspace(&self, name: &str) -> String {
        let path = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
        self.make(path, &json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}})).await;
        let (_, body) = self.send(Method::GET, &format!("{path}/{name}"), "", Bytes::new()).await;
        serde_json::from_slice::<Value>(&body).unwrap()["spec"]["cluster"].as_str().unwrap().to_owned()
    }

    /// The provider workspace with the export; returns the path of its virtual workspace.
    async fn provider(&self) -> String {
        let provider = self.workspace("provider").await;
        for definition in exported() {
            self.make(&format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha1/apiresourceschemas"), &api_resource_schema(&definition))
                .await;
        }
        self.make(&format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha2/apiexports"), &export::export()).await;
        for role in rbac::tenant_policy() {
            let kind = format!("{}s", role["kind"].as_str().unwrap().to_lowercase());
            self.make(&format!("/clusters/{provider}/apis/rbac.authorization.k8s.io/v1/{kind}"), &role).await;
        }
        format!("/services/apiexport/{provider}/{}", export::EXPORT)
    }

    async fn tenant(&self, name: &str) -> String {
        let tenant = self.workspace(name).await;
        let claims: Vec<Value> = export::claims().iter().map(export::Claim::to_value).collect();
        let binding = binding::binding("root:provider", export::EXPORT, &claims);
        self.make(&format!("/clusters/{tenant}/apis/apis.kcp.io/v1alpha2/apibindings"), &binding).await;
        tenant
    }

    /// Repeats a request for [`LASTS`] and prints how many there were in a second.
    async fn rate(&self, what: &str, mut next: impl FnMut(usize) -> (Method, String, &'static str, String)) {
        let began = Instant::now();
        let mut count = 0;
        while began.elapsed() < LASTS {
            let (method, path, media_type, body) = next(count);
            let (code, body) = self.send(method, &path, media_type, body.into()).await;
            assert!(code < 300, "{what}: {code} {}", String::from_utf8_lossy(&body));
            count += 1;
        }
        let seconds = began.elapsed().as_secs_f64();
        println!("{}", json!({"figure": what, "per_second": (f64::from(u32::try_from(count).unwrap()) / seconds).round(), "load": load()}));
    }
}

fn clusters(tenant: &str) -> String {
    format!("/clusters/{tenant}/apis/kubernetes.edge-connect.eu/v1alpha1/namespaces/default/kubernetesclusters")
}

fn cluster(name: &str) -> Value {
    let pool = |name: &str| json!({"name": name, "replicas": 3, "capabilities": {"cpu": "4", "memory": "16Gi"}});
    json!({"apiVersion": "kubernetes.edge-connect.eu/v1alpha1", "kind": "KubernetesCluster", "metadata": {"name": name},
        "spec": {"region": "eu-de", "version": "1.34.2", "nodePools": [pool("system"), pool("workers")]}})
}

/// The machine's load, since figures of a busy one say little.
fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().split(' ').next().unwrap_or_default().to_owned()
}

/// Bytes of memory that are this process's.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

async fn requests() {
    let bench = Bench { control_plane: ControlPlane::new(Options::default()) };
    let through = bench.provider().await;
    let tenant = bench.tenant("tenant").await;
    let all = clusters(&tenant);
    bench.make(&all, &cluster("demo")).await;
    let one = format!("{all}/demo");
    bench.rate("GET one object", |_| (Method::GET, one.clone(), "", String::new())).await;
    bench
        .rate("create a validated object", |at| (Method::POST, all.clone(), "application/json", cluster(&format!("c{at}")).to_string()))
        .await;
    let replicas = |at: usize| json!({"metadata": {"annotations": {"note": at.to_string()}}}).to_string();
    bench.rate("merge patch of an object", |at| (Method::PATCH, one.clone(), "application/merge-patch+json", replicas(at))).await;
    let condition = |at: usize| {
        json!({"type": "Scheduled", "status": "True", "reason": "Scheduled", "message": at.to_string(),
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1})
    };
    let status = |at: usize| {
        json!({"apiVersion": "kubernetes.edge-connect.eu/v1alpha1", "kind": "KubernetesCluster", "metadata": {"name": "demo"},
        "status": {"ready": true, "conditions": [condition(at)]}})
    };
    let path = format!("{through}{one}/status?fieldManager=bench&force=true");
    bench
        .rate("apply of a status through the export", |at| {
            (Method::PATCH, path.clone(), "application/apply-patch+yaml", status(at).to_string())
        })
        .await;
}

async fn scale(workspaces: usize, each: usize) {
    let before = resident();
    let bench = Bench { control_plane: ControlPlane::new(Options::default()) };
    bench.provider().await;
    let began = Instant::now();
    for at in 0..workspaces {
        let tenant = bench.tenant(&format!("tenant-{at}")).await;
        for at in 0..each {
            bench.make(&clusters(&tenant), &cluster(&format!("c{at}"))).await;
        }
    }
    let (objects, text) = bench.control_plane.size();
    let held = resident() - before;
    println!(
        "{}",
        json!({"figure": "held", "workspaces": workspaces, "clusters_each": each, "objects": objects, "bytes_of_text": text, "resident_bytes": held,
            "bytes_per_object": held / objects, "seconds": began.elapsed().as_secs_f64(), "load": load()})
    );
}

fn main() {
    // One core: what is measured is what one simulation or one test gets.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        requests().await;
        if std::env::args().any(|argument| argument == "--scale") {
            scale(1_000, 10).await;
            scale(10_000, 10).await;
        }
    });
}
