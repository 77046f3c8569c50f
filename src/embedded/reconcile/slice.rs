//! Endpoint slices: one URL for each shard with a binding.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::embedded::world::objects::{set, set_condition, some};
use crate::embedded::world::workspaces::{exports, slices};
use crate::embedded::world::{Task, World};

impl World {
    pub(super) fn ask_for_slice(&mut self, workspace: &Arc<str>, name: &Arc<str>) {
        self.ask(self.options.timing.slice, Task::Slice(workspace.clone(), name.clone()));
    }

    /// Where a shard serves an export. The first one is reached without a prefix.
    pub(crate) fn endpoint(&self, shard: usize, workspace: &str, export: &str) -> String {
        let prefix = if shard == 0 { String::new() } else { format!("/shards/{shard}") };
        format!("{}{prefix}/services/apiexport/{workspace}/{export}", self.options.url)
    }

    pub(super) fn do_slice(&mut self, workspace: &Arc<str>, name: &Arc<str>) {
        let Some(slice) = self.read(slices(), workspace, "", name) else { return };
        let export = slice["spec"]["export"]["name"].as_str().unwrap_or_default();
        let there = self.read(exports(), workspace, "", export).is_some();
        let by_shard = self.bindings.get(&(workspace.clone(), export.into()));
        let shards = by_shard.into_iter().flatten().filter(|(_, bindings)| !bindings.is_empty()).map(|(shard, _)| *shard);
        let endpoints: Vec<Value> = shards.map(|shard| json!({"url": self.endpoint(shard, workspace, export)})).collect();
        let now = self.stamp();
        self.edit(slices(), workspace, "", name, "status", |slice| {
            let valid = if there { "True" } else { "False" };
            set_condition(slice, "APIExportValid", valid, &Value::Null, &now);
            set_condition(slice, "PartitionValid", "True", &Value::Null, &now);
            set(&mut slice["status"], "endpoints", some(endpoints));
        });
    }
}
