//! One workspace of a world: what its users do, and what they wait for.

use std::panic::Location;
use std::sync::Arc;

use serde_json::Value;

use crate::api::condition::{Condition, ConditionStatus};
use crate::api::manifest::binding::binding;
use crate::api::meta::{Kind, KindRef};
use crate::api::names::{LogicalCluster, ObjectName};

use super::client::{Client, group_version, object_name, object_path};
use super::resource::Resource;
use super::world::{Shared, Statement};

const BINDINGS: &str = "/apis/apis.kcp.io/v1alpha2/apibindings";

/// A workspace, and its administrator in it. Cheap to clone.
///
/// Objects are named `namespace/name`; a name alone is in the namespace `default`, or cluster-scoped, as its kind is. Every method that is
/// refused by the server fails the test with what the server says.
#[derive(Clone)]
pub struct Workspace {
    pub(super) shared: Arc<Shared>,
    pub(super) name: String,
    pub(super) logical_cluster: LogicalCluster,
    pub(super) client: Client,
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Display for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, self.logical_cluster)
    }
}

impl Workspace {
    /// Its key: what a reconciler sees of it.
    pub fn logical_cluster(&self) -> &LogicalCluster {
        &self.logical_cluster
    }

    /// The administrator, for any request below this workspace.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Applies an object as `kubectl apply --server-side` does and returns what is there then. Any kind that is served here; the namespace is
    /// `default` unless it says another.
    #[track_caller]
    #[allow(clippy::needless_pass_by_value, reason = "the argument is a literal")]
    pub fn apply(&self, object: Value) -> impl Future<Output = Value> {
        let place = Location::caller();
        async move { self.try_apply(&object).await.unwrap_or_else(|problem| self.refused(place, "apply", &object, &problem)) }
    }

    /// The same, where a refusal is what is to be seen: the server's message.
    ///
    /// # Errors
    /// What the server says, with its code.
    pub async fn try_apply(&self, object: &Value) -> Result<Value, String> {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let group_version = group_version(text("/apiVersion"));
        let discovered =
            self.client.get(&group_version).await.ok().map_err(|problem| format!("{} is not served: {problem}", text("/apiVersion")))?;
        let resources = discovered["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_it =
            |resource: &&Value| resource["kind"] == text("/kind") && resource["name"].as_str().is_some_and(|name| !name.contains('/'));
        let resource = resources.iter().find(is_it).ok_or_else(|| format!("{} has no kind {}", text("/apiVersion"), text("/kind")))?;
        let mut object = object.clone();
        let mut path = group_version;
        if resource["namespaced"] == true {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
            path = format!("{path}/namespaces/{namespace}");
            object["metadata"]["namespace"] = namespace.into();
        }
        let (plural, name) = (resource["name"].as_str().unwrap_or_default(), object["metadata"]["name"].as_str().unwrap_or_default());
        self.client.apply(&format!("{path}/{plural}/{name}"), &object).await.ok()
    }

    /// Merges this into an object (RFC 7386: `null` removes a field), as its tenant would with `kubectl patch`.
    #[track_caller]
    pub fn merge<K: Kind>(&self, name: &str, patch: Value) -> impl Future<Output = Value> {
        let (place, at) = (Location::caller(), object_path(K::REF, &object_name(K::REF, name)));
        async move { self.client.merge(&at, &patch).await.ok().unwrap_or_else(|problem| self.refused(place, "merge", &patch, &problem)) }
    }

    /// Merges this into an object's status, as another controller would: `json!({"ready": true})`.
    #[track_caller]
    #[allow(clippy::needless_pass_by_value, reason = "the argument is a literal")]
    pub fn merge_status<K: Kind>(&self, name: &str, status: Value) -> impl Future<Output = Value> {
        let (place, at) = (Location::caller(), format!("{}/status", object_path(K::REF, &object_name(K::REF, name))));
        let patch = serde_json::json!({ "status": status });
        async move { self.client.merge(&at, &patch).await.ok().unwrap_or_else(|problem| self.refused(place, "merge", &patch, &problem)) }
    }

    /// The object as it is now; `None` when there is none.
    ///
    /// # Panics
    /// When it cannot be read as its kind: with the field.
    #[track_caller]
    pub fn get<K: Kind>(&self, name: &str) -> impl Future<Output = Option<K>> {
        let (place, name) = (Location::caller(), object_name(K::REF, name));
        async move {
            let found = self.look(K::REF, &name).await.ok()?;
            Some(read(&found).unwrap_or_else(|problem| panic!("{place}: {} {name} in {self} cannot be read: {problem}", K::REF)))
        }
    }

    /// The same as JSON.
    pub async fn get_json<K: Kind>(&self, name: &str) -> Option<Value> {
        self.look(K::REF, &object_name(K::REF, name)).await.ok()
    }

    /// The Kubernetes Events about an object of this kind and name, each incarnation's, in the order of their names: `reason`, `message`, `count`.
    /// The world's export has to claim them: events, create and patch.
    pub async fn events<K: Kind>(&self, name: &str) -> Vec<Value> {
        let ObjectName { namespace, name } = object_name(K::REF, name);
        let namespace = if namespace.is_empty() { "default" } else { &*namespace };
        let listed = self.client.get(&format!("/api/v1/namespaces/{namespace}/events")).await.ok().unwrap_or_default();
        let about = |event: &&Value| {
            let object = &event["involvedObject"];
            object["apiVersion"] == K::REF.api_version() && object["kind"] == K::REF.kind && object["name"] == *name
        };
        listed["items"].as_array().into_iter().flatten().filter(about).cloned().collect()
    }

    /// Asks for an object's deletion, as its tenant does; finalizers may keep it: see [`Self::gone`].
    ///
    /// # Panics
    /// When the server refuses, or there is no such object.
    #[track_caller]
    pub fn delete<K: Kind>(&self, name: &str) -> impl Future<Output = ()> {
        let (place, at) = (Location::caller(), object_path(K::REF, &object_name(K::REF, name)));
        async move {
            if let Err(problem) = self.client.delete(&at).await.ok() {
                panic!("{place}: delete {at} in {self} was refused: {problem}");
            }
        }
    }

    /// Waits until the object is as wanted and returns it; `what` completes the sentence "the toy …", as in `"is red"`.
    ///
    /// # Panics
    /// When it does not come to be so within [`World::within`](super::World::within): with the object, the requests and the log.
    #[track_caller]
    pub fn eventually<K: Kind>(&self, name: &str, what: &str, mut wanted: impl FnMut(&K) -> bool) -> impl Future<Output = K> {
        let (place, name) = (Location::caller(), object_name(K::REF, name));
        let statement = format!("{} {name} in {self} {what}", K::REF);
        async move {
            let mut asked = Statement::new(&self.shared, statement, place);
            loop {
                asked.seen = Some(self.look(K::REF, &name).await);
                asked.unreadable = None;
                if let Some(Ok(object)) = &asked.seen {
                    match read::<K>(object) {
                        Ok(object) if wanted(&object) => return object,
                        Ok(_) => {}
                        Err(problem) => asked.unreadable = Some(problem),
                    }
                }
                asked.wait().await;
            }
        }
    }

    /// Waits until the object has this condition for its current generation and returns the condition. The object need not be readable.
    ///
    /// # Panics
    /// As [`Self::eventually`].
    #[track_caller]
    pub fn condition<K: Kind>(&self, name: &str, type_: &str, status: ConditionStatus, reason: &str) -> impl Future<Output = Condition> {
        let (place, name) = (Location::caller(), object_name(K::REF, name));
        let statement = format!("{} {name} in {self} has {type_}={} ({reason})", K::REF, status.as_str());
        async move {
            let mut asked = Statement::new(&self.shared, statement, place);
            loop {
                let seen = self.look(K::REF, &name).await;
                if let Some(found) = seen.as_ref().ok().and_then(|object| find(object, type_, status, reason)) {
                    return found;
                }
                asked.seen = Some(seen);
                asked.wait().await;
            }
        }
    }

    /// Waits until there is no such object.
    ///
    /// # Panics
    /// As [`Self::eventually`].
    #[track_caller]
    pub fn gone<K: Kind>(&self, name: &str) -> impl Future<Output = ()> {
        let (place, name) = (Location::caller(), object_name(K::REF, name));
        let statement = format!("{} {name} in {self} is gone", K::REF);
        async move {
            let mut asked = Statement::new(&self.shared, statement, place);
            loop {
                let Ok(found) = self.look(K::REF, &name).await else { return };
                asked.seen = Some(Ok(found));
                asked.wait().await;
            }
        }
    }

    /// Serves a kind here and nowhere else, by a `CustomResourceDefinition`: how a catalog and a configuration are in the provider workspace.
    #[track_caller]
    pub fn define(&self, resource: impl Into<Resource>) -> impl Future<Output = ()> {
        let (place, crd) = (Location::caller(), resource.into().crd());
        async move {
            self.apply_at(place, crd).await;
        }
    }

    /// Binds the world's export and accepts its claims, and waits until its kinds are served; [`World::workspace`](super::World::workspace)
    /// has done so already.
    ///
    /// # Panics
    /// When nothing is exported yet, or it is not bound in time: with the binding.
    #[track_caller]
    pub fn bind(&self) -> impl Future<Output = ()> {
        let place = Location::caller();
        async move {
            let (export, claims) =
                self.shared.exported().unwrap_or_else(|| panic!("{place}: nothing is exported yet: call World::export first"));
            self.apply_at(place, binding(&self.shared.provider_path(), &export, &claims)).await;
            let mut asked = Statement::new(&self.shared, format!("{export} is bound in {self}"), place);
            loop {
                let binding = self.client.get(&format!("{BINDINGS}/{export}")).await.ok();
                if binding.as_ref().is_ok_and(|binding| binding["status"]["phase"] == "Bound") {
                    return;
                }
                asked.seen = Some(binding);
                asked.wait().await;
            }
        }
    }

    /// Deletes the binding: kcp deletes every object of its kinds then, and finalizers keep it as long as they keep them.
    ///
    /// # Panics
    /// When there is no such binding.
    #[track_caller]
    pub fn unbind(&self) -> impl Future<Output = ()> {
        let place = Location::caller();
        async move {
            let (export, _) = self.shared.exported().unwrap_or_default();
            if let Err(problem) = self.client.delete(&format!("{BINDINGS}/{export}")).await.ok() {
                panic!("{place}: {self} cannot unbind {export}: {problem}");
            }
        }
    }

    pub(super) async fn apply_at(&self, place: &Location<'_>, object: Value) -> Value {
        self.try_apply(&object).await.unwrap_or_else(|problem| self.refused(place, "apply", &object, &problem))
    }

    /// The object, or why there is none.
    async fn look(&self, kind: KindRef, name: &ObjectName) -> Result<Value, String> {
        let answer = self.client.get(&object_path(kind, name)).await;
        if answer.is_absent() { Err("there is no such object".into()) } else { answer.ok() }
    }

    fn refused(&self, place: &Location<'_>, verb: &str, object: &Value, problem: &str) -> ! {
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        panic!("{place}: {verb} {kind} {name} in {self} was refused: {problem}\n{object:#}");
    }
}

fn read<K: Kind>(object: &Value) -> Result<K, String> {
    serde_path_to_error::deserialize(object).map_err(|error| format!("{}: {}", error.path(), error.inner()))
}

fn find(object: &Value, type_: &str, status: ConditionStatus, reason: &str) -> Option<Condition> {
    let all = object["status"]["conditions"].as_array()?;
    let found = all.iter().find(|condition| condition["type"] == type_)?;
    let current = found["observedGeneration"] == object["metadata"]["generation"];
    let holds = current && found["status"] == status.as_str() && found["reason"] == reason;
    if holds { serde_json::from_value(found.clone()).ok() } else { None }
}
