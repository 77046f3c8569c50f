//! `kcm explain` on a server: it says what the manager says.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use std::path::Path;

use serde_json::Value;
use tokio::process::Command;

use crate::support::platform::{MACHINE_TYPES, OFFERINGS, Platform, Tenant, condition, eventually, served};

/// The exit code, the standard output and the standard error of `kcm explain` as the administrator of the provider workspace.
async fn explain(kubeconfig: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kcm"));
    let command = command.arg("explain").args(arguments).arg("--kubeconfig").arg(kubeconfig).env_remove("RUST_LOG").kill_on_drop(true);
    let output = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Explains a tenant's cluster and expects that nothing stands against the answer.
async fn entry(kubeconfig: &Path, tenant: &Tenant, name: &str) -> (i32, Value) {
    let workspace = tenant.workspace.logical_cluster.as_str();
    let (code, out, err) = explain(kubeconfig, &[name, "-n", "default", "--workspace", workspace, "-o", "json"]).await;
    assert_eq!(err, "", "{name}");
    let Value::Array(mut entries) = serde_json::from_str(&out).unwrap() else { panic!("no array: {out}") };
    assert_eq!(entries.len(), 1);
    (code, entries.remove(0))
}

#[tokio::test]
async fn an_explanation_agrees_with_the_condition_that_the_manager_wrote() {
    let (platform, manager, tenant) = served().await;
    tenant.order("served", "eu-de", "1.34.2", "8", "16Gi").await;
    tenant.order("huge", "eu-de", "1.34.2", "64", "16Gi").await;
    tenant.scheduled("served").await;
    tenant.wait("huge", "Scheduled", "False", "CapabilityMismatch").await;
    // A smaller type appears: the live pool keeps its own, which only its projection can tell.
    platform.machine_type("m-8-16", "8", "16Gi", &["eu-de"]).await;
    platform.offering("otc-standard", "otc", &["eu-de"], &["1.34.2"], &["m-4-16", "m-8-16", "m-8-32"]).await;
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("operator.kubeconfig");
    platform.client().write_kubeconfig(&kubeconfig).unwrap();

    for (name, code) in [("served", 0), ("huge", 1)] {
        let (exit, entry) = entry(&kubeconfig, &tenant, name).await;
        let cluster = tenant.cluster(name).await;
        let written = condition(&cluster, "Scheduled").unwrap();
        assert_eq!((&entry["reason"], &entry["message"]), (&written["reason"], &written["message"]), "{name}");
        assert_eq!(exit, code, "{name}");
        assert_eq!(entry["provider"], cluster["spec"]["providerRef"]["name"], "{name}");
        if let Some(projection) = tenant.projection(name).await {
            assert_eq!(entry["nodePools"][0]["type"], projection["spec"]["nodePools"][0]["type"], "{name}");
            assert_eq!(entry["nodePools"][0]["type"], "m-8-32");
        }
    }
    manager.stop().await;
}

#[tokio::test]
async fn an_explanation_that_cannot_be_had_says_what_to_do() {
    let platform = Platform::new().await;
    let tenant = platform.tenant().await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("operator.kubeconfig");
    platform.client().write_kubeconfig(&kubeconfig).unwrap();
    let (workspace, provider) = (tenant.workspace.logical_cluster.as_str(), platform.workspace.logical_cluster.as_str());

    for kind in [&OFFERINGS, &MACHINE_TYPES] {
        eventually("the catalog's kinds are served", async || platform.client().list(kind, "").await.is_ok()).await;
    }

    // No manager runs here.
    let (code, out, err) = explain(&kubeconfig, &["demo", "--workspace", workspace]).await;
    assert_eq!(code, 1, "{err}");
    assert!(out.starts_with("default/demo: not schedulable, OfferingNotFound\n"), "{out}");
    assert!(err.contains("has no condition Scheduled yet"), "{err}");

    for (arguments, says) in [
        (["dmeo", "--workspace", workspace].as_slice(), format!("no cluster default/dmeo in workspace {workspace}; it has default/demo")),
        (&["demo", "--workspace", provider], "bind the export there with `kcm bind --workspace root:provider-".to_owned()),
        (&["demo", "--workspace", "root:none"], "workspace root:none: there is no such workspace, or the user may not read it".to_owned()),
        (
            &["demo", "--workspace", workspace, "--provider-workspace", workspace],
            "it is no provider workspace, or kcm init has not run; see --provider-workspace".to_owned(),
        ),
        (&["demo", "--workspace", "root/none"], "--workspace cannot be \"root/none\"".to_owned()),
    ] {
        let (code, out, err) = explain(&kubeconfig, arguments).await;
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains(&says), "{arguments:?}: {says:?} is not in {err}");
    }
}
