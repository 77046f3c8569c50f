//! Clients as values: each knows where it may write, and none can be used in another's place.

use std::sync::Arc;

use secrecy::SecretString;
use serde_json::Value;

use crate::api::meta::{Kind, KindRef};
use crate::api::names::{LogicalCluster, ObjectName};
use crate::mutants::{Mutant, mutated};

use super::access::Kubeconfig;
use super::port::{Answer, Call, CallError, Failure, Port, Target, Verb};

/// Proof that an object carries the actor's finalizer on the server, where the actor has one: without, it only says that the object is there.
#[derive(Clone, Debug)]
pub struct Held<O>(pub(crate) O);

impl<O> Held<O> {
    /// The object as it is now.
    pub const fn object(&self) -> &O {
        &self.0
    }
}

/// What a delete came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The server no longer has it: an answer past every cache.
    Gone,
    /// It waits for its finalizers.
    Going,
}

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) port: Arc<dyn Port>,
    pub(crate) target: Target,
    pub(crate) place: Arc<str>,
}

impl Client {
    async fn send<K: Kind>(&self, name: ObjectName, verb: Verb) -> Result<Answer, CallError> {
        self.port.call(Call { target: self.target, kind: K::REF, name, verb }).await
    }

    pub(crate) async fn get<K: Kind>(&self, name: &ObjectName) -> Result<Option<K>, CallError> {
        match self.send::<K>(name.clone(), Verb::Get).await {
            Ok(Answer::Object(raw)) => self.read("get", name, &raw).map(Some),
            Ok(Answer::Gone) => Ok(None),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn create<K: Kind>(&self, object: &K) -> Result<K, CallError> {
        let name = object.object_name();
        match self.send::<K>(name.clone(), Verb::Create(wire(object)?)).await? {
            Answer::Object(raw) => self.read("create", &name, &raw),
            Answer::Gone => Err(self.unexpected::<K>("create", &name)),
        }
    }

    pub(crate) async fn replace<K: Kind>(&self, object: &K) -> Result<K, CallError> {
        self.put(object.object_name(), wire(object)?).await
    }

    pub(crate) async fn put<K: Kind>(&self, name: ObjectName, whole: Value) -> Result<K, CallError> {
        match self.send::<K>(name.clone(), Verb::Replace(whole)).await? {
            Answer::Object(raw) => self.read("update", &name, &raw),
            Answer::Gone => Err(self.unexpected::<K>("update", &name)),
        }
    }

    pub(crate) async fn delete<K: Kind>(&self, object: &K) -> Result<Removal, CallError> {
        match self.send::<K>(object.object_name(), Verb::Delete { uid: object.meta().uid().to_owned() }).await {
            Ok(Answer::Gone) => Ok(Removal::Gone),
            Ok(Answer::Object(_)) if mutated(Mutant::GoingIsGone) => Ok(Removal::Gone),
            Ok(Answer::Object(_)) => Ok(Removal::Going),
            Err(error) if error.is_not_found() => Ok(Removal::Gone),
            Err(error) => Err(error),
        }
    }

    fn read<K: Kind>(&self, verb: &str, name: &ObjectName, raw: &Value) -> Result<K, CallError> {
        decode(raw)
            .map_err(|problem| CallError::new(format!("{verb} {}", describe(K::REF, &self.place, name)), Failure::Undecodable(problem)))
    }

    fn unexpected<K: Kind>(&self, verb: &str, name: &ObjectName) -> CallError {
        CallError::new(format!("{verb} {}", describe(K::REF, &self.place, name)), Failure::Undecodable("the answer holds no object".into()))
    }
}

macro_rules! verbs {
    ($name:ident, $($inner:tt)+) => {
        impl $name {
            /// Reads an object past every cache; `None` when the server answers that there is none.
            pub async fn get<K: Kind>(&self, name: &ObjectName) -> Result<Option<K>, CallError> {
                self.$($inner)+.get(name).await
            }

            /// Creates an object; [`Failure::AlreadyExists`] when the name is taken.
            pub async fn create<K: Kind>(&self, object: &K) -> Result<K, CallError> {
                self.$($inner)+.create(object).await
            }

            /// Replaces an object whole, under the uid and resourceVersion it carries; a conflict when it changed meanwhile. Fields that
            /// `K` does not hold are lost.
            pub async fn replace<K: Kind>(&self, object: &K) -> Result<K, CallError> {
                self.$($inner)+.replace(object).await
            }

            /// Deletes this very incarnation; a conflict when the name belongs to another one by now.
            pub async fn delete<K: Kind>(&self, object: &K) -> Result<Removal, CallError> {
                self.$($inner)+.delete(object).await
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.$($inner)+.place).finish()
            }
        }
    };
}

/// Reads and writes in one tenant's workspace, and nowhere else. Each method is one request and may be cancelled.
#[derive(Clone)]
pub struct WorkspaceClient {
    pub(crate) client: Client,
    kubeconfig: Option<Kubeconfig>,
}

/// Reads and writes in the provider workspace. Each method is one request and may be cancelled.
#[derive(Clone)]
pub struct PlatformClient(pub(crate) Client);

/// Reads and writes on the workload cluster of the object: the same one as long as its work lasts. Each method is one request and may be
/// cancelled.
#[derive(Clone)]
pub struct WorkloadClient {
    client: Client,
    name: Arc<str>,
    kubeconfig: SecretString,
}

verbs!(WorkspaceClient, client);
verbs!(PlatformClient, 0);
verbs!(WorkloadClient, client);

impl WorkloadClient {
    pub(crate) fn new(port: Arc<dyn Port>, name: &Arc<str>, kubeconfig: SecretString) -> Self {
        let place = format!("the workload cluster {name}").into();
        Self { client: Client { port, target: Target::Workload, place }, name: name.clone(), kubeconfig }
    }

    /// The name of the workload cluster, which names its Secret too; for people, and for what is derived from it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kubeconfig with which it is reached, as text, to be embedded into what is created there. It holds a credential: it is shown by no
    /// `Debug`, and belongs into no log, error or status.
    pub fn kubeconfig(&self) -> &SecretString {
        &self.kubeconfig
    }
}

impl WorkspaceClient {
    pub(crate) fn new(port: Arc<dyn Port>, workspace: &LogicalCluster) -> Self {
        Self { client: Client { port, target: Target::Workspace, place: workspace.as_str().into() }, kubeconfig: None }
    }

    pub(crate) fn with_kubeconfig(self, kubeconfig: Option<Kubeconfig>) -> Self {
        Self { kubeconfig, ..self }
    }

    /// The kubeconfig of the workspace for what runs elsewhere, where [`Inputs::kubeconfig`](super::Inputs::kubeconfig) asked for one. Always there in
    /// `create_or_update`; in `delete` unless none can be had any more.
    pub const fn kubeconfig(&self) -> Option<&Kubeconfig> {
        self.kubeconfig.as_ref()
    }
}

impl PlatformClient {
    pub(crate) fn new(port: Arc<dyn Port>) -> Self {
        Self(Client { port, target: Target::Platform, place: "the provider workspace".into() })
    }
}

/// `kubernetesclusters.kubernetes.edge-connect.eu default/demo in 2hx7`: how errors and logs name an object.
pub(crate) fn describe(kind: KindRef, place: &str, name: &ObjectName) -> String {
    format!("{kind} {name} in {place}")
}

/// Reads an object; the error names the field.
pub(crate) fn decode<K: Kind>(raw: &Value) -> Result<K, String> {
    serde_path_to_error::deserialize(raw).map_err(|error| format!("{}: {}", error.path(), error.inner()))
}

/// Reads an object from text; the error names the field.
pub(crate) fn decode_text<K: Kind>(raw: &str) -> Result<K, String> {
    let mut deserializer = serde_json::Deserializer::from_str(raw);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| format!("{}: {}", error.path(), error.inner()))
}

/// The object as it goes over the wire, with `apiVersion` and `kind`.
pub(crate) fn wire<K: Kind>(object: &K) -> Result<Value, CallError> {
    let unwritable = |problem: String| CallError::new(format!("write {} {}", K::REF, object.object_name()), Failure::Invalid(problem));
    let mut value = serde_json::to_value(object).map_err(|error| unwritable(error.to_string()))?;
    let fields = value.as_object_mut().ok_or_else(|| unwritable("it is not a JSON object".into()))?;
    fields.insert("apiVersion".into(), K::REF.api_version().into());
    fields.insert("kind".into(), K::REF.kind.into());
    Ok(value)
}
