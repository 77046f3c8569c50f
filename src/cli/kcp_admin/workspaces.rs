//! Workspaces: made, waited for, and deleted.

use std::time::Duration;

use serde_json::json;

use super::{AdminClient, AdminError, WORKSPACES};
use crate::api::names::LogicalCluster;

/// A workspace takes 2 s on an idle kcp of 2 cores and was seen to take 15 s on a busy one.
const READY_WITHIN: Duration = Duration::from_mins(2);

impl AdminClient {
    /// Creates the workspace `name` below the workspace `parent`, waits until it is Ready, and returns its logical cluster.
    ///
    /// `parent` is a path or a logical cluster. A workspace that is there already is waited for and returned. The client's user must
    /// not be a member of `system:masters`: kcp records no owner for those, and their workspaces stay Initializing.
    pub async fn create_workspace(&self, parent: &str, name: &str) -> Result<LogicalCluster, AdminError> {
        let parent = self.in_workspace(parent)?;
        let workspace = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}, "spec": {}});
        match parent.create(&WORKSPACES, "", &workspace).await {
            Err(error) if !error.is_conflict() => return Err(error),
            _ => {}
        }
        let is_ready = |workspace: &serde_json::Value| workspace["status"]["phase"] == "Ready" && workspace["spec"]["cluster"].is_string();
        let ready = parent.wait_for(&WORKSPACES, "", name, "to be Ready", READY_WITHIN, is_ready).await?;
        Ok(LogicalCluster::new(ready["spec"]["cluster"].as_str().unwrap_or_default()))
    }

    /// Asks for the deletion of the workspace `name` below `parent`. All it holds is deleted with it, which takes about 15 s:
    /// [`AdminClient::wait_gone`] waits for it.
    pub async fn delete_workspace(&self, parent: &str, name: &str) -> Result<(), AdminError> {
        self.in_workspace(parent)?.delete(&WORKSPACES, "", name).await
    }
}
