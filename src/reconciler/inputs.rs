//! What a reconciler reads beside its object, declared when it is built: an undeclared read does not compile.
//!
//! The runtime opens every stream that an input needs, and re-queues exactly the objects that a change concerns. Who is concerned is said in
//! [`Topic`]s: an object subscribes to some, a change raises some, and an index joins them, so that no change ever scans all objects.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::warn;

use crate::api::meta::{Kind, KindRef, ServiceObject};
use crate::api::names::ObjectName;
use crate::api::reason::Reason;

use super::access::AccessRule;
use super::clients::{Held, Removal, decode_text};
use super::config::ProviderConfig;
use super::context::{AnyView, Sight, Trouble};
use super::merge::over;
use super::{CallError, Context, ReconcileError};

/// What a change can be about, in a provider's own words, for example `eu-de/1.34.2/otc`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(Arc<str>);

impl Topic {
    /// A topic of that text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An input that cannot be read now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} (since {since})")]
pub struct Unavailable {
    /// What failed, for people.
    pub what: String,
    /// Since when it is known to fail, RFC 3339.
    pub since: String,
}

impl ReconcileError for Unavailable {
    fn reason(&self) -> Reason {
        Reason::ReconcileFailed
    }
}

/// A name that came or went in a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameChange {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// Whether it is there now.
    pub present: bool,
}

/// The platform's objects, for a fold.
#[derive(Clone, Copy)]
pub struct Objects<'a>(pub(crate) &'a BTreeMap<KindRef, BTreeMap<ObjectName, Arc<str>>>);

impl Objects<'_> {
    /// The object of that name; `None` when there is none. One that cannot be decoded is `None` too, and each time a fold asks for it a line in
    /// the log says so, with the field: for a fold that asks for what changed, that is once when it comes.
    pub fn get<K: Kind>(&self, name: &ObjectName) -> Option<K> {
        let found = self.0.get(&K::REF)?.get(name).map(|raw| decode_text(raw))?;
        found
            .inspect_err(
                |problem| warn!(kind = %K::REF, %name, %problem, "an object of the platform cannot be read; it counts for nothing"),
            )
            .ok()
    }

    /// All names of a kind, in order.
    pub fn names<K: Kind>(&self) -> impl Iterator<Item = &ObjectName> {
        self.0.get(&K::REF).into_iter().flat_map(BTreeMap::keys)
    }
}

/// One immutable value made from objects of the provider workspace; pure, and folded once per batch of changes.
pub trait View: Send + Sync + Sized + 'static {
    /// What it is made from.
    fn kinds() -> Vec<KindRef>;

    /// The next value: `changed` names what came, changed or went since `before` (everything, the first time).
    ///
    /// One that panics leaves the value as it was, which then grows old as if nothing could be read; with the next change everything is folded as
    /// for the first time.
    fn fold(before: Option<&Self>, all: &Objects<'_>, changed: &[(KindRef, ObjectName)]) -> Self;
}

/// The object of the same namespace and name in the same workspace; any event of it, deletion too, re-queues its owner.
#[derive(Debug)]
pub struct Child<K>(PhantomData<fn() -> K>);

impl<K: Kind> Child<K> {
    /// The child as it was when the call began; `None` when there is none.
    pub fn get<C>(&self, ctx: &Context<C>) -> Result<Option<K>, Unavailable> {
        let sight = ctx.inside.seen.children.get(&K::REF).ok_or_else(|| undeclared(K::REF))?;
        usable(ctx, sight, Duration::MAX)?;
        let Some(raw) = &sight.value else { return Ok(None) };
        decode_text(raw)
            .map(Some)
            .map_err(|problem| Unavailable { what: format!("the {} cannot be read: {problem}", K::REF), since: "now".into() })
    }

    /// The child past every cache: `None` is the server's own word that there is none. One request.
    pub async fn look<C>(&self, ctx: &Context<C>, name: &ObjectName) -> Result<Option<K>, CallError> {
        ctx.clusters.control_plane.get(name).await
    }

    /// Creates the child of an object that is known to wait for it. One request.
    pub async fn create<C, O>(&self, ctx: &Context<C>, _: &Held<O>, child: &K) -> Result<K, CallError> {
        ctx.clusters.control_plane.create(child).await
    }

    /// Replaces the child under the uid and resourceVersion it carries; fields that `K` does not hold stay as [`Self::get`] found them. Where
    /// the child is from elsewhere, a [`Self::look`] for one, they are lost. One request.
    pub async fn update<C>(&self, ctx: &Context<C>, child: &K) -> Result<K, CallError> {
        let shown = ctx.inside.seen.children.get(&K::REF).and_then(|sight| sight.value.as_deref());
        ctx.clusters.control_plane.client.put(child.object_name(), over(shown, child)?).await
    }

    /// Deletes this very incarnation of the child. One request.
    pub async fn delete<C>(&self, ctx: &Context<C>, child: &K) -> Result<Removal, CallError> {
        ctx.clusters.control_plane.delete(child).await
    }
}

/// The names of a kind in the object's workspace, from a metadata-only watch: nothing else of those objects is ever read.
#[derive(Debug)]
pub struct Names<K>(PhantomData<fn() -> K>);

impl<K: Kind> Names<K> {
    /// The names when the call began.
    pub fn get<C>(&self, ctx: &Context<C>) -> Result<Arc<BTreeSet<String>>, Unavailable> {
        let sight = ctx.inside.seen.names.get(&K::REF).ok_or_else(|| undeclared(K::REF))?;
        usable(ctx, sight, Duration::MAX)?;
        Ok(sight.value.clone())
    }
}

/// A view over the provider workspace.
#[derive(Debug)]
pub struct Platform<V>(PhantomData<fn() -> V>);

impl<V: View> Platform<V> {
    /// The view when the call began. A view whose stream is known broken counts for `tolerance`; one that was never complete, or may not be read,
    /// never counts.
    pub fn get<C>(&self, ctx: &Context<C>, tolerance: Duration) -> Result<Arc<V>, Unavailable> {
        let missing = || Unavailable { what: format!("{} was not read yet", std::any::type_name::<V>()), since: "start".into() };
        let sight = ctx.inside.seen.views.get(&TypeId::of::<V>()).ok_or_else(missing)?;
        usable(ctx, sight, tolerance)?;
        sight.value.clone().and_then(|view| view.downcast().ok()).ok_or_else(missing)
    }
}

fn undeclared(kind: KindRef) -> Unavailable {
    Unavailable { what: format!("{kind} is not among the inputs of this reconciler"), since: "start".into() }
}

fn usable<C, T>(ctx: &Context<C>, sight: &Sight<T>, tolerance: Duration) -> Result<(), Unavailable> {
    match &sight.trouble {
        Some(Trouble { what, since, lasted, hard }) if *hard || *lasted > tolerance => {
            ctx.inside.starved.store(true, Ordering::Relaxed);
            Err(Unavailable { what: what.clone(), since: since.clone() })
        }
        _ => Ok(()),
    }
}

/// The declarations of one reconciler over objects `O`.
pub struct Inputs<O> {
    pub(crate) declared: Declared<O>,
}

/// Says whether an object is this reconciler's.
pub(crate) type Only<O> = Box<dyn Fn(&O) -> bool + Send + Sync>;

pub(crate) struct Declared<O> {
    pub(crate) children: Vec<KindRef>,
    pub(crate) names: Vec<NamesInput<O>>,
    pub(crate) platform: Vec<PlatformInput<O>>,
    pub(crate) config: Option<ConfigInput<O>>,
    pub(crate) only: Option<Only<O>>,
    pub(crate) single: bool,
    pub(crate) access: Option<Vec<AccessRule>>,
    pub(crate) external: External,
    pub(crate) secured: bool,
}

/// What a reconciler makes outside of its tenants' workspaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum External {
    /// Nothing that would be left behind with a workspace.
    #[default]
    Nothing,
    /// Something that its own clients lead to.
    Elsewhere,
    /// Something on a workload cluster.
    Workload,
}

pub(crate) struct NamesInput<O> {
    pub(crate) kind: KindRef,
    pub(crate) of: fn(&O) -> Vec<Topic>,
    pub(crate) raised: fn(&NameChange) -> Vec<Topic>,
}

/// The fold of a view without its type.
pub(crate) type Fold = Arc<dyn Fn(Option<&AnyView>, &Objects<'_>, &[(KindRef, ObjectName)]) -> AnyView + Send + Sync>;
/// What lies between two values of a view or a configuration.
pub(crate) type Raised = Arc<dyn Fn(&(dyn Any + Send + Sync), &(dyn Any + Send + Sync)) -> Vec<Topic> + Send + Sync>;

pub(crate) struct PlatformInput<O> {
    pub(crate) view: TypeId,
    pub(crate) kinds: Vec<KindRef>,
    pub(crate) fold: Fold,
    pub(crate) of: fn(&O) -> Vec<Topic>,
    pub(crate) raised: Raised,
}

pub(crate) struct ConfigInput<O> {
    pub(crate) of: fn(&O) -> Vec<Topic>,
    pub(crate) raised: Raised,
}

impl<O: ServiceObject> Inputs<O> {
    pub(crate) fn new() -> Self {
        Self {
            declared: Declared {
                children: Vec::new(),
                names: Vec::new(),
                platform: Vec::new(),
                config: None,
                only: None,
                single: false,
                access: None,
                external: External::Nothing,
                secured: false,
            },
        }
    }

    /// Reads the object of the same namespace and name in the same workspace.
    pub fn child<K: Kind>(&mut self) -> Child<K> {
        self.declared.children.push(K::REF);
        Child(PhantomData)
    }

    /// Reads the names of a kind in the object's workspace. `of` says what an object is concerned by, `raised` what a change is about.
    pub fn names<K: Kind>(&mut self, of: fn(&O) -> Vec<Topic>, raised: fn(&NameChange) -> Vec<Topic>) -> Names<K> {
        self.declared.names.push(NamesInput { kind: K::REF, of, raised });
        Names(PhantomData)
    }

    /// Reads a view of the provider workspace. `of` says what an object is concerned by, `raised` what the change from one value to the next is
    /// about.
    pub fn platform<V: View>(&mut self, of: fn(&O) -> Vec<Topic>, raised: fn(&V, &V) -> Vec<Topic>) -> Platform<V> {
        let fold: Fold = Arc::new(|before, all, changed| Arc::new(V::fold(before.and_then(|view| view.downcast_ref()), all, changed)));
        self.declared.platform.push(PlatformInput { view: TypeId::of::<V>(), kinds: V::kinds(), fold, of, raised: between(raised) });
        Platform(PhantomData)
    }

    /// Says whom a change of the configuration concerns; without it every object is looked at again.
    pub fn config<C: ProviderConfig>(&mut self, of: fn(&O) -> Vec<Topic>, raised: fn(&C, &C) -> Vec<Topic>) {
        self.declared.config = Some(ConfigInput { of, raised: between(raised) });
    }

    /// Asks for a workload cluster: [`ClusterContext::workload`](super::ClusterContext::workload) is there in every call, and it is the same
    /// cluster from the first call about an object to its last. An object that cannot have one is told so, and no call is made.
    ///
    /// Before the first call the work is recorded in the provider workspace, with the object as it was last seen; so `delete` can be called
    /// once the tenant's workspace is gone, and must then be able to finish without it.
    pub fn workload(&mut self) {
        self.declared.external = External::Workload;
    }

    /// Says that this reconciler makes something outside of kcp by other means than a workload cluster, so that its work is recorded as
    /// [`Self::workload`] says.
    pub fn external(&mut self) {
        if self.declared.external == External::Nothing {
            self.declared.external = External::Elsewhere;
        }
    }

    /// Lets this reconciler keep secrets of its tenants for the end of its work: [`Context::secure`] and [`Context::secured`]. Its work is recorded,
    /// as [`Self::external`] says.
    ///
    /// In the namespace of the records it needs the verbs `get`, `list`, `watch`, `create`, `update` and `delete` on `secrets`.
    pub fn secured(&mut self) {
        self.external();
        self.declared.secured = true;
    }

    /// Leaves objects alone for which this says no: another controller's.
    pub fn only(&mut self, mine: impl Fn(&O) -> bool + Send + Sync + 'static) {
        self.declared.only = Some(Box::new(mine));
    }

    /// Asks for a kubeconfig of the object's workspace with these rights: [`WorkspaceClient::kubeconfig`](super::WorkspaceClient::kubeconfig) has it in
    /// every call of `create_or_update`, which is made again when it is another one. Until there is one the object says `AccessPending`, or
    /// `AccessDenied`, and which permission claim is missing. `delete` is called without one where none can be had.
    ///
    /// The runtime keeps the account behind it in the workspace, from before the first call about an object until after the last `delete` of any.
    /// It needs the export's permission claims on `serviceaccounts`, `secrets`, `clusterroles` and `clusterrolebindings`
    /// ([`access_claims`](crate::api::manifest::export::access_claims)), and an actor with a finalizer.
    pub fn kubeconfig(&mut self, rights: impl Into<Vec<AccessRule>>) {
        self.declared.access = Some(rights.into());
    }

    /// Lets one object of the kind count in each workspace: the oldest, by `creationTimestamp` and then uid. The others get `Superseded` in the
    /// actor's first condition and are not handed to [`Reconciler::create_or_update`](super::Reconciler::create_or_update); the next oldest takes
    /// over once the one that counts is gone from the server. Without this any number counts.
    pub fn one_per_workspace(&mut self) {
        self.declared.single = true;
    }
}

fn between<T: Send + Sync + 'static>(raised: fn(&T, &T) -> Vec<Topic>) -> Raised {
    Arc::new(move |before, after| match (before.downcast_ref::<T>(), after.downcast_ref::<T>()) {
        (Some(before), Some(after)) => raised(before, after),
        _ => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Result, Write};
    use std::sync::Mutex;

    use super::*;
    use crate::api::catalog::VirtualMachineType;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_platform_object_that_cannot_be_read_is_told_of_with_its_field() {
        let name = ObjectName::cluster_scoped("large");
        let text = Arc::from(r#"{"metadata": {"name": "large", "labels": 7}, "spec": {}}"#);
        let all = BTreeMap::from([(VirtualMachineType::REF, BTreeMap::from([(name.clone(), text)]))]);
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let found = tracing::subscriber::with_default(subscriber, || Objects(&all).get::<VirtualMachineType>(&name));
        assert!(found.is_none());
        let told = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        let words = [VirtualMachineType::REF.to_string(), "large".to_owned(), "metadata.labels".to_owned()];
        assert!(words.iter().all(|word| told.contains(word)), "{told}");
    }
}
