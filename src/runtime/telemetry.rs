//! Metrics with a closed set of labels: ten thousand workspaces add no series.

use std::collections::BTreeMap;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::transport::Reply;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reconciled {
    controller: &'static str,
    /// `ok`, or a reason word.
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Requested {
    verb: &'static str,
    /// The HTTP status; 0 where there was no answer.
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Told {
    /// Of an event `told`, `refused`, `failed` or `dropped`; of a direct write `sent`, `refused` or `failed`.
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Seen {
    /// Whether the object of the work is there, or why it is not seen.
    state: &'static str,
}

/// What the runtime counts; read as text in the OpenMetrics format.
pub struct Metrics {
    registry: Registry,
    reconciled: Family<Reconciled, Counter>,
    requested: Family<Requested, Counter>,
    streamed: Family<Requested, Counter>,
    told: Family<Told, Counter>,
    direct: Family<Told, Counter>,
    queued: Gauge,
    in_flight: Gauge,
    objects: Gauge,
    workspaces: Gauge,
    works: Family<Seen, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("kcp_provider");
        let metrics = Self {
            reconciled: Family::default(),
            requested: Family::default(),
            streamed: Family::default(),
            told: Family::default(),
            direct: Family::default(),
            queued: Gauge::default(),
            in_flight: Gauge::default(),
            objects: Gauge::default(),
            workspaces: Gauge::default(),
            works: Family::default(),
            registry: Registry::default(),
        };
        registry.register("reconciles", "Calls of a reconciler by their end", metrics.reconciled.clone());
        registry.register("requests", "Requests of reconcilers by verb and status", metrics.requested.clone());
        registry.register("stream_requests", "Lists and watches of all streams by verb and status", metrics.streamed.clone());
        registry.register("events", "Kubernetes Events to tenants by what became of them", metrics.told.clone());
        registry.register("direct_writes", "Writes to workspaces themselves by what became of them", metrics.direct.clone());
        registry.register("queue_ready", "Work that is ready and waits for a worker", metrics.queued.clone());
        registry.register("queue_in_flight", "Calls under way", metrics.in_flight.clone());
        registry.register("objects", "Service objects in the cache", metrics.objects.clone());
        registry.register("workspaces", "Workspaces that bind the export", metrics.workspaces.clone());
        registry.register("external_works", "Recorded external work by how its object is seen", metrics.works.clone());
        Self { registry, ..metrics }
    }
}

impl Metrics {
    pub(crate) fn reconcile(&self, controller: &'static str, reason: Option<&'static str>) {
        self.reconciled.get_or_create(&Reconciled { controller, reason: reason.unwrap_or("ok") }).inc();
    }

    /// Counts a request by its answer, and hands that on.
    pub(crate) fn request(&self, verb: &'static str, reply: Result<Reply, String>) -> Result<Reply, String> {
        let code = reply.as_ref().map_or(0, |reply| reply.status.as_u16());
        self.requested.get_or_create(&Requested { verb, code }).inc();
        reply
    }

    /// Counts a list or the opening of a watch.
    pub(crate) fn stream(&self, verb: &'static str, code: u16) {
        self.streamed.get_or_create(&Requested { verb, code }).inc();
    }

    /// Counts a Kubernetes Event that was written, was not, or was given up unsent.
    pub(crate) fn told(&self, outcome: &'static str) {
        self.told.get_or_create(&Told { outcome }).inc();
    }

    /// Counts a write past the virtual workspace: `sent`, `refused` and so sent through it, or `failed`.
    pub(crate) fn direct(&self, outcome: &'static str) {
        self.direct.get_or_create(&Told { outcome }).inc();
    }

    pub(crate) fn sizes(&self, queued: usize, in_flight: usize, objects: usize, workspaces: usize) {
        let size = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        self.queued.set(size(queued));
        self.in_flight.set(size(in_flight));
        self.objects.set(size(objects));
        self.workspaces.set(size(workspaces));
    }

    /// Takes the number of pieces of recorded work in each state; a state that is not named has none.
    pub(crate) fn works(&self, counts: &BTreeMap<&'static str, usize>) {
        for state in ["engaged", "not-engaged", "unreachable", "forbidden", "unbound", "gone"] {
            let count = counts.get(state).copied().unwrap_or_default();
            self.works.get_or_create(&Seen { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// Everything, in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
