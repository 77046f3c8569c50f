//! Endpoint slices: one URL for each shard with a binding.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::embedded::store::Place;
use crate::embedded::world::objects::{set, set_condition, some};
use crate::embedded::world::workspaces::{exports, slices};
use crate::embedded::world::{Draft, Task, World};

/// Whom kcp calls the writer of endpoints.
const SHARD: &str = "root";

impl World {
    /// Every slice of an export in the export's workspace, whatever its name, is to show what is there.
    pub(super) fn ask_for_slice(&mut self, workspace: &Arc<str>, export: &Arc<str>) {
        for slice in self.all(slices(), workspace).iter().filter(|slice| slice["spec"]["export"]["name"] == **export) {
            self.ask(self.options.timing.slice, Task::Slice(workspace.clone(), Place::of(workspace, slice).name));
        }
    }

    /// Where a shard serves an export. The first one is reached without a prefix until it moves.
    pub(crate) fn endpoint(&self, shard: usize, workspace: &str, export: &str) -> String {
        let moves = self.shards.get(shard).map_or(0, |shard| shard.moves);
        let prefix = if shard == 0 && moves == 0 { String::new() } else { format!("/shards/{}{shard}", "0".repeat(moves)) };
        format!("{}{prefix}/services/apiexport/{workspace}/{export}", self.options.url)
    }

    /// A shard is at another URL from now on. Every slice learns of it as of any other change.
    pub(crate) fn move_shard(&mut self, shard: usize) {
        let Some(moved) = self.shards.get_mut(shard) else { return };
        moved.moves += 1;
        let exports: Vec<_> = self.bindings.keys().cloned().collect();
        for (workspace, export) in exports {
            self.ask_for_slice(&workspace, &export);
        }
    }

    /// Every shard applies its own endpoint.
    fn apply_endpoints(&mut self, workspace: &Arc<str>, name: &Arc<str>, endpoints: Vec<Value>) {
        let place = Place::new(workspace, "", name);
        let Some(old) = self.stored(slices(), &place).map(|stored| stored.value()) else { return };
        let is_applied = |entry: &Value| entry["manager"] == SHARD;
        let entries = old["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        if old["status"]["endpoints"] == some(endpoints.clone()) && entries.iter().any(is_applied) {
            return;
        }
        let each = endpoints.iter().map(|endpoint| (format!("k:{endpoint}"), json!({".": {}, "f:url": {}})));
        let fields: Value = each.collect::<serde_json::Map<_, _>>().into();
        let fields = if endpoints.is_empty() { json!({"f:status": {}}) } else { json!({"f:status": {"f:endpoints": fields}}) };
        let entry = json!({"manager": SHARD, "operation": "Apply", "apiVersion": "apis.kcp.io/v1alpha1", "time": self.stamp(),
            "fieldsType": "FieldsV1", "fieldsV1": fields, "subresource": "status"});
        let mut new = old.clone();
        new["metadata"]["managedFields"] = std::iter::once(entry).chain(entries.into_iter().filter(|entry| !is_applied(entry))).collect();
        set(&mut new["status"], "endpoints", some(endpoints));
        self.replace(Draft { kind: slices(), place, old: Some(old), new, subresource: "status", manager: None });
    }

    pub(super) fn do_slice(&mut self, workspace: &Arc<str>, name: &Arc<str>) {
        let Some(slice) = self.read(slices(), workspace, "", name) else { return };
        let text = |field: &str| slice["spec"]["export"][field].as_str().unwrap_or_default();
        let (path, export) = (text("path"), text("name"));
        let provider = if path.is_empty() { Some(workspace.clone()) } else { self.resolve(path) };
        let provider = provider.filter(|provider| self.stored(exports(), &Place::new(provider, "", export)).is_some());
        let there = provider.is_some();
        let endpoints: Vec<Value> = provider.map_or_else(Vec::new, |provider| {
            let by_shard = self.bindings.get(&(provider.clone(), export.into()));
            by_shard.into_iter().flatten().map(|(shard, _)| json!({"url": self.endpoint(*shard, &provider, export)})).collect()
        });
        let now = self.stamp();
        self.edit(slices(), workspace, "", name, "status", |slice| {
            let valid = if there { "True" } else { "False" };
            set_condition(slice, "APIExportValid", valid, &Value::Null, &now);
            set_condition(slice, "PartitionValid", "True", &Value::Null, &now);
        });
        self.apply_endpoints(workspace, name, endpoints);
    }
}
