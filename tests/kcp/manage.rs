//! The command `kcm run` as an operator runs it: a process of its own, as the identity that `init` issued.

use std::process::Stdio;
use std::time::Duration;

use kcp_provider_runtime::api::manifest::{self, export, rbac};
use kcp_provider_runtime::cli::init::{self, Options};
use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::support::platform::{CONFIGS, EXPORTS, Platform, SOON, eventually};

const ROLES: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "clusterroles");
const ROLE_BINDINGS: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "clusterrolebindings");
const SCHEMAS: Resource = Resource::new("apis.kcp.io", "v1alpha1", "apiresourceschemas");

async fn start(platform: &Platform) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kcm"));
    command.arg("run").arg("--kubeconfig").arg(platform.identity().await).args([
        "--workspace",
        &platform.connection.path,
        "--requests",
        "1",
    ]);
    command.stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap()
}

/// Asks the process to end as a supervisor does, and returns its exit code.
async fn terminate(mut child: Child) -> Option<i32> {
    let id = child.id().expect("the process runs").to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
    let ended = tokio::time::timeout(Duration::from_secs(30), child.wait()).await;
    ended.expect("the manager ends within 30 s of SIGTERM").unwrap().code()
}

#[tokio::test]
async fn a_manager_that_owns_the_exports_repairs_them_at_start_and_ends_clean() {
    let platform = Platform::new().await;
    let options = Options { connection: platform.connection.clone(), provider: None, manage_exports: true, dry_run: false };
    init::init(&options).await.unwrap();
    platform.client().patch(&CONFIGS, "", "kcm", &json!({"spec": {"kcp": {"exports": "Manage"}}})).await.unwrap();
    platform.client().patch(&EXPORTS, "", export::EXPORT, &json!({"spec": {"permissionClaims": []}})).await.unwrap();

    let manager = start(&platform).await;

    let repaired = |live: &Value| live["spec"]["permissionClaims"].as_array().is_some_and(|claims| claims.len() == export::claims().len());
    platform.client().wait_for(&EXPORTS, "", export::EXPORT, "to have its claims back", SOON, repaired).await.unwrap();
    assert_eq!(terminate(manager).await, Some(0));
}

/// The role without one verb of one rule.
fn lacking(role: &Value, at: usize, verb: &str) -> Value {
    let mut rules = role["rules"].clone();
    rules[at]["verbs"].as_array_mut().unwrap().retain(|kept| kept != verb);
    rules.as_array_mut().unwrap().retain(|rule| rule["verbs"] != json!([]));
    assert_ne!(rules, role["rules"], "rule {at} has no {verb}");
    json!({"rules": rules})
}

#[tokio::test]
async fn each_verb_of_the_role_that_owns_the_exports_is_needed() {
    let platform = Platform::new().await;
    let admin = platform.client();
    let identity = AdminClient::from_kubeconfig(&platform.identity().await).await.unwrap();
    let [role, binding] = rbac::manager_exports();
    admin.create(&ROLES, "", &role).await.unwrap();
    admin.create(&ROLE_BINDINGS, "", &binding).await.unwrap();
    eventually("the whole role is enough", async || init::upsert_exports(&identity).await.is_ok()).await;

    let schema = manifest::schema_name(&manifest::exported()[0]);
    for (rule, verb, refused) in
        [(0, "get", "get"), (0, "create", "create"), (1, "create", "create"), (2, "get", "get"), (2, "update", "replace")]
    {
        admin.patch(&ROLES, "", rbac::EXPORTS_ROLE, &lacking(&role, rule, verb)).await.unwrap();
        eventually(&format!("without {verb} in rule {rule} the manager is refused to {refused}"), async || {
            // Provoked each time, since a change of a role is in force a moment later.
            match (rule, verb) {
                (0, "create") => admin.delete(&SCHEMAS, "", &schema).await.unwrap(),
                (1, "create") => admin.delete(&EXPORTS, "", export::EXPORT).await.unwrap(),
                (2, "update") => drop(admin.patch(&EXPORTS, "", export::EXPORT, &json!({"spec": {"permissionClaims": []}})).await.unwrap()),
                _ => {}
            }
            let problem = init::upsert_exports(&identity).await.err().map(|error| format!("{error:#}")).unwrap_or_default();
            problem.contains(&format!(": {refused} https://")) && problem.contains(": 403 ")
        })
        .await;
        admin.patch(&ROLES, "", rbac::EXPORTS_ROLE, &json!({"rules": role["rules"]})).await.unwrap();
        eventually("the whole role is enough again", async || init::upsert_exports(&identity).await.is_ok()).await;
    }
}

#[tokio::test]
async fn a_manager_that_consumes_the_exports_leaves_them_alone() {
    let platform = Platform::new().await;
    platform.client().patch(&EXPORTS, "", export::EXPORT, &json!({"spec": {"permissionClaims": []}})).await.unwrap();
    let changed = platform.client().get(&EXPORTS, "", export::EXPORT).await.unwrap();
    let mut manager = start(&platform).await;
    let mut lines = BufReader::new(manager.stderr.take().unwrap()).lines();
    // The configuration comes into force after the moment at which exports would have been written.
    while let Some(line) = tokio::time::timeout(SOON, lines.next_line()).await.expect("the manager logs").unwrap() {
        if line.contains("a configuration is in force") {
            break;
        }
    }
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });

    let live = platform.client().get(&EXPORTS, "", export::EXPORT).await.unwrap();
    assert_eq!(live["metadata"]["resourceVersion"], changed["metadata"]["resourceVersion"]);
    assert_eq!(terminate(manager).await, Some(0));
}

#[tokio::test]
async fn an_invalid_configuration_is_refused_in_its_status_and_the_last_good_one_stays() {
    let platform = Platform::new().await;
    let manager = platform.manager().await;
    let accepted = async |status: &str, word: &str| {
        let config = platform.client().get(&CONFIGS, "", "kcm").await.unwrap();
        let condition = &config["status"]["conditions"][0];
        condition["status"] == status
            && condition["message"].as_str().unwrap_or_default().contains(word)
            && config["status"]["observedGeneration"] == config["metadata"]["generation"]
    };
    eventually("the configuration is accepted", async || accepted("True", "in force").await).await;

    let odd = json!({"spec": {"kcp": {"allowedWorkspaces": ["root:a*"]}}});
    platform.client().patch(&CONFIGS, "", "kcm", &odd).await.unwrap();
    eventually("the refusal names the field", async || accepted("False", "spec.kcp.allowedWorkspaces[0]").await).await;

    platform.client().patch(&CONFIGS, "", "kcm", &json!({"spec": {"kcp": {"allowedWorkspaces": null}}})).await.unwrap();
    eventually("the corrected one is accepted", async || accepted("True", "in force").await).await;
    manager.stop().await;
}
