//! `ProviderConfig`: what a platform operator sets for a provider; KCM's own type, and the settings every provider's type carries.
//!
//! Pure: the wire form and its validation. [`super::allowed`] says what the rules of `allowedWorkspaces` take; `exports: Manage` is acted upon
//! once, when `kcm run` starts.

use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::condition::Condition;
use super::meta::{Meta, kind};

/// The API group of configuration kinds.
pub const GROUP: &str = "config.edge-connect.eu";
/// How long an unschedulable cluster waits for its next decision when nobody says otherwise.
pub const DEFAULT_UNSCHEDULABLE_REQUEUE: Duration = Duration::from_mins(5);
/// How long a catalog whose stream is known broken still counts when nobody says otherwise.
pub const DEFAULT_CATALOG_MAX_STALENESS: Duration = Duration::from_mins(5);
/// How often a converged object is compared with the cache when nobody says otherwise.
pub const DEFAULT_POLL_INTERVAL: Duration = Duration::from_mins(10);
/// The purpose of workload clusters when nobody says otherwise.
pub const DEFAULT_WORKLOAD_PURPOSE: &str = "workload";

/// KCM's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderConfig {
    /// Standard metadata; KCM reads the one named `kcm` unless told otherwise.
    #[serde(default)]
    pub metadata: Meta,
    /// What the operator sets.
    #[serde(default)]
    pub spec: ProviderConfigSpec,
    /// Whether it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ProviderConfigStatus>,
}

kind!(ProviderConfig, GROUP, "v1alpha1", "ProviderConfig", "providerconfigs", namespaced: false);

/// What the operator sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(inline)]
pub struct ProviderConfigSpec {
    /// What every provider's configuration has.
    #[serde(flatten)]
    pub runtime: RuntimeSettings,
    /// How clusters are scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SchedulingSettings")]
    pub scheduling: Option<SchedulingSettings>,
}

/// The runtime's settings: plain fields of the spec of every provider's configuration kind (`#[serde(flatten)]`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(inline)]
pub struct RuntimeSettings {
    /// What a provider may install.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub versions: Vec<VersionSource>,
    /// How kcp is used; may be absent in a provider workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "KcpSettings")]
    pub kcp: Option<KcpSettings>,
    /// Where workers run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "WorkloadSettings")]
    pub workload: Option<WorkloadSettings>,
    /// How often a converged object is compared with the cache: a duration such as 10m, or Off. Default 10m.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Interval")]
    pub poll_interval: Option<Interval>,
}

impl RuntimeSettings {
    /// How often a converged object is compared with the cache; `None` for never.
    pub fn poll_interval(&self) -> Option<Duration> {
        self.poll_interval.as_ref().map_or(Some(DEFAULT_POLL_INTERVAL), Interval::get)
    }

    /// The rules for who is served; empty for everybody.
    pub fn allowed_workspaces(&self) -> &[String] {
        self.kcp.as_ref().map_or(&[], |kcp| &kcp.allowed_workspaces)
    }

    /// The purpose of the workload clusters that new work is begun on. Default `workload`.
    pub fn workload_purpose(&self) -> &str {
        self.workload.as_ref().and_then(|workload| workload.purpose.as_deref()).unwrap_or(DEFAULT_WORKLOAD_PURPOSE)
    }

    /// Everything that is wrong with these fields, in their order.
    pub fn problems(&self) -> Vec<FieldError> {
        let Self { versions, kcp, workload, poll_interval } = self;
        let mut problems = Vec::new();
        for (at, version) in versions.iter().enumerate() {
            if versions[..at].iter().any(|other| other.name == version.name) {
                problems.push(FieldError::new(format!("spec.versions[{at}].name"), format!("{:?} is listed twice", version.name)));
            }
        }
        if let Some(kcp) = kcp {
            for (at, rule) in kcp.allowed_workspaces.iter().enumerate() {
                if let Err(problem) = super::allowed::Rule::parse(rule) {
                    problems.push(FieldError::new(format!("spec.kcp.allowedWorkspaces[{at}]"), problem));
                }
            }
        }
        if kcp.is_some() && workload.as_ref().is_some_and(|w| w.pattern == WorkloadPattern::Classic) {
            problems.push(FieldError::new("spec.workload.pattern", "Classic cannot work in kcp: a workspace runs no workers"));
        }
        if poll_interval.as_ref().and_then(Interval::get).is_some_and(|span| span.is_zero()) {
            problems.push(FieldError::new("spec.pollInterval", "0 would never rest; use Off, or leave it out for 10m"));
        }
        problems
    }
}

/// A version and where its chart is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct VersionSource {
    /// For example v1.2.3.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// For example `oci://registry.example.org/charts/x`.
    #[serde(rename = "chartURL")]
    #[schemars(length(min = 1, max = 2048))]
    pub chart_url: String,
}

/// How kcp is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(inline)]
pub struct KcpSettings {
    /// Path of the provider workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 1024))]
    pub provider_workspace: Option<String>,
    /// The platform cluster's way to kcp.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "super::provider::SecretReference")]
    pub kubeconfig_secret: Option<super::provider::SecretReference>,
    /// Who owns the exports.
    pub exports: ExportsMode,
    /// Logical cluster names, or path globs such as `root:orgs:*`. Empty: all workspaces are served.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 1024)))]
    pub allowed_workspaces: Vec<String>,
    /// The address of kcp as a workload sees it, for minted kubeconfigs.
    #[serde(rename = "externalURL", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 2048), regex(pattern = r"^https://.+"))]
    pub external_url: Option<String>,
}

/// Who owns the exports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ExportsMode {
    /// A pipeline does; the runtime only reads them.
    #[default]
    Consume,
    /// The runtime upserts them at start and on change.
    Manage,
}

/// Where workers run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct WorkloadSettings {
    /// Workerless, or Classic (refused together with kcp).
    pub pattern: WorkloadPattern,
    /// The purpose an ordered cluster is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 63))]
    pub purpose: Option<String>,
}

/// Where a provider's worker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum WorkloadPattern {
    /// On a workload cluster, pointed at the workspace.
    Workerless,
    /// On the end user's own control plane.
    Classic,
}

/// How clusters are scheduled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(inline)]
pub struct SchedulingSettings {
    /// How long an unschedulable cluster waits for its next decision. Default 5m; 0 is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Span")]
    pub unschedulable_requeue: Option<Span>,
    /// How long a catalog whose stream is known broken still counts. Default 5m.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Span")]
    pub catalog_max_staleness: Option<Span>,
}

/// Whether the configuration was accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ProviderConfigStatus {
    /// The generation that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A span of time as people write it: `5m`, `1h30m`, `250ms`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    text: String,
    value: Duration,
}

impl Span {
    /// The span as a number.
    pub const fn get(&self) -> Duration {
        self.value
    }
}

impl std::str::FromStr for Span {
    type Err = String;

    /// Reads `5m`, `1h30m`, `250ms`; refuses negative spans and more than 32 bytes.
    fn from_str(text: &str) -> Result<Self, String> {
        let shown: String = text.chars().take(32).collect();
        if text.len() > 32 {
            return Err(format!("{shown}… is too long for a duration (32 characters at most)"));
        }
        let value = if text == "0" {
            jiff::SignedDuration::ZERO
        } else {
            text.parse().map_err(|_| format!("{shown:?} is not a duration such as 5m or 1h30m"))?
        };
        let value = Duration::try_from(value).map_err(|_| format!("{shown:?} is negative"))?;
        Ok(Self { text: text.to_owned(), value })
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Span {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": 32, "pattern": r"^(0|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$" })
    }
}

/// A span, or `Off`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interval {
    /// Never.
    Off,
    /// Each time this span has passed.
    Every(Span),
}

impl Interval {
    /// The span; `None` for `Off`.
    pub const fn get(&self) -> Option<Duration> {
        match self {
            Self::Off => None,
            Self::Every(span) => Some(span.get()),
        }
    }
}

impl Serialize for Interval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_str("Off"),
            Self::Every(span) => span.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "Off" { Ok(Self::Off) } else { text.parse().map(Self::Every).map_err(serde::de::Error::custom) }
    }
}

impl JsonSchema for Interval {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Interval".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": 32, "pattern": r"^(Off|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$" })
    }
}

/// A field that is wrong, and why: what a refused configuration says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Path of the field, for example `spec.scheduling.unschedulableRequeue`.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

impl FieldError {
    /// Names a field and what is wrong with it.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

impl ProviderConfig {
    /// The wait of an unschedulable cluster.
    pub fn unschedulable_requeue(&self) -> Duration {
        self.spec.scheduling.as_ref().and_then(|s| s.unschedulable_requeue.as_ref()).map_or(DEFAULT_UNSCHEDULABLE_REQUEUE, Span::get)
    }

    /// How long a broken catalog still counts.
    pub fn catalog_max_staleness(&self) -> Duration {
        self.spec.scheduling.as_ref().and_then(|s| s.catalog_max_staleness.as_ref()).map_or(DEFAULT_CATALOG_MAX_STALENESS, Span::get)
    }

    /// Everything that is wrong with the spec, in the order of its fields.
    pub fn problems(&self) -> Vec<FieldError> {
        let ProviderConfigSpec { runtime, scheduling } = &self.spec;
        let mut problems = runtime.problems();
        if let Some(scheduling) = scheduling {
            if scheduling.unschedulable_requeue.as_ref().is_some_and(|span| span.get().is_zero()) {
                problems
                    .push(FieldError::new("spec.scheduling.unschedulableRequeue", "0 would decide without a pause; leave it out for 5m"));
            }
            if scheduling.catalog_max_staleness.as_ref().is_some_and(|span| span.get().is_zero()) {
                problems.push(FieldError::new("spec.scheduling.catalogMaxStaleness", "0 would trust no catalog; leave it out for 5m"));
            }
        }
        problems
    }
}
