//! `kcm bind`: the `APIBinding` that a tenant applies.

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;

use super::connect::ConnectArgs;
use super::kcp_admin::{AdminError, Resource};
use super::print_out;
use crate::api::manifest::door::Door;
use crate::api::manifest::export::{self, Claim};
use crate::api::manifest::{binding, files, rbac};

const EXPORTS: Resource = Resource::new("apis.kcp.io", "v1alpha2", "apiexports");
const BINDINGS: Resource = Resource::new("apis.kcp.io", "v1alpha2", "apibindings");

/// Print the binding that a tenant applies in its workspace, accepting exactly what the export asks
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "Examples:
  kcm bind --workspace root:provider | kubectl apply -f -                  with kubectl in the tenant's workspace
  kcm bind --workspace root:provider --provider otc | kubectl apply -f -   also let provider otc in
  kcm bind --workspace root:provider --direct-writes kcm-prod | kubectl apply -f -
                                                                           also let the manager write past the virtual workspace

A tenant may not read the export of another's workspace. Then --workspace must be its path, and the claims are those of this version of kcm;
for a provider's door the kubeconfig must lead to the tenant's workspace, and the first binding be there.

An export with a disconnect guard claims admission policies: in a workspace that accepts them, the manager refuses to delete this binding while
clusters live there. To do without, take both claims out of what is printed, or say state: Rejected.")]
pub struct BindArgs {
    #[command(flatten)]
    /// The provider workspace, and as whom its export is read.
    pub connect: ConnectArgs,
    /// Bind this provider's door instead
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Where the export cannot be read: also accept what its disconnect guard claims, if it has one. Where it can, what it claims is accepted
    #[arg(long, conflicts_with = "provider")]
    pub disconnect_guard: bool,
    /// Also print the role that lets this user, whom kcp takes the manager for, write to the workspace directly; the operator says which user
    #[arg(long, value_name = "USER", conflicts_with = "provider")]
    pub direct_writes: Option<String>,
}

impl BindArgs {
    /// Prints the binding as YAML; on standard error a warning where the export itself could not be read.
    pub async fn run(self) -> anyhow::Result<()> {
        let Bound { binding, warning } = self.binding().await?;
        if let Some(warning) = warning {
            eprintln!("Warning: {warning}");
        }
        let access = self.direct_writes.as_deref().map(rbac::direct_access).into_iter().flatten();
        let documents: Vec<String> = std::iter::once(binding).chain(access).map(|object| files::yaml(&object)).collect();
        print_out(&documents.join("---\n")).context("cannot print the binding")
    }

    /// The binding that accepts what the export claims.
    ///
    /// A user who may not read the export gets the claims that this version would give it. Fails where there is no export, and where the path
    /// or a door's identity can only be read by somebody else.
    pub async fn binding(&self) -> anyhow::Result<Bound> {
        let door = self.provider.as_deref().map(|provider| Door::new(provider, "").map_err(anyhow::Error::msg)).transpose()?;
        let name = door.as_ref().map_or_else(|| export::EXPORT.to_owned(), Door::export_name);
        match self.read(&name).await {
            Ok((path, claims)) => Ok(Bound { binding: binding::binding(&path, &name, &claims), warning: None }),
            Err(error) if error.downcast_ref().is_some_and(AdminError::is_forbidden) => self.unread(&name, error).await,
            Err(error) => Err(error),
        }
    }

    /// The path and the claims, as the provider workspace has them.
    async fn read(&self, export: &str) -> anyhow::Result<(String, Vec<Value>)> {
        let connection = self.connect.connect().await?;
        let live = connection.client.get(&EXPORTS, "", export).await.map_err(|error| {
            let missing = error.is_not_found();
            let error = anyhow::Error::new(error);
            if missing { error.context("there is no export to bind; kcm init makes it") } else { error }
        })?;
        Ok((connection.path, live["spec"]["permissionClaims"].as_array().cloned().unwrap_or_default()))
    }

    async fn unread(&self, export: &str, refusal: anyhow::Error) -> anyhow::Result<Bound> {
        let Some(path) = self.connect.workspace.as_ref().filter(|path| path.contains(':')) else {
            return Err(
                refusal.context("say the provider workspace's path with --workspace, such as root:provider, to bind without reading it")
            );
        };
        let claims = match &self.provider {
            None if self.disconnect_guard => [export::claims(), export::guard_claims()].concat(),
            None => export::claims(),
            Some(provider) => Door::new(provider, &self.identity_hash().await?).map_err(anyhow::Error::msg)?.claims(),
        };
        let claims: Vec<Value> = claims.iter().map(Claim::to_value).collect();
        let warning = format!(
            "this user may not read export {export} in {path}, so these are the claims of this version of kcm; \
             if the binding does not become Bound, ask the platform's operator whether the path is right"
        );
        Ok(Bound { binding: binding::binding(path, export, &claims), warning: Some(warning) })
    }

    /// The identity of the bound kinds, which a tenant can read from its own binding.
    async fn identity_hash(&self) -> anyhow::Result<String> {
        let own = ConnectArgs { workspace: None, ..self.connect.clone() }.client().await?;
        let bindings = own.list(&BINDINGS, "").await.context("a provider's door is bound in the tenant's workspace")?;
        // By its reference: a workspace type gives its bindings names of their own.
        let bound =
            bindings.iter().find(|binding| binding["spec"]["reference"]["export"]["name"] == export::EXPORT).with_context(|| {
                format!("a provider's door is bound after the export: the workspace of the kubeconfig, {}, has no binding of it", own.url())
            })?;
        let resources = bound["status"]["boundResources"].as_array().into_iter().flatten();
        let hash = resources.filter_map(|resource| resource["schema"]["identityHash"].as_str()).find(|hash| !hash.is_empty());
        let Some(hash) = hash else { bail!("the binding of {} in {} is not Bound yet; try again in a moment", export::EXPORT, own.url()) };
        Ok(hash.to_owned())
    }
}

/// What a tenant applies.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The `APIBinding`.
    pub binding: Value,
    /// What to know about it, where it was made without reading the export.
    pub warning: Option<String>,
}
