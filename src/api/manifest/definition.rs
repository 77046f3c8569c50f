//! What a kind's manifest says beyond its schema: names, columns, status, and the rules a server checks at admission.
//!
//! Pure: one function per kind.

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::schema::structural;
use crate::api::catalog::{KubernetesClusterOffering, VirtualMachineType};
use crate::api::config::ProviderConfig;
use crate::api::meta::{Kind, KindRef};
use crate::api::projection::Projection;
use crate::api::provider::Provider;
use crate::api::tenant::KubernetesCluster;

/// The category every kind is in: `kubectl get edge-connect`.
pub const CATEGORY: &str = "edge-connect";

/// A kind as its manifest describes it.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Where it is served.
    pub kind: KindRef,
    /// Short names for `kubectl`.
    pub short_names: &'static [&'static str],
    /// Whether it has the status subresource.
    pub has_status: bool,
    /// What `kubectl get` shows besides the name; `Age` is added at the end.
    pub columns: Vec<Column>,
    /// CEL rules.
    pub rules: Vec<Rule>,
    schema: fn() -> Value,
}

/// A printer column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Heading.
    pub name: &'static str,
    /// `string`, `boolean` or `date`.
    pub type_: &'static str,
    /// Where the value stands.
    pub path: &'static str,
    /// Whether it is shown only with `-o wide`.
    pub wide: bool,
}

/// A CEL rule of one field.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// JSON pointer of the field's schema below the root's `properties`, for example `/spec`.
    pub at: &'static str,
    /// The expression; with `oldSelf` it is checked on updates only.
    pub rule: &'static str,
    /// What the server says when it does not hold.
    pub message: &'static str,
    /// The field below [`Rule::at`] that the message is about, for example `.region`; empty for the field itself.
    pub field: &'static str,
}

impl Definition {
    fn of<T: Kind + JsonSchema>(short_names: &'static [&'static str]) -> Self {
        Self { kind: T::REF, short_names, has_status: false, columns: Vec::new(), rules: Vec::new(), schema: structural::<T> }
    }

    fn with_status(self) -> Self {
        Self { has_status: true, ..self }
    }

    fn column(mut self, name: &'static str, path: &'static str) -> Self {
        self.columns.push(Column { name, type_: "string", path, wide: false });
        self
    }

    fn ready(mut self) -> Self {
        self.columns.push(Column { name: "Ready", type_: "boolean", path: ".status.ready", wide: false });
        self
    }

    fn wide(mut self, name: &'static str, path: &'static str) -> Self {
        self.columns.push(Column { name, type_: "string", path, wide: true });
        self
    }

    fn rule(mut self, at: &'static str, field: &'static str, rule: &'static str, message: &'static str) -> Self {
        self.rules.push(Rule { at, rule, message, field });
        self
    }

    /// `Namespaced` or `Cluster`.
    pub const fn scope(&self) -> &'static str {
        if self.kind.namespaced { "Namespaced" } else { "Cluster" }
    }

    pub(super) fn names(&self) -> Value {
        json!({
            "kind": self.kind.kind,
            "listKind": format!("{}List", self.kind.kind),
            "plural": self.kind.plural,
            "singular": self.kind.kind.to_ascii_lowercase(),
            "shortNames": self.short_names,
            "categories": [CATEGORY],
        })
    }

    pub(super) fn columns(&self) -> Value {
        let age = Column { name: "Age", type_: "date", path: ".metadata.creationTimestamp", wide: false };
        let columns = self.columns.iter().chain([&age]).map(|Column { name, type_, path, wide }| {
            let mut column = json!({ "name": name, "type": type_, "jsonPath": path });
            if *wide {
                column["priority"] = json!(1);
            }
            column
        });
        columns.collect()
    }

    /// The structural schema with the rules in their places.
    ///
    /// # Panics
    /// When a rule's place is not in the schema, which a test rules out.
    pub fn schema(&self) -> Value {
        let mut schema = (self.schema)();
        for Rule { at, rule, message, field } in &self.rules {
            let pointer = at.replace('/', "/properties/");
            let place = schema.pointer_mut(&pointer).and_then(Value::as_object_mut).expect("a rule's place is a field of its own kind");
            let mut rule = json!({ "rule": rule, "message": message });
            if !field.is_empty() {
                rule["fieldPath"] = (*field).into();
            }
            let rules = place.entry("x-kubernetes-validations").or_insert_with(|| json!([]));
            rules.as_array_mut().expect("only rules are written there").push(rule);
        }
        schema
    }
}

/// The kinds that tenants bind: the tenant's cluster, its projection, and `Provider`.
pub fn exported() -> [Definition; 3] {
    [tenant(), projection(), provider()]
}

/// The kinds of the provider workspace: offerings, machine types, and KCM's configuration.
pub fn catalog() -> [Definition; 3] {
    [offering(), machine_type(), config()]
}

/// `KubernetesCluster`, as a tenant orders it (`kc`).
pub fn tenant() -> Definition {
    Definition::of::<KubernetesCluster>(&["kc"])
        .with_status()
        .column("Region", ".spec.region")
        .column("Version", ".spec.version")
        .column("Provider", ".spec.providerRef.name")
        .column("Scheduled", r#".status.conditions[?(@.type=="Scheduled")].reason"#)
        .ready()
        .wide("Message", r#".status.conditions[?(@.type=="Ready")].message"#)
        .rule(
            "/spec",
            ".providerRef",
            "!has(oldSelf.providerRef) || has(self.providerRef)",
            "providerRef cannot be removed: it is set by the scheduler, keep it or use kubectl apply",
        )
        .rule(
            "/spec",
            ".providerRef",
            "!has(oldSelf.providerRef) || !has(self.providerRef) || self.providerRef.name == oldSelf.providerRef.name",
            "providerRef cannot be changed: it is set by the scheduler, keep it or use kubectl apply; \
             for another provider, delete the cluster and create it anew",
        )
        .rule(
            "/spec",
            ".region",
            "!has(oldSelf.providerRef) || self.region == oldSelf.region",
            "region is fixed once providerRef is set; for another region, delete the cluster and create it anew",
        )
}

/// `KubernetesCluster`, as its provider builds it (`pkc`).
pub fn projection() -> Definition {
    Definition::of::<Projection>(&["pkc"])
        .with_status()
        .column("Provider", ".spec.providerRef.name")
        .column("Region", ".spec.region")
        .column("Version", ".spec.version")
        .ready()
        .wide("Reason", r#".status.conditions[?(@.type=="Ready")].reason"#)
        .wide("Message", r#".status.conditions[?(@.type=="Ready")].message"#)
        .rule(
            "/spec",
            ".providerRef",
            "self.providerRef.name == oldSelf.providerRef.name",
            "providerRef cannot be changed: the nodes live there, and a cluster never migrates",
        )
        .rule(
            "/spec",
            ".region",
            "self.region == oldSelf.region",
            "region cannot be changed: the nodes live there, and a cluster never moves",
        )
}

/// `Provider`.
pub fn provider() -> Definition {
    Definition::of::<Provider>(&["prov"])
        .column("Secret Namespace", ".spec.credentialsSecretRef.namespace")
        .column("Secret", ".spec.credentialsSecretRef.name")
}

/// `KubernetesClusterOffering` (`kco`).
pub fn offering() -> Definition {
    Definition::of::<KubernetesClusterOffering>(&["kco"])
        .column("Provider", ".spec.providerRef.name")
        .column("Regions", ".spec.availableRegions")
        .column("Versions", ".spec.availableVersions")
        .wide("Types", ".spec.availableVirtualMachineTypes")
}

/// `VirtualMachineType` (`vmt`).
pub fn machine_type() -> Definition {
    Definition::of::<VirtualMachineType>(&["vmt"])
        .column("CPU", ".spec.cpu")
        .column("Memory", ".spec.memory")
        .column("Provider Type", ".spec.providerMachineType")
        .column("Regions", ".spec.availableRegions")
}

/// `ProviderConfig` (`pcfg`).
pub fn config() -> Definition {
    Definition::of::<ProviderConfig>(&["pcfg"])
        .with_status()
        .column("Exports", ".spec.kcp.exports")
        .column("Pattern", ".spec.workload.pattern")
        .column("Accepted", r#".status.conditions[?(@.type=="Accepted")].status"#)
        .wide("Message", r#".status.conditions[?(@.type=="Accepted")].message"#)
        .rule(
            "/spec",
            ".workload",
            "!has(self.kcp) || !has(self.workload) || self.workload.pattern != 'Classic'",
            "pattern Classic cannot work in kcp: a workspace runs no workers",
        )
        .rule(
            "/spec/scheduling/unschedulableRequeue",
            "",
            "duration(self) > duration('0s')",
            "0 would decide without a pause; leave it out for 5m",
        )
        .rule(
            "/spec/scheduling/catalogMaxStaleness",
            "",
            "duration(self) > duration('0s')",
            "0 would trust no catalog; leave it out for 5m",
        )
        .rule(
            "/spec/pollInterval",
            "",
            "self == 'Off' || duration(self) > duration('0s')",
            "0 would never rest; use Off, or leave it out for 10m",
        )
}
