//! Workspaces: scheduled, initialised, and emptied when they are deleted.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{is_going, release};
use crate::embedded::store::Place;
use crate::embedded::world::objects::set_condition;
use crate::embedded::world::workspaces::{
    bindings, cluster_role_bindings, logical_clusters, namespaces, typed, workspace_types, workspaces,
};
use crate::embedded::world::{ROOT, Task, World};

/// What keeps a `Workspace` until its logical cluster is gone, and what keeps that until it is empty.
const OF_WORKSPACE: &str = "core.kcp.io/logicalcluster";
const OF_LOGICAL_CLUSTER: &str = "core.kcp.io/logicalcluster-deletion";
/// Who made a workspace, as JSON.
pub(crate) const OWNER: &str = "experimental.tenancy.kcp.io/owner";
const PHASE: &str = "tenancy.kcp.io/phase";

impl World {
    pub(super) fn do_workspace(&mut self, parent: &Arc<str>, name: &Arc<str>) {
        let Some(object) = self.read(workspaces(), parent, "", name) else { return };
        let inside: Option<Arc<str>> = object["spec"]["cluster"].as_str().map(Into::into);
        match (inside, is_going(&object)) {
            (None, true) => self.let_go(parent, name),
            (Some(inside), true) => {
                if self.workspaces.contains_key(&inside) {
                    self.delete(logical_clusters(), &Place::new(&inside, "", "cluster"), None);
                } else {
                    self.let_go(parent, name);
                }
            }
            (None, false) => self.schedule(parent, name, &object),
            (Some(_), false) if object["status"]["phase"] != "Ready" => {
                self.ask(self.options.timing.workspace, Task::Initialise(parent.clone(), name.clone()));
            }
            (Some(_), false) => {}
        }
    }

    pub(super) fn do_initialise(&mut self, parent: &Arc<str>, name: &Arc<str>) {
        let Some(object) = self.read(workspaces(), parent, "", name).filter(|object| !is_going(object)) else { return };
        if let Some(inside) = object["spec"]["cluster"].as_str() {
            self.initialise(parent, name, &inside.into(), &object);
        }
    }

    fn let_go(&mut self, parent: &Arc<str>, name: &str) {
        self.edit(workspaces(), parent, "", name, "", |object| release(object, OF_WORKSPACE));
    }

    /// Finds a shard and makes the logical cluster.
    fn schedule(&mut self, parent: &Arc<str>, name: &Arc<str>, object: &Value) {
        let inside = self.dice.logical_cluster();
        let path = format!("{}:{name}", self.path(parent));
        self.add(inside.clone(), &path, Some((parent.clone(), name.clone())));
        let url = format!("{}/clusters/{path}", self.options.url);
        let shard = self.shards[self.shard_of(&inside).unwrap_or_default()].name.clone();
        let owner = object["metadata"]["annotations"][OWNER].as_str().unwrap_or_default().to_owned();
        self.edit(workspaces(), parent, "", name, "", |object| {
            object["spec"]["cluster"] = (&*inside).into();
            object["spec"]["URL"] = url.into();
            let metadata = &mut object["metadata"];
            metadata["annotations"]["internal.tenancy.kcp.io/cluster"] = (&*inside).into();
            metadata["annotations"]["internal.tenancy.kcp.io/shard"] = shard.into();
            metadata["finalizers"] = json!([OF_WORKSPACE]);
            metadata["labels"][PHASE] = "Scheduling".into();
        });
        let type_ = &object["spec"]["type"];
        let type_ = format!("{}:{}", type_["path"].as_str().unwrap_or_default(), type_["name"].as_str().unwrap_or_default());
        let annotations = json!({OWNER: owner_name(&owner), "internal.tenancy.kcp.io/type": type_, "kcp.io/path": path});
        let reference = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "cluster": &**parent, "name": &**name, "resource": "workspaces",
            "uid": object["metadata"]["uid"]});
        let logical = json!({"metadata": {"annotations": annotations, "finalizers": [OF_LOGICAL_CLUSTER], "labels": {PHASE: "Initializing"}},
            "spec": {"directlyDeletable": false, "initializers": ["root:universal", "system:apibindings"], "owner": reference}});
        self.make(logical_clusters(), &inside, "", "cluster", typed(logical_clusters(), logical));
    }

    /// What every workspace has from the start, then the bindings of its type.
    fn initialise(&mut self, parent: &Arc<str>, name: &Arc<str>, inside: &Arc<str>, object: &Value) {
        if self.read(logical_clusters(), inside, "", "cluster").is_none_or(|logical| logical["status"]["phase"] == "Ready") {
            return;
        }
        let owner = owner_name(object["metadata"]["annotations"][OWNER].as_str().unwrap_or_default());
        let user: Value = serde_json::from_str(&owner).unwrap_or_default();
        let rbac = "rbac.authorization.k8s.io";
        let admin = json!({"metadata": {"annotations": {"internal.kcp.io/replicate": "apis.kcp.io,tenancy.kcp.io"}},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": user["username"]}]});
        self.make(cluster_role_bindings(), inside, "", "workspace-admin", typed(cluster_role_bindings(), admin));
        let namespace = json!({"metadata": {"annotations": {"bootstrap.kcp.io/create-only": "true"},
            "labels": {"kubernetes.io/metadata.name": "default"}}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
        self.make(namespaces(), inside, "", "default", typed(namespaces(), namespace));
        self.bind_defaults(inside, &object["spec"]["type"]);
        let now = self.stamp();
        let path_url = format!("{}/clusters/{inside}", self.options.url);
        self.edit(logical_clusters(), inside, "", "cluster", "", |logical| logical["metadata"]["labels"][PHASE] = "Ready".into());
        self.edit(logical_clusters(), inside, "", "cluster", "status", |logical| {
            logical["status"]["phase"] = "Ready".into();
            logical["status"]["URL"] = path_url.into();
            set_condition(logical, "WorkspaceInitialized", "True", &Value::Null, &now);
        });
        self.edit(workspaces(), parent, "", name, "", |object| {
            object["metadata"]["labels"][PHASE] = "Ready".into();
            object["metadata"]["annotations"][OWNER] = owner.into();
        });
        self.edit(workspaces(), parent, "", name, "status", |object| {
            object["status"]["phase"] = "Ready".into();
            set_condition(object, "WorkspaceInitialized", "True", &Value::Null, &now);
            set_condition(object, "WorkspaceScheduled", "True", &Value::Null, &now);
        });
    }

    /// The default bindings of a type and of those that it extends, every claim accepted.
    fn bind_defaults(&mut self, inside: &Arc<str>, type_: &Value) {
        let mut left = vec![type_.clone()];
        let mut known = Vec::new();
        let mut defaults: Vec<Value> = Vec::new();
        while let Some(type_) = left.pop() {
            let (path, name) = (type_["path"].as_str().unwrap_or(ROOT), type_["name"].as_str().unwrap_or_default());
            let Some(object) = self.resolve(path).and_then(|at| self.read(workspace_types(), &at, "", name)) else { continue };
            if known.contains(&type_) {
                continue;
            }
            let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
            left.extend(list(&object["spec"]["extend"]["with"]));
            defaults.extend(list(&object["spec"]["defaultAPIBindings"]));
            known.push(type_);
        }
        for default in defaults {
            let (path, export) = (default["path"].as_str().unwrap_or(ROOT), default["export"].as_str().unwrap_or_default());
            let name = format!("{export}-{}", self.dice.suffix());
            let mut spec = json!({"reference": {"export": {"path": path, "name": export}}});
            if let Some(claims) =
                self.export_at(path, export).and_then(|(_, object)| object["spec"]["permissionClaims"].as_array().cloned())
            {
                let accept = |mut claim: Value| {
                    claim["state"] = "Accepted".into();
                    claim["selector"] = json!({"matchAll": true});
                    claim
                };
                spec["permissionClaims"] = claims.into_iter().map(accept).collect();
            }
            self.make(bindings(), inside, "", &name, typed(bindings(), json!({"spec": spec})));
        }
    }

    /// Deletes what is in a workspace that is being deleted; when nothing is left, the logical cluster goes.
    pub(super) fn do_empty(&mut self, inside: &Arc<str>) {
        let Some(workspace) = self.workspaces.get_mut(inside) else { return };
        workspace.going = true;
        let last: [&str; 2] = ["clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"];
        let kinds = self.stored_kinds(inside);
        let mut left = 0;
        for late in [false, true] {
            if late && left > 0 {
                return;
            }
            for kind in kinds.iter().filter(|kind| last.contains(&&*kind.storage) == late && kind.storage != logical_clusters().storage) {
                for object in self.all(kind, inside) {
                    let place = Place::of(inside, &object);
                    if !is_going(&object) {
                        self.delete(kind, &place, None);
                    }
                    left += usize::from(self.stored(kind, &place).is_some());
                }
            }
        }
        if left == 0 {
            self.edit(logical_clusters(), inside, "", "cluster", "", |logical| release(logical, OF_LOGICAL_CLUSTER));
        }
    }

    pub(super) fn emptied(&mut self, inside: &Arc<str>) {
        let parent = self.workspaces.get(inside).and_then(|workspace| workspace.parent.clone());
        self.forget(inside);
        if let Some((parent, name)) = parent {
            self.ask(Duration::ZERO, Task::Workspace(parent, name));
        }
    }
}

/// The owner as it is kept: by name alone.
fn owner_name(owner: &str) -> String {
    let owner: Value = serde_json::from_str(owner).unwrap_or_default();
    json!({"username": owner["username"].as_str().unwrap_or("kcp-admin")}).to_string()
}
