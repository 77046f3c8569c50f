//! `kcm dev --serve-only`: the embedded control plane alone, for `kubectl` and for providers in any language.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use kube::config::Kubeconfig;
use serde::Serialize;
use tempfile::NamedTempFile;

use super::kubeconfig::contexts;
use super::plane::Plane;
use super::run::{log_to, stop_on_signals};
use super::{DevArgs, Output};
use crate::api::names::LogicalCluster;
use crate::cli::kcp_admin::AdminClient;
use crate::cli::print_out;
use crate::embedded::ADMIN;

/// What is served, as a program reads it: one line once everything is there.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Served {
    /// The server without a workspace.
    url: String,
    /// The administrator's, with a context for each workspace; that of `root` is current.
    kubeconfig: PathBuf,
    workspaces: Vec<Workspace>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Workspace {
    /// Such as `root:team-a`.
    path: String,
    /// The name of the logical cluster, as objects and virtual workspaces have it.
    logical_cluster: LogicalCluster,
    /// The kubeconfig's context of this workspace: its path without `root:`.
    context: String,
}

/// Serves until a signal, then removes everything, the kubeconfig included.
pub(super) async fn run(args: DevArgs, log_json: bool) -> anyhow::Result<()> {
    let stop = stop_on_signals()?;
    let plane = Plane::embedded(args.port).await?;
    log_to(&plane.file("kcm.log"), log_json)?;
    let outcome = match stop.run_until_cancelled(serve(&args, &plane)).await {
        Some(Ok(served)) => {
            let said = say(args.output, &served);
            if said.is_ok() {
                stop.cancelled().await;
            }
            // After a `kubectl config use-context` it is another text, and still only leads here. One that stays is no error: it leads nowhere.
            if let Some(file) = args.write_kubeconfig.filter(|file| leads_only_to(file, &format!("{}/", plane.url()))) {
                let _ = std::fs::remove_file(file);
            }
            said
        }
        Some(Err(error)) => Err(error),
        None => Ok(()),
    };
    plane.stop().await?;
    outcome
}

/// Makes the workspaces, then the kubeconfig.
async fn serve(args: &DevArgs, plane: &Plane) -> anyhow::Result<Served> {
    if let Some(file) = args.write_kubeconfig.as_ref().filter(|file| file.exists() && !leads_only_to(file, "https://127.0.0.1:")) {
        bail!("{} is there already and leads elsewhere: give another file", file.display());
    }
    let admin = plane.admin().await?;
    let mut workspaces = Vec::new();
    for path in &args.workspaces {
        let made = workspace(&admin, path).await?;
        // Named twice, it is still one context.
        if !workspaces.iter().any(|known: &Workspace| known.path == made.path) {
            workspaces.push(made);
        }
    }
    let mut all = vec![("root".to_owned(), "root".to_owned())];
    all.extend(workspaces.iter().map(|workspace| (workspace.context.clone(), workspace.path.clone())));
    let read = Kubeconfig::read_from(plane.admin_kubeconfig())?;
    let kubeconfig = contexts(&read, &plane.url(), &all).context("the administrator's kubeconfig has no current context")?;
    let text = format!("{}\n", serde_json::to_string_pretty(&kubeconfig)?);
    let file = args.write_kubeconfig.clone().unwrap_or_else(|| plane.file("dev.kubeconfig"));
    write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    let file = std::path::absolute(&file)?;
    Ok(Served { url: plane.url(), kubeconfig: file, workspaces })
}

/// Makes a workspace and those above it.
async fn workspace(admin: &AdminClient, given: &str) -> anyhow::Result<Workspace> {
    let context = given.strip_prefix("root:").unwrap_or(given);
    if context.is_empty() || context == "root" || context.split(':').any(str::is_empty) {
        bail!("--workspace takes a path below root such as team-a or root:org:team-a, not {given:?}");
    }
    let mut path = "root".to_owned();
    let mut logical_cluster = LogicalCluster::new(&*path);
    for name in context.split(':') {
        logical_cluster = admin.create_workspace(&path, name).await?;
        path = format!("{path}:{name}");
    }
    Ok(Workspace { path, logical_cluster, context: context.to_owned() })
}

/// Puts a file there whole and readable by its owner only: who waits for it never reads a part of it.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut written = NamedTempFile::new_in(folder)?;
    written.write_all(text.as_bytes())?;
    written.persist(file)?;
    Ok(())
}

/// Whether a kubeconfig leads to nothing but embedded control planes whose URLs begin so, as their only administrator.
fn leads_only_to(file: &Path, beginning: &str) -> bool {
    let Ok(Kubeconfig { clusters, auth_infos, .. }) = Kubeconfig::read_from(file) else { return false };
    let leads = |server: Option<&str>| server.is_some_and(|server| server.starts_with(beginning));
    clusters.iter().all(|named| leads(named.cluster.as_ref().and_then(|cluster| cluster.server.as_deref())))
        && auth_infos.len() == 1
        && auth_infos[0].name == ADMIN
}

fn say(output: Output, served: &Served) -> anyhow::Result<()> {
    let text = match output {
        Output::Json => format!("{}\n", serde_json::to_string(served)?),
        Output::Table => text(served),
    };
    Ok(print_out(&text)?)
}

fn text(served: &Served) -> String {
    let Served { url, kubeconfig, workspaces } = served;
    let kubeconfig = kubeconfig.display();
    let mut text = format!("the control plane serves {url}; its administrator's kubeconfig is {kubeconfig}\n");
    // Writing to a `String` does not fail.
    for Workspace { path, logical_cluster, context } in workspaces {
        let _ = writeln!(text, "workspace {path}: context {context}, logical cluster {logical_cluster}");
    }
    let _ = writeln!(text, "try in another terminal:\n  export KUBECONFIG={kubeconfig}\n  kubectl get workspaces");
    if let (Some(first), Some(last)) = (workspaces.first(), workspaces.last()) {
        let _ = writeln!(text, "  kubectl --context {} api-resources\n  kcm init --workspace {}", last.context, first.path);
    } else {
        text.push_str("  kubectl create -f - <<< '{\"apiVersion\": \"tenancy.kcp.io/v1alpha1\", \"kind\": \"Workspace\", \"metadata\": {\"name\": \"team-a\"}}'\n");
    }
    text.push_str("Ctrl-C ends and removes everything\n");
    text
}
