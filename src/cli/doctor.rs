//! `kcm doctor`: whether everything is there that tenants and the manager need, and what to do where it is not.

pub mod checks;
pub mod claims;
mod rights;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

pub use checks::{Check, Report, Status};

use super::connect::ConnectArgs;
use super::explain::Output;
use super::kcp_admin::{AdminClient, Resource};
use super::print_out;
use super::virtual_workspaces::{EndpointArgs, endpoints};
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
kcp does), and the rights of the identity. A claim that a tenant has rejected is its choice and only noted.

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

/// What is looked at: an export, and the identity that works behind it.
struct Patient {
    export: String,
    namespace: String,
    account: &'static str,
    role: Value,
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
            client.list(&Resource::of(ENDPOINT_SLICE), "").await?;
            Ok::<_, anyhow::Error>(client)
        };
        let client = match reached.await {
            Ok(client) => client,
            Err(error) => {
                report.action("reachable", None, format!("no kcp workspace that this user may read; see --workspace: {error:#}"));
                return Ok(report);
            }
        };
        report.fine("reachable", client.url());
        clock(&client, &mut report).await;
        let claimed = self.export(&client, &patient.export, &mut report).await;
        self.bindings(&client, &patient.export, claimed.as_deref(), &mut report).await;
        let manages = self.provider.is_none() && self.manages(&client).await;
        rights::check(&client, &patient, manages, &mut report).await;
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

    /// The export, its identity and its schemas; returns its claims where it could be read.
    async fn export(&self, client: &AdminClient, name: &str, report: &mut Report) -> Option<Vec<Value>> {
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
        if self.provider.is_none() {
            report.extend(checks::schemas(&live, &manifest::exported()));
            report.extend(claims::offered(&claims));
        } else {
            report.fine("export", format!("export {name} has {} claims", claims.len()));
        }
        Some(claims)
    }

    /// Every endpoint, and every binding behind it.
    async fn bindings(&self, client: &AdminClient, export: &str, claimed: Option<&[Value]>, report: &mut Report) {
        let endpoints = match endpoints(client, export, &self.endpoints).await {
            Ok(Some(endpoints)) => endpoints,
            Ok(None) => {
                return report.action("endpoints", None, format!("export {export} has no endpoint slice: kcp makes it with the export"));
            }
            Err(error) => return report.action("endpoints", None, format!("{error:#}")),
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
                }
                Err(error) => {
                    report.action("endpoints", None, format!("{error:#}; see --endpoint-override if the address is another from here"));
                }
            }
        }
    }

    async fn manages(&self, client: &AdminClient) -> bool {
        let config = client.find(&CONFIGS, "", manifest::samples::PROVIDER_CONFIG).await;
        config.is_ok_and(|config| config.is_some_and(|config| config["spec"]["kcp"]["exports"] == "Manage"))
    }
}

async fn clock(client: &AdminClient, report: &mut Report) {
    match client.server_date().await {
        Ok(Some(date)) => report.extend([checks::clock(&date, jiff::Timestamp::now())]),
        Ok(None) => report.note("clock", None, "the server does not say what time it is".into()),
        Err(error) => report.action("clock", None, error.to_string()),
    }
}
