//! `kubectl`, without extra flags, against the embedded control plane.
//!
//! Where there is no `kubectl`, these tests say so and check nothing; the answers that it reads have their own tests.

#![allow(clippy::unwrap_used)]

use std::io::ErrorKind;
use std::process::Output;

use kcp_provider_runtime::embedded::{Options, Server};
use serde_json::{Value, json};

const SCHEMA: &str = include_str!("../apiexports/apiresourceschema-kubernetesclusters.kubernetes.edge-connect.eu.yaml");
const EXPORT: &str = "kubernetes.edge-connect.eu";

/// A control plane with a provider, a tenant that bound its export, and a home for `kubectl`.
struct World {
    _server: Server,
    home: tempfile::TempDir,
}

impl World {
    /// `None` where there is no `kubectl`.
    async fn new() -> Option<Self> {
        let server = Server::start(Options::default()).await.unwrap();
        let home = tempfile::tempdir().unwrap();
        let text = server.kubeconfig(&[("provider", "root:provider"), ("tenant", "root:tenant")]);
        std::fs::write(home.path().join("kubeconfig"), text).unwrap();
        let world = Self { _server: server, home };
        for name in ["provider", "tenant"] {
            let workspace = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}});
            if world.kubectl("root", &["apply", "-f", &world.write("workspace.json", &workspace)]).await.is_none() {
                eprintln!("there is no kubectl here: nothing is checked");
                return None;
            }
        }
        let schema: Value = serde_saphyr::from_str(SCHEMA).unwrap();
        let resource = json!({
            "group": EXPORT, "name": "kubernetesclusters", "schema": schema["metadata"]["name"], "storage": {"crd": {}},
        });
        let export = json!({
            "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": EXPORT}, "spec": {"resources": [resource]},
        });
        let binding = json!({
            "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": EXPORT},
            "spec": {"reference": {"export": {"path": "root:provider", "name": EXPORT}}},
        });
        world.shown("provider", &["apply", "-f", &world.write("schema.json", &schema)]).await;
        world.shown("provider", &["apply", "-f", &world.write("export.json", &export)]).await;
        world.shown("tenant", &["apply", "--server-side", "-f", &world.write("binding.json", &binding)]).await;
        world.shown("tenant", &["wait", "apibinding", EXPORT, "--for=condition=Ready", "--timeout=30s"]).await;
        Some(world)
    }

    /// Calls `kubectl`; `None` where there is none.
    async fn kubectl(&self, context: &str, arguments: &[&str]) -> Option<Output> {
        let home = self.home.path();
        let mut command = tokio::process::Command::new("kubectl");
        command.arg("--context").arg(context).args(arguments).kill_on_drop(true);
        command.env("HOME", home).env("KUBECONFIG", home.join("kubeconfig")).env("EDITOR", "sed -i s/1.31/1.32/");
        match command.output().await {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            output => Some(output.unwrap()),
        }
    }

    /// What a call printed; it must succeed.
    async fn shown(&self, context: &str, arguments: &[&str]) -> String {
        let output = self.kubectl(context, arguments).await.unwrap();
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {}: {out}{error}", arguments.join(" "));
        out.trim().to_owned()
    }

    /// The same for a tenant, in words.
    async fn tenant(&self, command: &str) -> String {
        self.shown("tenant", &command.split(' ').collect::<Vec<_>>()).await
    }

    /// What a tenant's call that must fail said.
    async fn refused(&self, command: &str) -> String {
        let output = self.kubectl("tenant", &command.split(' ').collect::<Vec<_>>()).await.unwrap();
        assert!(!output.status.success(), "kubectl {command}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).trim().to_owned()
    }

    fn write(&self, name: &str, object: &Value) -> String {
        let path = self.home.path().join(name);
        std::fs::write(&path, object.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn order(&self, region: &str) -> String {
        let pool = json!({"name": "a", "replicas": 1, "capabilities": {"cpu": 1, "memory": "1Gi"}});
        let order = json!({
            "apiVersion": format!("{EXPORT}/v1alpha1"), "kind": "KubernetesCluster", "metadata": {"name": "one"},
            "spec": {"region": region, "version": "1.31", "nodePools": [pool]},
        });
        self.write("order.json", &order)
    }
}

/// Lines of words.
fn lines(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_orders_changes_and_deletes_with_kubectl() {
    let Some(world) = World::new().await else { return };
    let file = world.order("eu-de");
    assert_eq!(world.tenant(&format!("apply -f {file}")).await, "kubernetescluster.kubernetes.edge-connect.eu/one created");
    let shown = world.tenant("get kc").await;
    assert_eq!(lines(&shown)[0], ["NAME", "REGION", "VERSION", "PROVIDER", "SCHEDULED", "READY", "AGE"]);
    assert_eq!(lines(&shown)[1][..3], ["one", "eu-de", "1.31"]);

    let file = world.order("eu-nl");
    assert_eq!(world.tenant(&format!("apply -f {file}")).await, "kubernetescluster.kubernetes.edge-connect.eu/one configured");
    assert_eq!(world.tenant(&format!("apply -f {file}")).await, "kubernetescluster.kubernetes.edge-connect.eu/one unchanged");
    world.tenant(&format!("apply --server-side --force-conflicts -f {file}")).await;
    world.tenant("edit kc one").await;
    world.tenant("label kc one a=b").await;
    world.tenant("patch kc one --subresource=status --type=merge -p {\"status\":{\"ready\":true}}").await;
    world.tenant("wait kc/one --for=jsonpath={.status.ready}=true --timeout=30s").await;
    let shown = world.tenant("get kc one -o jsonpath={.spec.region},{.spec.version},{.metadata.labels.a}").await;
    assert_eq!(shown, "eu-nl,1.32,b");
    assert!(world.tenant("describe kc one").await.contains("Region:"));

    assert_eq!(world.tenant("delete kc one").await, "kubernetescluster.kubernetes.edge-connect.eu \"one\" deleted");
    let said = world.refused("get kc one").await;
    assert_eq!(said, "Error from server (NotFound): kubernetesclusters.kubernetes.edge-connect.eu \"one\" not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_knows_and_explains_what_a_workspace_serves() {
    let Some(world) = World::new().await else { return };
    let shown = world.tenant("api-resources --no-headers --api-group=kubernetes.edge-connect.eu").await;
    assert_eq!(lines(&shown), [["kubernetesclusters", "kc", "kubernetes.edge-connect.eu/v1alpha1", "true", "KubernetesCluster"]]);
    assert!(world.tenant("api-versions").await.contains("kubernetes.edge-connect.eu/v1alpha1"));
    let shown = world.tenant("explain kc.spec.nodePools.replicas").await;
    assert!(shown.contains("How many nodes.") && shown.contains("GROUP:      kubernetes.edge-connect.eu"), "{shown}");
    assert!(world.tenant("explain kc.metadata.finalizers").await.contains("FIELD: finalizers"));
    world.tenant("explain kc --recursive").await;
    assert!(world.tenant("version").await.contains("Server Version: v1.32.3"));

    let mut order: Value = serde_json::from_str(&std::fs::read_to_string(world.order("eu-de")).unwrap()).unwrap();
    order["spec"]["colour"] = "red".into();
    let file = world.write("wrong.json", &order);
    let said = world.refused(&format!("create -f {file}")).await;
    assert!(said.contains("strict decoding error: unknown field \"spec.colour\""), "the server is asked to validate: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kubectl_sends_in_protobuf_is_understood() {
    let Some(world) = World::new().await else { return };
    for (command, shown) in [
        ("create namespace zz", "namespace/zz created"),
        ("create configmap x --from-literal=a=b", "configmap/x created"),
        ("create secret generic s --from-literal=a=b", "secret/s created"),
        ("create serviceaccount foo", "serviceaccount/foo created"),
        ("create role r --verb=get --resource=configmaps", "role.rbac.authorization.k8s.io/r created"),
        ("create rolebinding rb --role=r --serviceaccount=default:foo", "rolebinding.rbac.authorization.k8s.io/rb created"),
        ("create clusterrole cr --verb=get --resource=configmaps", "clusterrole.rbac.authorization.k8s.io/cr created"),
        ("create clusterrolebinding crb --clusterrole=cr --group=g", "clusterrolebinding.rbac.authorization.k8s.io/crb created"),
        ("get secret s -o jsonpath={.data.a}", "Yg=="),
        ("get rolebinding rb -o wide --no-headers -o jsonpath={.subjects[0].name}", "foo"),
        ("auth can-i get configmaps", "yes"),
    ] {
        assert_eq!(world.tenant(command).await, shown, "kubectl {command}");
    }
    assert!(world.tenant("create token foo").await.split('.').count() == 3);
    let shown = world.tenant("get configmap x --no-headers").await;
    assert_eq!(lines(&shown)[0][..2], ["x", "1"]);
    assert!(world.tenant("auth whoami").await.contains("Username"));
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_watches_tables() {
    let Some(world) = World::new().await else { return };
    let file = world.order("eu-de");
    world.tenant(&format!("apply -f {file}")).await;
    let home = world.home.path();
    let mut command = tokio::process::Command::new("kubectl");
    command.args(["--context", "tenant", "get", "kc", "--watch", "--no-headers"]).kill_on_drop(true);
    let child = command.env("HOME", home).env("KUBECONFIG", home.join("kubeconfig")).stdout(std::process::Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let mut shown = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(child.stdout.take().unwrap()));
    for region in ["eu-de", "eu-nl", "eu-at"] {
        if region != "eu-de" {
            world.tenant(&format!("apply -f {}", world.order(region))).await;
        }
        let line = shown.next_line().await.unwrap().unwrap();
        assert_eq!(line.split_whitespace().nth(1), Some(region), "{line}");
    }
}
