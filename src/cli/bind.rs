//! `kcm bind`: the `APIBinding` that a tenant applies.

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

use super::connect::ConnectArgs;
use super::kcp_admin::Resource;
use crate::api::manifest::door::Door;
use crate::api::manifest::{binding, export, files};

/// Print the binding that a tenant applies in its workspace, accepting exactly what the export asks
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "Examples:
  kcm bind --workspace root:provider | kubectl apply -f -                  with kubectl in the tenant's workspace
  kcm bind --workspace root:provider --provider otc | kubectl apply -f -   also let provider otc in")]
pub struct BindArgs {
    #[command(flatten)]
    /// The provider workspace, and as whom its export is read.
    pub connect: ConnectArgs,
    /// Bind this provider's door instead
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
}

impl BindArgs {
    /// Reads the export and prints the binding as YAML.
    pub async fn run(self) -> anyhow::Result<()> {
        let connection = self.connect.connect().await?;
        let export = match &self.provider {
            Some(provider) => Door::new(provider, "").map_err(anyhow::Error::msg)?.export_name(),
            None => export::EXPORT.to_owned(),
        };
        let exports = Resource::new("apis.kcp.io", "v1alpha2", "apiexports");
        let live = connection.client.get(&exports, "", &export).await.context("there is no export to bind; kcm init makes it")?;
        let claims: Vec<Value> = live["spec"]["permissionClaims"].as_array().cloned().unwrap_or_default();
        print!("{}", files::yaml(&binding::binding(&connection.path, &export, &claims)));
        Ok(())
    }
}
