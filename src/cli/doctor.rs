//! `kcm doctor`: whether everything is there that tenants and the manager need, and what to do where it is not.

pub mod access;
pub mod checks;
pub mod claims;
mod rights;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

pub use checks::{Check, Report, Status};
use rights::Who;

use super::connect::ConnectArgs;
use super::explain::Output;
use super::kcp_admin::{AdminClient, Resource};
use super::print_out;
use super::virtual_workspaces::{EndpointArgs, endpoints, workspace_of};
use crate::api::kcp::ENDPOINT_SLICE;
use crate::api::manifest::door::{CONTROLLER, Door};
use crate::api::manifest::{export, rbac};
use crate::api::{config, manifest};

const EXPORTS: Resource = Resource::new("apis.kcp.io", "v1alpha2", "apiexports");
const CONFIGS: Resource = Resource::new(config::GROUP, "v1alpha1", "providerconfigs");

/// Check a provider workspace before the manager starts, or when something is wrong; changes nothing
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "Examples:
  kcm doctor --workspace root:provider                           as its administrator: everything
  kcm doctor --workspace root:provider -o json
  kcm doctor --workspace root:provider --provider otc            the door of a provider
  kcm doctor --kubeconfig kcm.kubeconfig --workspace root:provider
                                                                 as the manager: what it sees, and its own rights

Looks at: reachability, clocks, the export with its identity, the endpoints, each binding with each claim (verbs are compared word by word, as
kcp does), the rights of the identity, and, where the export asks for access, which way it has to tokens in workspaces. A claim that a tenant has
rejected is its choice and only noted.

Exit code: 0 nothing needs action, 1 something does: it is named.")]
pub struct DoctorArgs {
    /// The provider workspace, and as whom it is looked at.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// How the endpoints are reached.
    #[command(flatten)]
    pub endpoints: EndpointArgs,
    /// Look at this provider's door instead
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Text for people, or JSON for programs
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
}

/// Workspaces whose server is asked about access, one request each: more of them say the same in every platform that was set up by one hand.
const ASKED: usize = 8;

/// What is looked at: an export, and the identity that works behind it.
struct Patient {
    export: String,
    namespace: String,
    account: &'static str,
    role: Value,
}

impl Patient {
    /// The identity that `kcm init` issues, as the server names it.
    fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.account)
    }

    fn groups(&self) -> [String; 3] {
        ["system:serviceaccounts".into(), format!("system:serviceaccounts:{}", self.namespace), "system:authenticated".into()]
    }
}

impl DoctorArgs {
    /// Prints the checks.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let report = self.examine().await?;
        let text = match self.output {
            Output::Text => report.to_string(),
            Output::Json => format!("{}\n", serde_json::to_string_pretty(&report.to_value())?),
        };
        print_out(&text).context("cannot print the checks")?;
        Ok(if report.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Looks at everything, and goes on where it can after something is wrong.
    ///
    /// # Errors
    /// When the provider's name is none; everything else is a check.
    pub async fn examine(&self) -> anyhow::Result<Report> {
        let patient = self.patient()?;
        let mut report = Report::default();
        let reached = async {
            let client = self.connect.client().await?;
            // The manager may read it and little else; a workspace that is not there refuses it.
            let slices = client.list(&Resource::of(ENDPOINT_SLICE), "").await?;
            let home = slices.first().map(|slice| workspace_of(slice).to_owned());
            Ok::<_, anyhow::Error>((client, home.unwrap_or_default()))
        };
        let (client, home) = match reached.await {
            Ok(client) => client,
            Err(error) => {
                report.action("reachable", None, format!("no kcp workspace that this user may read; see --workspace: {error:#}"));
                return Ok(report);
            }
        };
        report.fine("reachable", client.url());
        clock(&client, &mut report).await;
        let export = self.export(&client, &patient.export, &mut report).await;
        let claimed = export.as_ref().map(|export| export["spec"]["permissionClaims"].as_array().cloned().unwrap_or_default());
        let bindings = self.bindings(&client, &patient.export, claimed.as_deref(), &mut report).await;
        let manages = self.provider.is_none() && self.manages(&client).await;
        let who = rights::check(&client, &patient, manages, &mut report).await;
        let claimed = claimed.or_else(|| access::shown(&bindings));
        report.extend([access::of_export(&patient.export, claimed.as_deref())]);
        if claimed.is_some_and(|claimed| access::offer(&claimed) == access::Offer::Whole) {
            ways(&client, &patient, (&home, who), &bindings, &mut report).await;
        }
        Ok(report)
    }

    fn patient(&self) -> anyhow::Result<Patient> {
        let Some(provider) = &self.provider else {
            let [role, _] = rbac::manager();
            return Ok(Patient { export: export::EXPORT.into(), namespace: rbac::MANAGER_NAMESPACE.into(), account: rbac::MANAGER, role });
        };
        let door = Door::new(provider, "").map_err(anyhow::Error::msg)?;
        let role = door.roles().into_iter().next().unwrap_or_default();
        Ok(Patient { export: door.export_name(), namespace: door.namespace(), account: CONTROLLER, role })
    }

    /// The export, its identity, its schemas and what it claims; returns it where it could be read.
    async fn export(&self, client: &AdminClient, name: &str, report: &mut Report) -> Option<Value> {
        let live = match client.find(&EXPORTS, "", name).await {
            Ok(Some(live)) => live,
            Ok(None) => {
                report.action("export", None, format!("there is no export {name}: kcm init makes it"));
                return None;
            }
            Err(error) if error.is_forbidden() => {
                report.note("export", None, format!("this user may not read export {name}; its claims are not compared"));
                return None;
            }
            Err(error) => {
                report.action("export", None, format!("cannot read export {name}: {error}"));
                return None;
            }
        };
        match live["status"]["identityHash"].as_str().filter(|hash| !hash.is_empty()) {
            Some(hash) => report.fine("identity", format!("export {name} has the identity {hash}")),
            None => {
                report.action(
                    "identity",
                    None,
                    format!("export {name} has no identity yet: is its Secret in kcp-system readable for kcp?"),
                );
            }
        }
        let claims = live["spec"]["permissionClaims"].as_array().cloned().unwrap_or_default();
        let Some(provider) = &self.provider else {
            report.extend(checks::schemas(&live, &manifest::exported()));
            report.extend(claims::offered(&claims, &export::claims()));
            return Some(live);
        };
        report.fine("export", format!("export {name} has {} claims", claims.len()));
        // Which export the projections are of, is the door's own word.
        let hash = claims.iter().find_map(|claim| claim["identityHash"].as_str()).unwrap_or_default();
        report.extend(claims::offered(&claims, &Door::new(provider, hash).map(|door| door.claims()).unwrap_or_default()));
        Some(live)
    }

    /// Every endpoint, and every binding behind it; returns those that were seen.
    async fn bindings(&self, client: &AdminClient, export: &str, claimed: Option<&[Value]>, report: &mut Report) -> Vec<Value> {
        let mut seen = Vec::new();
        let endpoints = match endpoints(client, export, &self.endpoints).await {
            Ok(Some(endpoints)) => endpoints,
            Ok(None) => {
                report.action("endpoints", None, format!("export {export} has no endpoint slice: kcp makes it with the export"));
                return seen;
            }
            Err(error) => {
                report.action("endpoints", None, format!("{error:#}"));
                return seen;
            }
        };
        if endpoints.is_empty() {
            report.note("endpoints", None, format!("nobody binds export {export} yet"));
        }
        for endpoint in endpoints {
            match endpoint.bindings().await {
                Ok(bindings) => {
                    report.fine("endpoints", format!("{}: {} bindings", endpoint.url, bindings.len()));
                    for binding in &bindings {
                        report.extend(checks::binding(binding));
                        report.extend(claims::answered(claimed.unwrap_or_default(), binding));
                    }
                    seen.extend(bindings);
                }
                Err(error) => {
                    report.action("endpoints", None, format!("{error:#}; see --endpoint-override if the address is another from here"));
                }
            }
        }
        seen
    }

    async fn manages(&self, client: &AdminClient) -> bool {
        let config = client.find(&CONFIGS, "", manifest::samples::PROVIDER_CONFIG).await;
        config.is_ok_and(|config| config.is_some_and(|config| config["spec"]["kcp"]["exports"] == "Manage"))
    }
}

/// Which way tokens come in the workspaces that accept access.
async fn ways(client: &AdminClient, patient: &Patient, (home, who): (&str, Who), bindings: &[Value], report: &mut Report) {
    let admitting: Vec<&Value> = bindings.iter().filter(|binding| access::admits(binding)).collect();
    let name = if who == Who::Oneself { "this user".to_owned() } else { patient.user() };
    for binding in admitting.iter().take(ASKED) {
        let asked = async { rights::may_ask_for_tokens(&client.in_workspace(workspace_of(binding))?, patient, home, who).await };
        let may = asked.await.map_err(|error| error.to_string());
        report.extend([access::of_workspace(binding, &name, may)]);
    }
    report.extend(access::of_others(ASKED, admitting.len()));
}

async fn clock(client: &AdminClient, report: &mut Report) {
    match client.server_date().await {
        Ok(Some(date)) => report.extend([checks::clock(&date, jiff::Timestamp::now())]),
        Ok(None) => report.note("clock", None, "the server does not say what time it is".into()),
        Err(error) => report.action("clock", None, error.to_string()),
    }
}
