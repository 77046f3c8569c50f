//! What the README says of operators and tenants, command by command, against a control plane that is served alone.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::served;

/// Each of these takes a fraction of a second; more is allowed to a busy machine.
const WITHIN: Duration = Duration::from_mins(1);

const BINDINGS: Resource = Resource::new("apis.kcp.io", "v1alpha2", "apibindings");
const CLUSTERS: Resource = Resource::new("kubernetes.edge-connect.eu", "v1alpha1", "kubernetesclusters");
const PROJECTIONS: Resource = Resource::new("provider.kubernetes.edge-connect.eu", "v1alpha1", "kubernetesclusters");

/// Somebody at a terminal, with the control plane's kubeconfig.
struct Newcomer {
    kubeconfig: PathBuf,
    home: TempDir,
}

impl Newcomer {
    fn command(&self, program: &str, words: &str) -> Command {
        let mut command = Command::new(program);
        command.args(words.split(' ')).current_dir(self.home.path()).env("HOME", self.home.path()).env("KUBECONFIG", &self.kubeconfig);
        command.kill_on_drop(true);
        command
    }

    /// What `kcm` printed; it must succeed.
    async fn kcm(&self, words: &str) -> String {
        printed(words, &self.command(env!("CARGO_BIN_EXE_kcm"), words).output().await.unwrap())
    }

    /// A `kcm` that goes on until it is told to stop.
    fn running(&self, words: &str) -> Child {
        self.command(env!("CARGO_BIN_EXE_kcm"), words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// What `kubectl` printed; it must succeed. `None` where there is no `kubectl`.
    async fn kubectl(&self, words: &str) -> Option<String> {
        match self.command("kubectl", words).output().await {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            output => Some(printed(words, &output.unwrap())),
        }
    }
}

fn printed(words: &str, output: &Output) -> String {
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{words}: {out}{error}");
    out.into_owned()
}

/// Creates every object of a YAML text, as `kubectl create -f` does.
async fn create(client: &AdminClient, yaml: &str) {
    for object in serde_saphyr::from_multiple::<Value>(yaml).unwrap() {
        let (kind, api_version) = (object["kind"].as_str().unwrap(), object["apiVersion"].as_str().unwrap());
        let (group, version) = api_version.split_once('/').unwrap();
        // This is the plural of every kind in the samples.
        let plural = format!("{}s", kind.to_lowercase()).into();
        let resource = Resource { group: group.to_owned().into(), version: version.to_owned().into(), plural, subresource: "".into() };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        client.create(&resource, namespace, &object).await.unwrap();
    }
}

fn sample(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("config/samples").join(name)).unwrap()
}

fn holds(object: &Value, condition: &str) -> bool {
    object["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(|c| c["type"] == condition && c["status"] == "True"))
}

#[tokio::test]
async fn the_commands_of_the_readme_work_on_a_control_plane_that_is_served_alone() {
    let (dev, served) = served(&["--workspace", "provider", "--workspace", "team-a"]).await;
    let newcomer = Newcomer { kubeconfig: served["kubeconfig"].as_str().unwrap().into(), home: tempfile::tempdir().unwrap() };
    let root = AdminClient::from_kubeconfig(&newcomer.kubeconfig).await.unwrap();
    let (provider, team) = (root.in_workspace("root:provider").unwrap(), root.in_workspace("root:team-a").unwrap());

    let said = newcomer.kcm("init --workspace root:provider --write-kubeconfig kcm.kubeconfig").await;
    assert!(said.contains(" 0 unchanged") && said.contains("wrote kcm.kubeconfig"), "{said}");
    let said = newcomer.kcm("init --workspace root:provider").await;
    assert!(said.contains("0 changed"), "it is idempotent: {said}");
    create(&provider, &sample("catalog.yaml")).await;
    newcomer.kcm("init --workspace root:provider --provider otc --write-kubeconfig otc.kubeconfig").await;
    let mut manager = newcomer.running("run --kubeconfig kcm.kubeconfig --workspace root:provider");

    create(&team, &newcomer.kcm("bind --workspace root:provider").await).await;
    create(&team, &newcomer.kcm("bind --workspace root:provider --provider otc").await).await;
    let bound = |binding: &Value| binding["status"]["phase"] == "Bound";
    team.wait_for(&BINDINGS, "", "kubernetes.edge-connect.eu", "to be Bound", WITHIN, bound).await.unwrap();
    create(&team, &sample("tenant.yaml")).await;
    team.wait_for(&CLUSTERS, "default", "demo", "to be Projected", WITHIN, |cluster| holds(cluster, "Projected")).await.unwrap();
    let projection = team.get(&PROJECTIONS, "default", "demo").await.unwrap();
    assert_eq!(projection["spec"]["providerRef"]["name"], "otc");
    let said = newcomer.kcm("explain demo -n default --workspace root:team-a --provider-workspace root:provider").await;
    assert!(said.starts_with("default/demo: Scheduled on provider otc, offering otc-standard"), "{said}");

    looks_with_kubectl(&newcomer).await;
    manager.start_kill().unwrap();
    manager.wait().await.unwrap();
    dev.signal("INT").await;
    assert_eq!(dev.ended().await.code(), Some(0));
}

/// Without a `kubectl` what it shows was checked above, as plain answers.
async fn looks_with_kubectl(newcomer: &Newcomer) {
    let Some(shown) = newcomer.kubectl("get ws").await else {
        eprintln!("there is no kubectl here: the answers are checked without it");
        return;
    };
    let names: Vec<&str> = shown.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["provider", "team-a"]);
    for (words, expected) in [
        ("get kc,pkc -o name", "kubernetescluster.provider.kubernetes.edge-connect.eu/demo"),
        ("wait kc/demo --for=condition=Scheduled --timeout=30s", "condition met"),
        ("describe kc demo", "otc has not reported yet"),
        ("explain kc.spec.nodePools", "How many nodes."),
        ("explain pkc.spec.nodePools", "machine type"),
        ("auth can-i create kc", "yes"),
        ("delete kc demo", "deleted"),
    ] {
        let shown = newcomer.kubectl(&format!("--context team-a {words}")).await.unwrap();
        assert!(shown.contains(expected), "kubectl {words}: {shown}");
    }
}
