//! Workspaces by name and by path.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{ROOT, Workspace, World};
use crate::embedded::access::in_root;
use crate::embedded::kinds::kind;
use crate::embedded::served::Served;

/// The exports that every workspace of type `universal` binds. Their kinds are built in here.
pub(crate) const UNIVERSAL: [(&str, &[&str]); 2] =
    [("tenancy.kcp.io", &["workspacetypes", "workspaces"]), ("topology.kcp.io", &["partitions", "partitionsets"])];

impl World {
    /// The logical cluster of a path or of itself.
    pub(crate) fn resolve(&self, workspace: &str) -> Option<Arc<str>> {
        let by_name = || self.workspaces.get_key_value(workspace).map(|(name, _)| name.clone());
        self.paths.get(workspace).cloned().or_else(by_name)
    }

    /// The path of a logical cluster.
    pub(crate) fn path(&self, workspace: &str) -> String {
        self.workspaces.get(workspace).map(|found| found.path.clone()).unwrap_or_default()
    }

    /// The workspace type of a logical cluster: `root:organization`.
    pub(crate) fn type_of(&self, workspace: &Arc<str>) -> String {
        let logical = self.read(logical_clusters(), workspace, "", "cluster").unwrap_or_default();
        logical["metadata"]["annotations"]["internal.tenancy.kcp.io/type"].as_str().unwrap_or_default().to_owned()
    }

    /// Makes `root`: its logical cluster, namespace and workspace types.
    pub(super) fn begin(&mut self) {
        let root: Arc<str> = ROOT.into();
        self.add(root.clone(), ROOT, None);
        let logical = json!({"metadata": {"annotations": {"kcp.io/path": ROOT, "internal.tenancy.kcp.io/type": "root:root"}},
            "spec": {"directlyDeletable": false}, "status": {"phase": "Ready", "URL": format!("{}/clusters/root", self.options.url)}});
        self.make(logical_clusters(), &root, "", "cluster", typed(logical_clusters(), logical));
        let namespace = json!({"metadata": {"labels": {"kubernetes.io/metadata.name": "default"}}, "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"}});
        self.make(namespaces(), &root, "", "default", typed(namespaces(), namespace));
        for (name, child) in [("root", "organization"), ("organization", "universal"), ("team", "universal"), ("universal", "universal")] {
            let defaults: Vec<Value> = if name == "universal" {
                UNIVERSAL.iter().map(|(export, _)| json!({"path": ROOT, "export": export})).collect()
            } else {
                Vec::new()
            };
            let mut spec = json!({"defaultChildWorkspaceType": {"name": child, "path": ROOT}});
            if defaults.is_empty() {
                spec["extend"] = json!({"with": [{"name": "universal", "path": ROOT}]});
            } else {
                spec["defaultAPIBindings"] = defaults.into();
            }
            self.make(workspace_types(), &root, "", name, typed(workspace_types(), json!({"spec": spec})));
        }
        for (export, _) in UNIVERSAL {
            self.make(
                exports(),
                &root,
                "",
                export,
                typed(
                    exports(),
                    json!({"metadata": {"annotations": {"kcp.io/path": ROOT}}, "spec": {"maximalPermissionPolicy": {"local": {}}}}),
                ),
            );
        }
        for object in in_root() {
            let kind = if object["kind"] == "ClusterRole" { cluster_roles() } else { cluster_role_bindings() };
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            self.make(kind, &root, "", &name, object);
        }
        self.settle();
    }

    /// Another URL and other certificates from now on.
    pub(crate) fn is_reached_at(&mut self, url: &str, authority: &str) {
        url.clone_into(&mut self.options.url);
        authority.clone_into(&mut self.options.authority);
        let root: Arc<str> = ROOT.into();
        let own = format!("{url}/clusters/{ROOT}");
        self.edit(logical_clusters(), &root, "", "cluster", "status", |logical| logical["status"]["URL"] = own.into());
        self.edit(config_maps(), &root, "default", "kube-root-ca.crt", "", |map| map["data"]["ca.crt"] = authority.into());
    }

    /// Adds a logical cluster to the index.
    pub(crate) fn add(&mut self, name: Arc<str>, path: &str, parent: Option<(Arc<str>, Arc<str>)>) {
        let shard = self.next_shard % self.shards.len();
        self.next_shard += 1;
        self.paths.insert(path.to_owned(), name.clone());
        let workspace = Workspace {
            shard,
            path: path.to_owned(),
            parent,
            custom: Vec::new(),
            claims: Vec::new(),
            going: false,
            leaving: BTreeSet::new(),
            terminating: BTreeSet::new(),
        };
        self.workspaces.insert(name, workspace);
    }

    /// Takes a logical cluster out of the index; its objects are gone by then.
    pub(crate) fn forget(&mut self, name: &str) {
        self.set_custom(name, |_| Vec::new());
        if let Some(workspace) = self.workspaces.remove(name) {
            // By now the path may be that of another one.
            if self.paths.get(&workspace.path).is_some_and(|other| **other == *name) {
                self.paths.remove(&workspace.path);
            }
        }
    }
}

/// `object` with apiVersion and kind.
pub(crate) fn typed(kind: &Served, mut object: Value) -> Value {
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = (&*kind.names.kind).into();
    object
}

macro_rules! built_in {
    ($($(#[$doc:meta])* $name:ident: $group:literal, $version:literal, $plural:literal;)*) => {
        $($(#[$doc])* pub(crate) fn $name() -> &'static Arc<Served> {
            static KIND: std::sync::OnceLock<&'static Arc<Served>> = std::sync::OnceLock::new();
            KIND.get_or_init(|| kind($group, $version, $plural))
        })*
    };
}

built_in! {
    logical_clusters: "core.kcp.io", "v1alpha1", "logicalclusters";
    workspaces: "tenancy.kcp.io", "v1alpha1", "workspaces";
    workspace_types: "tenancy.kcp.io", "v1alpha1", "workspacetypes";
    exports: "apis.kcp.io", "v1alpha2", "apiexports";
    schemas: "apis.kcp.io", "v1alpha1", "apiresourceschemas";
    bindings: "apis.kcp.io", "v1alpha2", "apibindings";
    slices: "apis.kcp.io", "v1alpha1", "apiexportendpointslices";
    definitions: "apiextensions.k8s.io", "v1", "customresourcedefinitions";
    namespaces: "", "v1", "namespaces";
    config_maps: "", "v1", "configmaps";
    secrets: "", "v1", "secrets";
    accounts: "", "v1", "serviceaccounts";
    cluster_roles: "rbac.authorization.k8s.io", "v1", "clusterroles";
    cluster_role_bindings: "rbac.authorization.k8s.io", "v1", "clusterrolebindings";
    roles: "rbac.authorization.k8s.io", "v1", "roles";
    role_bindings: "rbac.authorization.k8s.io", "v1", "rolebindings";
}
