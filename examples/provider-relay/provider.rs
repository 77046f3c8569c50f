//! All that a provider team writes: what is made for a relay, how far it is, and what has to go before it may.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kcp_provider_runtime::api::meta::{Kind, Meta};
use kcp_provider_runtime::api::names::ObjectName;
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::reconciler::{
    AccessRule, Actor, CallError, Context, Deletion, Event, Inputs, Kubeconfig, Recheck, Reconciler, Removal, Report, ReportedCondition,
    WorkloadClient,
};
use serde_json::{Value, json};

use super::kinds::{Deployment, Relay, RelayConfig, Secret};

/// Where workers are on every workload cluster.
pub(crate) const NAMESPACE: &str = "relays";
const READY: &str = "Ready";
const STARTING: Reason = Reason::Custom("WorkerStarting");
const UNKNOWN: Reason = Reason::Custom("VersionUnknown");
/// How often a worker that starts is looked at: nothing tells us of what happens on a workload cluster.
const LOOK: Duration = Duration::from_secs(5);

/// Runs a worker on a workload cluster for each relay, with the kubeconfig of the workspace that it was ordered in.
pub(crate) struct Relays;

impl Relays {
    pub(crate) fn new(inputs: &mut Inputs<Relay>) -> Self {
        inputs.workload();
        inputs.kubeconfig([AccessRule::new("", &["configmaps"], &["get", "list", "watch", "create", "update", "delete"])]);
        Self
    }
}

/// The name of everything that is made for a relay: no other relay of any tenant ever has it.
pub(crate) fn name(relay: &Relay) -> ObjectName {
    ObjectName::namespaced(NAMESPACE, format!("relay-{}", relay.metadata.uid()))
}

fn metadata(ctx: &Context<RelayConfig>, relay: &Relay) -> Meta {
    let name = name(relay);
    let labels = [("relays.example.org/tenant", ctx.identity.as_str()), ("app.kubernetes.io/name", "relay")];
    let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    Meta { name: name.name.to_string(), namespace: Some(name.namespace.clone()), labels, ..Meta::default() }
}

/// The worker's pods: they read the workspace's kubeconfig from a file, which follows its Secret.
fn worker(relay: &Relay, chart: &str) -> Value {
    let name = name(relay).name.to_string();
    let container = json!({"name": "relay", "image": "registry.example.org/relay:latest", "args": ["--chart", chart],
        "env": [{"name": "KUBECONFIG", "value": "/etc/workspace/kubeconfig"}],
        "volumeMounts": [{"name": "workspace", "mountPath": "/etc/workspace", "readOnly": true}]});
    json!({"replicas": 1, "selector": {"matchLabels": {"relays.example.org/relay": name}}, "template": {
        "metadata": {"labels": {"relays.example.org/relay": name}},
        "spec": {"containers": [container], "volumes": [{"name": "workspace", "secret": {"secretName": name}}]}}})
}

/// Puts the kubeconfig where the worker reads it; in place, when it is another one.
async fn deliver(workload: &WorkloadClient, metadata: Meta, kubeconfig: &Kubeconfig) -> Result<(), CallError> {
    let data = BTreeMap::from([("kubeconfig".to_owned(), BASE64.encode(kubeconfig.expose()))]);
    match workload.get::<Secret>(&ObjectName::namespaced(NAMESPACE, metadata.name.as_str())).await? {
        None => workload.create(&Secret { metadata, data }).await.map(drop),
        Some(there) if there.data != data => workload.replace(&Secret { data, ..there }).await.map(drop),
        Some(_) => Ok(()),
    }
}

/// Runs this version; returns the Deployment as it is.
async fn run(workload: &WorkloadClient, metadata: Meta, relay: &Relay, chart: &str) -> Result<Deployment, CallError> {
    let spec = worker(relay, chart);
    match workload.get::<Deployment>(&name(relay)).await? {
        None => workload.create(&Deployment { metadata, spec, status: Value::Null }).await,
        Some(there) if runs(&there) != Some(chart) => workload.replace(&Deployment { spec, ..there }).await,
        Some(there) => Ok(there),
    }
}

/// The chart that a Deployment runs. The server adds defaults to everything else.
fn runs(deployment: &Deployment) -> Option<&str> {
    deployment.spec.pointer("/template/spec/containers/0/args/1")?.as_str()
}

/// Deletes one of the things that were made; whether it is gone.
async fn remove<K: Kind>(workload: &WorkloadClient, relay: &Relay) -> Result<bool, CallError> {
    let Some(there) = workload.get::<K>(&name(relay)).await? else { return Ok(true) };
    Ok(workload.delete(&there).await? == Removal::Gone)
}

#[async_trait]
impl Reconciler for Relays {
    type Object = Relay;
    type Config = RelayConfig;
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "relays", finalizer: Some("relays.example.org/worker"), conditions: &[READY] }
    }

    async fn create_or_update(&self, ctx: &Context<RelayConfig>, relay: &Relay) -> Result<Report, CallError> {
        let Some(chart) = ctx.config.chart(&relay.spec.version) else {
            let message = format!("there is no version {}; there are: {}", relay.spec.version, ctx.config.versions());
            let refused = ReportedCondition::new(READY, false, UNKNOWN, message.as_str());
            return Ok(Report::new(()).with(refused).with_event(Event::warning(UNKNOWN, message)));
        };
        ctx.hold(relay, json!({})).await?;
        // Both were asked for, and without them there is no call.
        let (Some(workload), Some(kubeconfig)) = (&ctx.clusters.workload, ctx.clusters.control_plane.kubeconfig()) else {
            return Ok(Report::unchanged().recheck(Recheck::Backoff));
        };
        deliver(workload, metadata(ctx, relay), kubeconfig).await?;
        let deployment = run(workload, metadata(ctx, relay), relay, chart).await?;
        if deployment.status["availableReplicas"].as_i64() >= Some(1) {
            let message = format!("{} runs on {}", relay.spec.version, workload.name());
            return Ok(Report::new(()).with(ReportedCondition::new(READY, true, Reason::Ready, message)));
        }
        let starting = ReportedCondition::new(READY, false, STARTING, format!("its worker starts on {}", workload.name()));
        Ok(Report::new(()).with(starting).recheck(Recheck::After(LOOK)))
    }

    /// First what uses the workspace, then its key. The workspace itself may be gone by now.
    async fn delete(&self, ctx: &Context<RelayConfig>, relay: &Relay) -> Result<Deletion, CallError> {
        let Some(workload) = &ctx.clusters.workload else { return Ok(Deletion::Done) };
        let gone = remove::<Deployment>(workload, relay).await? && remove::<Secret>(workload, relay).await?;
        Ok(if gone { Deletion::Done } else { Deletion::Pending(Report::unchanged().recheck(Recheck::After(LOOK))) })
    }
}
