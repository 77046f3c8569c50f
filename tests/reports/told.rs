//! What tests about Kubernetes Events do over and over.

use kcp_provider_runtime::api::condition::ConditionStatus::False;
use kcp_provider_runtime::api::manifest::samples;
use kcp_provider_runtime::api::tenant::KubernetesCluster;
use kcp_provider_runtime::kit::{Sent, Workspace, World};
use serde_json::Value;

/// A cluster of which nobody offers the version.
pub(crate) fn unserved(name: &str, version: &str) -> Value {
    let mut cluster = samples::tenant()[1].clone();
    cluster["metadata"]["name"] = name.into();
    cluster["spec"]["version"] = version.into();
    cluster
}

/// Waits until such a cluster is told so, for its spec as it is now.
pub(crate) async fn refused(workspace: &Workspace, name: &str) {
    workspace.condition::<KubernetesCluster>(name, "Scheduled", False, "OfferingNotFound").await;
}

/// What was asked about events.
pub(crate) fn asked(world: &World) -> Vec<Sent> {
    world.requests().into_iter().filter(|sent| sent.target.contains("/api/v1/namespaces/") && sent.target.contains("/events")).collect()
}

/// The same as verbs and codes.
pub(crate) fn codes(world: &World) -> Vec<(&'static str, u16)> {
    asked(world).iter().map(|sent| (sent.verb, sent.code)).collect()
}

/// The one event about a cluster.
pub(crate) async fn only(workspace: &Workspace, name: &str) -> Value {
    let all = workspace.events::<KubernetesCluster>(name).await;
    let [event] = <[Value; 1]>::try_from(all).unwrap_or_else(|all| panic!("{} events: {all:#?}", all.len()));
    event
}
