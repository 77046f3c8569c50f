//! Bindings: what they say about their export, and the kinds that they bring into a workspace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::is_going;
use crate::embedded::errors::Cause;
use crate::embedded::served::{Origin, Served};
use crate::embedded::store::Place;
use crate::embedded::world::exported::{Unusable, wanted};
use crate::embedded::world::objects::set_condition;
use crate::embedded::world::workspaces::{UNIVERSAL, bindings, exports, logical_clusters, schemas};
use crate::embedded::world::{ExportKey, ROOT, Task, World};

/// Which resource belongs to whom in a workspace, as JSON on its `LogicalCluster`.
const LOCKS: &str = "internal.apis.kcp.io/resource-bindings";

/// What is in the way of a binding.
enum Obstacle {
    Export(Unusable),
    /// Who has one of the kinds already.
    Taken(String),
}

/// The path and the name of a binding's export.
pub(crate) fn export_of(binding: &Value) -> Option<(&str, &str)> {
    let export = &binding["spec"]["reference"]["export"];
    Some((export["path"].as_str().unwrap_or_default(), export["name"].as_str()?))
}

/// Why an export's kinds cannot come into a workspace: others of their names are there.
const NAMING_CONFLICTS: &str = "NamingConflicts";
/// Why they cannot: the server refuses one of their schemas.
const SCHEMA_INVALID: &str = "APIResourceSchemaInvalid";

impl World {
    pub(super) fn binding_is_there(&mut self, workspace: &Arc<str>, name: &Arc<str>, binding: &Value) {
        self.binds(workspace, name, binding);
        if is_going(binding)
            && let Some(found) = self.workspaces.get_mut(workspace)
        {
            found.leaving.insert(name.clone());
        }
        self.ask(Duration::ZERO, Task::Binding(workspace.clone(), name.clone()));
    }

    /// Notes which export a binding is to. That changes when the export's workspace is made anew under the same path.
    fn binds(&mut self, workspace: &Arc<str>, name: &Arc<str>, binding: &Value) {
        let Some((key, shard)) = self.export_key(workspace, binding).zip(self.shard_of(workspace)) else { return };
        let own = (workspace.clone(), name.clone());
        if self.bound_to.get(&own) == Some(&key) {
            return;
        }
        self.binds_no_more(workspace, name);
        self.bindings.entry(key.clone()).or_default().entry(shard).or_default().insert(own.clone());
        self.bound_to.insert(own, key.clone());
        self.ask_for_slice(&key.0, &key.1);
    }

    pub(super) fn binds_no_more(&mut self, workspace: &Arc<str>, name: &Arc<str>) {
        let own = (workspace.clone(), name.clone());
        let Some(key) = self.bound_to.remove(&own) else { return };
        if let Some(by_shard) = self.bindings.get_mut(&key) {
            by_shard.retain(|_, at| {
                at.remove(&own);
                !at.is_empty()
            });
            if by_shard.is_empty() {
                self.bindings.remove(&key);
            }
        }
        self.ask_for_slice(&key.0, &key.1);
    }

    /// The export that a binding refers to, by its logical cluster; `None` while its workspace is not known.
    pub(super) fn export_key(&self, workspace: &Arc<str>, binding: &Value) -> Option<ExportKey> {
        let (path, name) = export_of(binding)?;
        let provider = if path.is_empty() { workspace.clone() } else { self.resolve(path)? };
        Some((provider, name.into()))
    }

    /// Everything of a binding's status but its kinds, for which it asks when they are not up to date.
    pub(super) fn do_binding(&mut self, workspace: &Arc<str>, name: &Arc<str>) {
        let Some(binding) = self.read(bindings(), workspace, "", name) else { return };
        if is_going(&binding) {
            self.do_unbind(workspace, name);
            return;
        }
        self.binds(workspace, name, &binding);
        let Some((path, export)) = export_of(&binding) else { return };
        let path = if path.is_empty() { workspace.to_string() } else { path.to_owned() };
        let now = self.stamp();
        let Some((provider, object)) = self.export_at(&path, export) else {
            let rest =
                json!({"reason": "APIExportNotFound", "severity": "Error", "message": format!("APIExport {path}|{export} not found")});
            self.status_of(workspace, name, |binding| {
                begin(binding, &now);
                set_condition(binding, "APIExportValid", "False", &rest, &now);
            });
            return;
        };
        if object["status"]["identityHash"].is_null() {
            return;
        }
        self.apply_claims(workspace, name, &binding, &provider, &object);
        let mut missing = self.missing(&binding, &provider, &object);
        missing.sort_unstable();
        let again = binding["status"]["phase"] == "Bound";
        if missing.is_empty() && again {
            return self.status_of(workspace, name, |binding| {
                for type_ in ["APIExportValid", "BindingUpToDate"] {
                    set_condition(binding, type_, "True", &Value::Null, &now);
                }
            });
        }
        if let Err(obstacle) = self.brings(workspace, name, &provider, export) {
            self.status_of(workspace, name, |binding| begin(binding, &now));
            return self.is_hindered(workspace, name, &provider, obstacle);
        }
        let message = format!("Waiting for API(s) to be established: {}", missing.join(", "));
        let rest = json!({"reason": "WaitingForEstablished", "severity": "Info", "message": message});
        // Another try at what was refused must not change what is said of it, or each would cause the next.
        let refused = is_refused(&binding);
        self.status_of(workspace, name, |binding| {
            begin(binding, &now);
            set_condition(binding, "APIExportValid", "True", &Value::Null, &now);
            if refused {
                return;
            }
            set_condition(binding, "BindingUpToDate", "False", &rest, &now);
            if !again {
                set_condition(binding, "InitialBindingCompleted", "False", &rest, &now);
            }
        });
        let delay = if again { self.options.timing.roll } else { self.options.timing.bind };
        self.ask(delay, Task::Bind(workspace.clone(), name.clone()));
    }

    /// The schemas of an export that are not bound as they are now: one that was made anew under its name has another uid.
    fn missing<'a>(&self, binding: &Value, provider: &Arc<str>, export: &'a Value) -> Vec<&'a str> {
        let bound = binding["status"]["boundResources"].as_array().cloned().unwrap_or_default();
        let is_bound = |name: &str| {
            let uid = self.parsed(schemas(), &Place::new(provider, "", name)).map(|schema| schema["metadata"]["uid"].clone());
            bound.iter().any(|bound| bound["schema"]["name"] == name && uid.as_ref() == Some(&bound["schema"]["UID"]))
        };
        wanted(export).filter(|name| !is_bound(name)).collect()
    }

    /// The kinds that a binding brings into its workspace, or what is in the way.
    fn brings(&self, workspace: &Arc<str>, name: &str, provider: &Arc<str>, export: &str) -> Result<Vec<Arc<Served>>, Obstacle> {
        let served = self.exported(provider, export, name).map_err(Obstacle::Export)?;
        self.conflicts(workspace, name, &served).map_or(Ok(served), |other| Err(Obstacle::Taken(other)))
    }

    /// Says what is in the way. The same obstacle is said in the same words, so that nothing follows from saying it again.
    fn is_hindered(&mut self, workspace: &Arc<str>, name: &str, provider: &str, obstacle: Obstacle) {
        match obstacle {
            Obstacle::Export(Unusable::NoExport) => {}
            Obstacle::Export(Unusable::NoSchema(schema)) => {
                let why = format!("APIResourceSchema {schema:?} not found");
                self.is_invalid(workspace, name, &format!("Invalid APIExport. Please contact the APIExport owner to resolve: {why}"));
            }
            Obstacle::Export(Unusable::Schema(schema, causes)) => self.is_refused(workspace, name, provider, &schema, &causes),
            Obstacle::Taken(other) => self.is_in_conflict(workspace, name, &other),
        }
    }

    /// Brings the export's kinds into the workspace.
    pub(super) fn do_bind(&mut self, workspace: &Arc<str>, name: &Arc<str>) {
        let Some(binding) = self.read(bindings(), workspace, "", name).filter(|binding| !is_going(binding)) else { return };
        let Some(key) = self.export_key(workspace, &binding) else { return };
        let (provider, export) = key.clone();
        let Some(object) = self.parsed(exports(), &Place::new(&provider, "", &export)) else { return };
        let hash = object["status"]["identityHash"].as_str().unwrap_or_default().to_owned();
        let served = match self.brings(workspace, name, &provider, &export) {
            Ok(served) => served,
            Err(obstacle) => return self.is_hindered(workspace, name, &provider, obstacle),
        };
        let schema = |name: &str| self.parsed(schemas(), &Place::new(&provider, "", name));
        let mut bound: Vec<Value> = wanted(&object).filter_map(schema).map(|schema| resource_of(&schema, &hash)).collect();
        if provider.as_ref() == ROOT {
            bound.extend(universal(&key.1, &hash));
        }
        self.install(workspace, name, served);
        self.lock(workspace, name, &bound);
        let now = self.stamp();
        self.status_of(workspace, name, |binding| {
            // What left the export stays bound.
            let before = binding["status"]["boundResources"].as_array().cloned().unwrap_or_default();
            let same = |a: &Value, b: &Value| a["group"] == b["group"] && a["resource"] == b["resource"];
            let left = before.iter().filter(|before| !bound.iter().any(|bound| same(bound, before))).cloned();
            binding["status"]["boundResources"] = bound.iter().cloned().chain(left).collect();
            for type_ in ["APIExportValid", "BindingUpToDate", "InitialBindingCompleted"] {
                set_condition(binding, type_, "True", &Value::Null, &now);
            }
            binding["status"]["phase"] = "Bound".into();
        });
        self.ask_for_slice(&provider, &key.1);
    }

    /// Puts a binding's kinds in place of those that it brought before. What left the export stays.
    fn install(&mut self, workspace: &Arc<str>, binding: &str, served: Vec<Arc<Served>>) {
        let mut replaced = Vec::new();
        self.set_custom(workspace, |custom| {
            let mut kept = Vec::new();
            for old in custom {
                let new = served.iter().find(|new| new.names.group == old.names.group && new.names.plural == old.names.plural);
                match new {
                    Some(new) if is_of(&old.origin, binding) => {
                        if new.open_api != old.open_api {
                            replaced.push(new.clone());
                        }
                    }
                    _ => kept.push(old),
                }
            }
            kept.into_iter().chain(served).collect()
        });
        for kind in replaced {
            self.reread(workspace, &kind);
            self.rolled("", &kind.storage);
        }
    }

    /// What is stored is read by the new schema: without fields that it does not know, and with its defaults. Nobody has written that.
    fn reread(&mut self, workspace: &Arc<str>, kind: &Arc<Served>) {
        for old in self.all(kind, workspace) {
            let mut new = old.clone();
            kind.schema.prune(&mut new);
            kind.schema.default(&mut new);
            let text = |field: &str| old["metadata"][field].as_str().unwrap_or_default();
            let place = Place::new(workspace, text("namespace"), text("name"));
            let Some(shard) = self.shard_of(workspace).filter(|_| new != old) else { continue };
            self.shards[shard].store.reread(&kind.storage, &place, &new);
            // The next write stores other bytes, whatever it says.
            self.unmarked.insert((kind.storage.clone(), place));
        }
    }

    /// The binding or definition that has one of these kinds already.
    fn conflicts(&self, workspace: &Arc<str>, name: &str, served: &[Arc<Served>]) -> Option<String> {
        let found = self.workspaces.get(workspace)?;
        let same = |a: &Served, b: &Served| a.names.group == b.names.group && a.names.plural == b.names.plural;
        let other = |kind: &&Arc<Served>| match &kind.origin {
            Origin::Bound { binding, .. } => &**binding != name && served.iter().any(|new| same(new, kind)),
            _ => served.iter().any(|new| same(new, kind)),
        };
        found.custom.iter().find(other).map(|kind| match &kind.origin {
            Origin::Bound { binding, .. } => format!("map[{}.{}:{{{binding} false}}]", kind.names.plural, kind.names.group),
            _ => format!("map[{}.{}:{{ true}}]", kind.names.plural, kind.names.group),
        })
    }

    fn lock(&mut self, workspace: &Arc<str>, name: &str, bound: &[Value]) {
        self.edit(logical_clusters(), workspace, "", "cluster", "", |logical| {
            let text = logical["metadata"]["annotations"][LOCKS].as_str().unwrap_or("{}");
            let mut locks: BTreeMap<String, Value> = serde_json::from_str(text).unwrap_or_default();
            for resource in bound {
                let text = |field: &str| resource[field].as_str().unwrap_or_default();
                locks.insert(format!("{}.{}", text("resource"), text("group")), json!({"n": name}));
            }
            logical["metadata"]["annotations"][LOCKS] = json!(locks).to_string().into();
        });
    }

    pub(super) fn unlock(&mut self, workspace: &Arc<str>, name: &str) {
        self.edit(logical_clusters(), workspace, "", "cluster", "", |logical| {
            let Some(text) = logical["metadata"]["annotations"][LOCKS].as_str() else { return };
            let mut locks: BTreeMap<String, Value> = serde_json::from_str(text).unwrap_or_default();
            locks.retain(|_, lock| lock["n"] != name);
            logical["metadata"]["annotations"][LOCKS] = json!(locks).to_string().into();
        });
    }

    /// Changes a binding's status and sums its conditions up.
    pub(super) fn status_of(&mut self, workspace: &Arc<str>, name: &str, change: impl FnOnce(&mut Value)) {
        let now = self.stamp();
        self.edit(bindings(), workspace, "", name, "status", |binding| {
            change(binding);
            let conditions = binding["status"]["conditions"].as_array().cloned().unwrap_or_default();
            if let Some(completed) = conditions.iter().find(|condition| condition["type"] == "InitialBindingCompleted") {
                let mut rest = completed.as_object().cloned().unwrap_or_default();
                for own in ["type", "status", "lastTransitionTime"] {
                    rest.remove(own);
                }
                let status = completed["status"].as_str().unwrap_or_default().to_owned();
                set_condition(binding, "Ready", &status, &rest.into(), &now);
            }
        });
    }

    fn is_invalid(&mut self, workspace: &Arc<str>, name: &str, message: &str) {
        let now = self.stamp();
        let rest = json!({"reason": "InternalError", "severity": "Error", "message": message});
        self.status_of(workspace, name, |binding| set_condition(binding, "APIExportValid", "False", &rest, &now));
    }

    fn is_refused(&mut self, workspace: &Arc<str>, name: &str, provider: &str, schema: &str, causes: &[Cause]) {
        let causes: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let message = format!("APIResourceSchema {provider}|{schema} is invalid: [{}]", causes.join(" "));
        self.is_not_bound(workspace, name, SCHEMA_INVALID, &message);
    }

    fn is_in_conflict(&mut self, workspace: &Arc<str>, name: &str, other: &str) {
        let message = format!("Unable to bind APIs because they are bound by other APIBindings or CRDs: {other}");
        self.is_not_bound(workspace, name, NAMING_CONFLICTS, &message);
    }

    fn is_not_bound(&mut self, workspace: &Arc<str>, name: &str, reason: &str, message: &str) {
        let now = self.stamp();
        let rest = json!({"reason": reason, "severity": "Error", "message": message});
        self.status_of(workspace, name, |binding| {
            set_condition(binding, "APIExportValid", "True", &Value::Null, &now);
            set_condition(binding, "BindingUpToDate", "False", &rest, &now);
            let is_completed = |condition: &Value| condition["type"] == "InitialBindingCompleted" && condition["status"] == "True";
            if !binding["status"]["conditions"].as_array().into_iter().flatten().any(is_completed) {
                set_condition(binding, "InitialBindingCompleted", "False", &rest, &now);
            }
        });
    }
}

fn begin(binding: &mut Value, now: &str) {
    if binding["status"]["phase"].as_str().is_none_or(str::is_empty) {
        binding["status"]["phase"] = "Binding".into();
        let rest = json!({"reason": "WaitingForEstablished", "severity": "Info", "message": "Waiting for API(s) to be established"});
        set_condition(binding, "InitialBindingCompleted", "False", &rest, now);
    }
}

/// Whether the last try to bind was refused.
fn is_refused(binding: &Value) -> bool {
    let conditions = binding["status"]["conditions"].as_array().into_iter().flatten();
    let mut reasons =
        conditions.filter(|condition| condition["type"] == "BindingUpToDate").filter_map(|condition| condition["reason"].as_str());
    reasons.any(|reason| [NAMING_CONFLICTS, SCHEMA_INVALID].contains(&reason))
}

fn resource_of(schema: &Value, hash: &str) -> Value {
    let versions = schema["spec"]["versions"].as_array().into_iter().flatten();
    let stored: Vec<&Value> = versions.filter(|version| version["storage"] == true).map(|version| &version["name"]).collect();
    json!({
        "group": schema["spec"]["group"],
        "resource": schema["spec"]["names"]["plural"],
        "schema": {"name": schema["metadata"]["name"], "UID": schema["metadata"]["uid"], "identityHash": hash},
        "storageVersions": stored,
    })
}

/// What the bindings of kcp's own exports say, whose kinds are built in.
fn universal(export: &str, hash: &str) -> Vec<Value> {
    let resources = UNIVERSAL.iter().find(|(name, _)| *name == export).map_or(&[][..], |(_, resources)| resources);
    let one = |resource: &&str| {
        json!({"group": export, "resource": resource, "storageVersions": ["v1alpha1"],
            "schema": {"name": format!("v1.{resource}.{export}"), "UID": format!("uid-of-{resource}"), "identityHash": hash}})
    };
    resources.iter().map(one).collect()
}

fn is_of(origin: &Origin, name: &str) -> bool {
    matches!(origin, Origin::Bound { binding, .. } if &**binding == name)
}
