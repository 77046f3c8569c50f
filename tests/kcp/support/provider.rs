//! The other side of a projection, and what a manager has counted: what tests of its behaviour measure it by.

use std::collections::BTreeMap;

use kcp_provider_runtime::api::manifest::export;
use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource, WORKSPACES};
use serde_json::{Value, json};

use super::kcp;
use super::platform::{Manager, PROJECTIONS, Platform, SOON, Tenant, eventually};

pub(crate) const SLICES: Resource = Resource::new("apis.kcp.io", "v1alpha1", "apiexportendpointslices");

/// What a provider keeps a projection with while machines are taken down.
pub(crate) const MACHINES: &str = "otc.example.org/machines";

impl Platform {
    /// The export's owner in one tenant's workspace, through the virtual workspace: whom the maximal permission policy does not bind.
    pub(crate) async fn inside(&self, tenant: &Tenant) -> AdminClient {
        let url = |slice: &Value| slice.pointer("/status/endpoints/0/url").and_then(Value::as_str).map(ToOwned::to_owned);
        let has_url = |slice: &Value| url(slice).is_some();
        let slice = self.client().wait_for(&SLICES, "", export::EXPORT, "to have a URL", SOON, has_url).await.unwrap();
        self.client().at_url(&format!("{}/clusters/{}", url(&slice).unwrap(), tenant.workspace.logical_cluster)).unwrap()
    }
}

impl Tenant {
    /// Lets the provider keep the projection, or let it go.
    pub(crate) async fn keep_projection(&self, inside: &AdminClient, name: &str, keep: bool) {
        let finalizers = if keep { json!([MACHINES]) } else { Value::Null };
        eventually("the provider may write the projection", async || {
            inside.patch(&PROJECTIONS, "default", name, &json!({"metadata": {"finalizers": finalizers}})).await.is_ok()
        })
        .await;
    }

    /// Waits until the projection is deleted but kept by the provider, and returns it.
    pub(crate) async fn leaving_projection(&self, name: &str) -> Value {
        let leaving = |projection: &Value| projection["metadata"]["deletionTimestamp"].is_string();
        self.client().wait_for(&PROJECTIONS, "default", name, "to be deleted", SOON, leaving).await.unwrap()
    }

    /// The name of this workspace below `root`.
    pub(crate) async fn name(&self) -> String {
        let all = kcp().await.admin.list(&WORKSPACES, "").await.unwrap();
        let mine = all.iter().find(|workspace| workspace["spec"]["cluster"] == self.workspace.logical_cluster.as_str());
        mine.and_then(|workspace| workspace["metadata"]["name"].as_str()).expect("a workspace of its own").to_owned()
    }
}

impl Manager {
    /// Requests of reconcilers so far, by verb and status.
    pub(crate) fn requests(&self) -> BTreeMap<(String, u16), u64> {
        self.counted("requests")
    }

    /// Lists and watches so far, by verb and status.
    pub(crate) fn streamed(&self) -> BTreeMap<(String, u16), u64> {
        self.counted("stream_requests")
    }

    /// A size, as it was at the last reading.
    pub(crate) fn size(&self, name: &str) -> i64 {
        let text = self.handle.metrics().text();
        let value = text.lines().find_map(|line| line.strip_prefix(&format!("kcp_provider_{name} ")));
        value.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    /// Waits until nothing of any workspace is left here.
    pub(crate) async fn forgets(&self) {
        eventually("the manager forgets the workspace", async || self.size("workspaces") == 0 && self.size("objects") == 0).await;
    }

    fn counted(&self, name: &str) -> BTreeMap<(String, u16), u64> {
        let text = self.handle.metrics().text();
        let lines = text.lines().filter_map(|line| line.strip_prefix(&format!("kcp_provider_{name}_total{{verb=\"")));
        lines
            .map(|line| {
                let (verb, rest) = line.split_once("\",code=\"").unwrap();
                let (code, count) = rest.split_once("\"} ").unwrap();
                ((verb.to_owned(), code.parse().unwrap()), count.parse().unwrap())
            })
            .collect()
    }
}
