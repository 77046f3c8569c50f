//! Leaving: old schemas collected, what lives listed and waited for, and what `init` made removed.

use kcp_provider_runtime::api::manifest::{self, definition, export};
use kcp_provider_runtime::cli::connect::ConnectArgs;
use kcp_provider_runtime::cli::drain::{self, DrainArgs};
use kcp_provider_runtime::cli::init::prune::{Fate, Old};
use kcp_provider_runtime::cli::init::{self, Extras, Options};
use kcp_provider_runtime::cli::kcp_admin::Resource;
use kcp_provider_runtime::cli::uninstall::{self, UninstallArgs};
use kcp_provider_runtime::cli::virtual_workspaces::EndpointArgs;
use serde_json::{Value, json};

use crate::support::platform::{BINDINGS, CLUSTERS, CONFIGS, EXPORTS, MACHINE_TYPES, Platform, SOON, eventually, served};

const SCHEMAS: Resource = Resource::new("apis.kcp.io", "v1alpha1", "apiresourceschemas");
const WORKSPACE_TYPES: Resource = Resource::new("tenancy.kcp.io", "v1alpha1", "workspacetypes");
const OLD: &str = "v00000000.kubernetesclusters.kubernetes.edge-connect.eu";

fn options(platform: &Platform) -> Options {
    Options { connection: platform.connection.clone(), provider: None, manage_exports: false, dry_run: false }
}

fn connect(platform: &Platform) -> ConnectArgs {
    ConnectArgs { kubeconfig: Some(platform.folder().join("admin.kubeconfig")), workspace: None }
}

/// An endpoint that nobody listens at.
fn nowhere() -> EndpointArgs {
    EndpointArgs { endpoint_override: vec![("https://".into(), "https://127.0.0.1:1/".into())] }
}

/// The tenant kind as an earlier version had it, and the export that names it.
async fn earlier(platform: &Platform) {
    let mut old = manifest::api_resource_schema(&definition::tenant());
    old["metadata"]["name"] = OLD.into();
    old["spec"]["versions"][0]["schema"]["description"] = "An earlier version.".into();
    platform.client().create(&SCHEMAS, "", &old).await.unwrap();
    let mut live = platform.client().get(&EXPORTS, "", export::EXPORT).await.unwrap();
    for resource in live["spec"]["resources"].as_array_mut().unwrap().iter_mut().filter(|resource| resource["group"] == export::EXPORT) {
        resource["schema"] = OLD.into();
    }
    platform.client().replace(&EXPORTS, "", export::EXPORT, &live).await.unwrap();
}

fn names_the_old(binding: &Value) -> bool {
    binding["status"]["boundResources"].as_array().is_some_and(|all| all.iter().any(|one| one["schema"]["name"] == OLD))
}

#[tokio::test]
async fn an_old_schema_goes_once_it_is_proven_unused_and_not_before() {
    let platform = Platform::new().await;
    earlier(&platform).await;
    let tenant = platform.tenant().await;
    tenant.client().wait_for(&BINDINGS, "", export::EXPORT, "to use the old schema", SOON, names_the_old).await.unwrap();
    let named = init::prune::prune(platform.client(), &EndpointArgs::default(), false).await.unwrap();
    assert!(matches!(&named[..], [Old { fate: Fate::Kept(why), .. }] if why.contains("names it")), "{named:?}");

    // The export rolls; who cannot see all bindings deletes nothing, and says so where it was asked for.
    let blind = init::init_with(&options(&platform), &Extras::default(), &nowhere()).await.unwrap();
    assert!(blind.changes() == 1 && blind.old_schemas.is_empty(), "{blind}");
    let asked = Extras { prune_schemas: true, ..Extras::default() };
    let refused = init::init_with(&options(&platform), &asked, &nowhere()).await.unwrap_err();
    assert!(format!("{refused:#}").contains("no schema was deleted"), "{refused:#}");
    assert!(platform.client().find(&SCHEMAS, "", OLD).await.unwrap().is_some());

    eventually("the old schema is collected after the binding has left it", async || {
        let report = init::init_with(&options(&platform), &asked, &EndpointArgs::default()).await.unwrap();
        let [Old { name, fate }] = &report.old_schemas[..] else { panic!("one old schema: {report}") };
        assert_eq!(name, OLD);
        let binding = tenant.client().get(&BINDINGS, "", export::EXPORT).await.unwrap();
        match fate {
            Fate::Collected => assert!(!names_the_old(&binding), "collected under a binding: {binding}"),
            Fate::Kept(why) => assert!(why.contains(tenant.workspace.logical_cluster.as_str()), "{why}"),
        }
        *fate == Fate::Collected
    })
    .await;
    assert!(platform.client().find(&SCHEMAS, "", OLD).await.unwrap().is_none());
    for definition in manifest::exported() {
        let name = manifest::schema_name(&definition);
        assert!(platform.client().find(&SCHEMAS, "", &name).await.unwrap().is_some(), "{name} is in use");
    }
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    assert_eq!(init::init(&options(&platform)).await.unwrap().old_schemas, []);
}

#[tokio::test]
async fn a_mark_on_the_export_survives_later_runs_and_a_manager_that_owns_it() {
    let platform = Platform::new().await;
    let mark = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
    let extras = Extras {
        export_label: mark("ui.platform-mesh.io/content-for", export::EXPORT),
        export_annotation: mark("example.org/owner", "team=a"),
        ..Extras::default()
    };
    assert_eq!(init::init_with(&options(&platform), &extras, &EndpointArgs::default()).await.unwrap().changes(), 1);
    platform.client().patch(&EXPORTS, "", export::EXPORT, &json!({"metadata": {"labels": {"theirs": "yes"}}})).await.unwrap();
    assert_eq!(init::init(&options(&platform)).await.unwrap().changes(), 0);
    // Something to put right, so that the manager's way writes the export too.
    platform.client().patch(&EXPORTS, "", export::EXPORT, &json!({"spec": {"permissionClaims": []}})).await.unwrap();
    init::upsert_exports(platform.client()).await.unwrap();
    let live = platform.client().get(&EXPORTS, "", export::EXPORT).await.unwrap();
    assert_eq!(live["spec"]["permissionClaims"].as_array().unwrap().len(), export::claims().len());
    assert_eq!(live["metadata"]["labels"], json!({"theirs": "yes", "ui.platform-mesh.io/content-for": export::EXPORT}));
    assert_eq!(live["metadata"]["annotations"]["example.org/owner"], "team=a");
}

#[tokio::test]
async fn a_platform_is_drained_and_then_uninstalled_and_nothing_is_torn_away() {
    let (platform, manager, tenant) = served().await;
    platform.door("otc").await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("demo").await;
    let place = tenant.workspace.logical_cluster.as_str();
    let drain = DrainArgs { connect: connect(&platform), ..DrainArgs::default() };
    let uninstall = UninstallArgs { connect: connect(&platform), ..UninstallArgs::default() };

    eventually("the cluster and its projection live", async || drain.drain(|_| {}).await.unwrap().counts().get(place) == Some(&2)).await;
    let own = ConnectArgs { kubeconfig: Some(platform.identity().await), workspace: None };
    let seen = DrainArgs { connect: own, ..DrainArgs::default() }.drain(|_| {}).await.unwrap();
    assert_eq!(seen.counts().get(place), Some(&2), "the manager's own identity is enough to look");
    let blind = DrainArgs { endpoints: nowhere(), ..drain.clone() }.drain(|_| {}).await.unwrap_err();
    assert!(format!("{blind:#}").contains("cannot read the bindings behind"), "{blind:#}");
    let refused = uninstall.uninstall().await.unwrap();
    assert!(refused.refused && refused.steps.is_empty(), "{refused}");
    assert!(refused.to_string().contains(&format!("  {place}: 2\n")), "{refused}");
    assert!(
        UninstallArgs { endpoints: nowhere(), ..uninstall.clone() }.uninstall().await.is_err(),
        "what cannot be told is no reason to go on"
    );

    // A tenant unbinds while nobody cleans up: the warning names what its binding waits for.
    manager.stop().await;
    tenant.client().delete(&BINDINGS, "", export::EXPORT).await.unwrap();
    eventually("what the binding waits for is named", async || {
        let warnings = drain.drain(|_| {}).await.unwrap().warnings();
        warnings.iter().any(|line| line.contains(place) && line.contains("kc/default/demo") && line.contains("keep the manager running"))
    })
    .await;
    let manager = platform.manager().await;
    let wait = Some(format!("{}s", SOON.as_secs()).parse().unwrap());
    assert!(DrainArgs { wait: wait.clone(), ..drain.clone() }.drain(|_| {}).await.unwrap().is_empty());

    // Another stays: what it made is deleted only by who says so.
    let other = platform.tenant().await;
    other.provider("otc").await;
    other.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    other.scheduled("demo").await;
    assert_eq!(DrainArgs { wait: Some("1s".parse().unwrap()), ..drain.clone() }.drain(|_| {}).await.unwrap().counts().len(), 1);
    let end = DrainArgs { delete: true, yes: true, wait, ..drain.clone() }.drain(|_| {}).await.unwrap();
    assert!(end.is_empty() && end.warnings().is_empty(), "{end:?}");
    platform.client().find(&EXPORTS, "", export::EXPORT).await.unwrap().expect("draining removes nothing of the platform's");
    manager.stop().await;

    let dry = UninstallArgs { dry_run: true, ..uninstall.clone() }.uninstall().await.unwrap();
    let done = uninstall.uninstall().await.unwrap();
    assert_eq!(dry.steps, done.steps, "a dry run says what is done");
    assert!(done.changes() > 15, "{done}");
    let stays = format!("workspace {} still has the binding", other.workspace.logical_cluster);
    assert!(done.to_string().contains(&stays), "{done}");
    for (kind, name) in [(&EXPORTS, export::EXPORT), (&EXPORTS, &Platform::door_export("otc"))] {
        assert!(platform.client().find(kind, "", name).await.unwrap().is_none(), "{name}");
    }
    let left = platform.client().list(&SCHEMAS, "").await.unwrap();
    assert_eq!(left, Vec::<Value>::new());
    let open = platform.client().get(&WORKSPACE_TYPES, "", "edge-connect").await.unwrap();
    assert!(open["spec"]["defaultAPIBindings"].as_array().is_none_or(Vec::is_empty), "{open}");
    platform.client().list(&MACHINE_TYPES, "").await.expect("the catalog stays");

    eventually("the second time there is nothing to do", async || uninstall.uninstall().await.unwrap().changes() == 0).await;
    let catalog = UninstallArgs { catalog: true, ..uninstall }.uninstall().await.unwrap();
    assert_eq!(catalog.changes(), 3, "{catalog}");
    eventually("the catalog's kinds go with it", async || platform.client().find(&CONFIGS, "", "kcm").await.is_ok_and(|it| it.is_none()))
        .await;
}

#[tokio::test]
async fn a_forced_uninstall_leaves_bindings_that_their_tenants_can_delete() {
    let platform = Platform::new().await;
    let tenant = platform.tenant().await;
    tenant.provider("otc").await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    let uninstall = UninstallArgs { connect: connect(&platform), force: true, ..UninstallArgs::default() };
    let mut forced = uninstall.uninstall().await.unwrap();
    if forced.living.as_ref().is_some_and(drain::Living::is_empty) {
        // A kind that was just bound may not be listed yet.
        forced.living = None;
    }
    assert!(!forced.refused && forced.steps.iter().any(|step| step.outcome == uninstall::Outcome::Removed), "{forced}");
    // No manager ever put a finalizer on it: what stays is the tenant's to delete.
    tenant.client().delete(&BINDINGS, "", export::EXPORT).await.unwrap();
    tenant.client().wait_gone(&BINDINGS, "", export::EXPORT, SOON).await.unwrap();
    eventually("its clusters are gone with it", async || tenant.client().list(&CLUSTERS, "").await.map_or(true, |all| all.is_empty()))
        .await;
}

/// Runs `kcm` as an operator does: its exit code and what it printed.
async fn kcm(platform: &Platform, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_kcm"));
    let kubeconfig = platform.folder().join("admin.kubeconfig");
    let output = command.args(arguments).arg("--kubeconfig").arg(kubeconfig).output().await.unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[tokio::test]
async fn exit_codes_and_json_say_what_a_script_needs() {
    let platform = Platform::new().await;
    let tenant = platform.tenant().await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    eventually("the cluster is seen", async || kcm(&platform, &["drain"]).await.0 == Some(1)).await;
    let (code, text) = kcm(&platform, &["drain", "-o", "json", "--wait", "1s"]).await;
    let living: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &living["drained"], &living["objects"][0]["kind"]), (Some(1), &json!(false), &json!("kc")));
    assert_eq!(living["objects"][0]["workspace"], tenant.workspace.logical_cluster.as_str());
    let (code, text) = kcm(&platform, &["uninstall"]).await;
    assert!(code == Some(1) && text.starts_with("refused: 1 kc and 0 pkc live in 1 workspaces"), "{text}");
    let nowhere = "--endpoint-override=https://=https://127.0.0.1:1/";
    assert_eq!(kcm(&platform, &["drain", nowhere]).await.0, Some(2));
    assert_eq!(kcm(&platform, &["drain", "--delete"]).await.0, Some(2), "not without --yes");
    eventually("all is well", async || kcm(&platform, &["doctor"]).await.0 == Some(0)).await;

    assert_eq!(kcm(&platform, &["drain", "--delete", "--yes", "--wait", "1m"]).await.0, Some(0));
    let (code, text) = kcm(&platform, &["uninstall", "--dry-run"]).await;
    assert!(code == Some(0) && text.contains("delete     apiexport/kubernetes.edge-connect.eu\n"), "{text}");
    assert_eq!(kcm(&platform, &["uninstall"]).await.0, Some(0));
    assert_eq!(kcm(&platform, &["drain"]).await.0, Some(0), "an export that is gone has nobody");
    let (code, text) = kcm(&platform, &["doctor", "-o", "json"]).await;
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(code == Some(1) && report["ok"] == false, "{report}");
}

#[tokio::test]
async fn a_platform_that_is_set_up_again_finds_the_clusters_that_a_forced_uninstall_left() {
    let (platform, manager, tenant) = served().await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    let uid = tenant.scheduled("demo").await["metadata"]["uid"].clone();
    manager.stop().await;
    let identity = |live: &Value| live["status"]["identityHash"].clone();
    let before = identity(&platform.client().get(&EXPORTS, "", export::EXPORT).await.unwrap());
    let uninstall = UninstallArgs { connect: connect(&platform), force: true, ..UninstallArgs::default() };
    let forced = uninstall.uninstall().await.unwrap();
    assert!(!forced.refused && forced.living.unwrap().counts().len() == 1);
    eventually("it is all gone", async || uninstall.uninstall().await.unwrap().changes() == 0).await;

    init::init(&options(&platform)).await.unwrap();
    assert_eq!(identity(&platform.client().get(&EXPORTS, "", export::EXPORT).await.unwrap()), before, "kcp has kept its identity");
    let manager = platform.manager().await;
    eventually("the cluster is the same, and its own manager's again", async || {
        tenant.client().delete(&CLUSTERS, "default", "demo").await.is_ok()
            && tenant
                .client()
                .find(&CLUSTERS, "default", "demo")
                .await
                .is_ok_and(|left| left.is_none_or(|left| left["metadata"]["uid"] != uid))
    })
    .await;
    manager.stop().await;
}
