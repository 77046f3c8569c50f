//! What an export's virtual workspaces show to whoever may read its content: the bindings, and the bound kinds in every workspace.
//!
//! All of it or an error: who decides on what is not there must have looked behind every endpoint.

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

use super::kcp_admin::{AdminClient, AdminError, Resource};
use super::run::replacement;
use crate::api::kcp::{BINDING, ENDPOINT_SLICE};

/// How the endpoints of an export are reached.
#[derive(Args, Clone, Debug, Default)]
pub struct EndpointArgs {
    /// Replaces a prefix of the endpoint URLs that kcp publishes, where they cannot be reached from here. May be given several times
    #[arg(long, value_name = "FROM=TO", value_parser = replacement)]
    pub endpoint_override: Vec<(String, String)>,
}

/// The virtual workspace of an export on one shard.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its URL, after the overrides.
    pub url: String,
    all: AdminClient,
}

/// The endpoints in the slice of an export, in its order; `None` without a slice. An export that nobody binds has a slice with none.
///
/// # Errors
/// When the slice cannot be read, or an endpoint is no URL.
pub async fn endpoints(client: &AdminClient, export: &str, args: &EndpointArgs) -> anyhow::Result<Option<Vec<Endpoint>>> {
    let slice = client.find(&Resource::of(ENDPOINT_SLICE), "", export).await;
    let Some(slice) = slice.with_context(|| format!("cannot read the endpoint slice of export {export}"))? else { return Ok(None) };
    let published = slice["status"]["endpoints"].as_array().into_iter().flatten().filter_map(|endpoint| endpoint["url"].as_str());
    let endpoints = published.map(|url| {
        let url = url.trim_end_matches('/');
        let replaced =
            args.endpoint_override.iter().find_map(|(from, to)| url.strip_prefix(from.as_str()).map(|rest| format!("{to}{rest}")));
        let url = replaced.unwrap_or_else(|| url.to_owned());
        Ok(Endpoint { all: client.at_url(&format!("{url}/clusters/*"))?, url })
    });
    endpoints.collect::<anyhow::Result<_>>().map(Some)
}

impl Endpoint {
    /// The bindings of this export on the shard, in every phase.
    pub async fn bindings(&self) -> anyhow::Result<Vec<Value>> {
        self.all.list(&Resource::of(BINDING), "").await.with_context(|| format!("cannot read the bindings behind {}", self.url))
    }

    /// The objects of a bound kind in every workspace on the shard; `bindings` are those of [`Self::bindings`], read before.
    ///
    /// kcp serves a kind where somebody has bound it: a 404 says that there is none only as long as no binding is Bound.
    pub async fn objects(&self, kind: &Resource, bindings: &[Value]) -> anyhow::Result<Vec<Value>> {
        let bound = bindings.iter().any(|binding| binding["status"]["phase"] == "Bound");
        match self.all.list(kind, "").await {
            Err(error) if error.is_not_found() && !bound => Ok(Vec::new()),
            listed => listed.with_context(|| format!("cannot read the {} behind {}", kind.plural, self.url)),
        }
    }

    /// The same user in one workspace on the shard.
    pub fn workspace(&self, logical_cluster: &str) -> Result<AdminClient, AdminError> {
        self.all.at_url(&format!("{}/clusters/{logical_cluster}", self.url))
    }
}

/// The logical cluster that an object came from.
pub fn workspace_of(object: &Value) -> &str {
    object["metadata"]["annotations"]["kcp.io/cluster"].as_str().unwrap_or_default()
}
