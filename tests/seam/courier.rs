//! A provider whose worker, elsewhere, needs a way into the workspace: what it was handed for each object, and whether that shows in a log.

use std::collections::BTreeMap;
use std::io::Write;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kcp_provider_runtime::api::meta::ServiceObject;
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::reconciler::{
    AccessRule, Actor, CallError, Context, Deletion, Inputs, Recheck, Reconciler, Report, ReportedCondition,
};

/// Every kubeconfig that was handed out; clones are the same ones.
#[derive(Clone, Default)]
pub(crate) struct Handed {
    /// By object, in their order; empty where there was none. Those of a deletion are under `delete <name>`.
    texts: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
    holds: Arc<AtomicBool>,
}

impl Handed {
    pub(crate) fn of(&self, name: &str) -> Vec<String> {
        self.texts.lock().unwrap().get(name).cloned().unwrap_or_default()
    }

    /// The tokens that were handed out for an object, each once, in their order.
    pub(crate) fn tokens(&self, name: &str) -> Vec<String> {
        let mut tokens: Vec<String> = self.of(name).iter().map(|text| token(text)).collect();
        tokens.dedup();
        tokens
    }

    /// Whether a worker stays though its object is being deleted.
    pub(crate) fn hold(&self, holds: bool) {
        self.holds.store(holds, Ordering::Relaxed);
    }
}

pub(crate) fn token(kubeconfig: &str) -> String {
    let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("token: "));
    line.unwrap_or_else(|| panic!("a kubeconfig without a token: {kubeconfig}")).to_owned()
}

/// Carries objects to where its worker is, who asks the workspace for more.
pub(crate) struct Courier<O> {
    handed: Handed,
    objects: PhantomData<fn() -> O>,
}

impl<O: ServiceObject> Courier<O> {
    pub(crate) fn new(inputs: &mut Inputs<O>, handed: Handed) -> Self {
        inputs.kubeconfig([AccessRule::new("", &["configmaps"], &["get", "list", "create"])]);
        Self { handed, objects: PhantomData }
    }

    fn take(&self, name: String, text: String) {
        self.handed.texts.lock().unwrap().entry(name).or_default().push(text);
    }
}

#[async_trait]
impl<O: ServiceObject> Reconciler for Courier<O> {
    type Object = O;
    type Config = ();
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "courier", finalizer: Some("toys.test/courier"), conditions: &["Delivered"] }
    }

    async fn create_or_update(&self, ctx: &Context<()>, object: &O) -> Result<Report, CallError> {
        let kubeconfig = ctx.clusters.control_plane.kubeconfig().expect("it was asked for");
        self.take(object.meta().name.clone(), kubeconfig.expose().to_owned());
        Ok(Report::new(()).with(ReportedCondition::new("Delivered", true, Reason::Ready, format!("{kubeconfig:?}"))))
    }

    async fn delete(&self, ctx: &Context<()>, object: &O) -> Result<Deletion, CallError> {
        let text = ctx.clusters.control_plane.kubeconfig().map(|kubeconfig| kubeconfig.expose().to_owned());
        self.take(format!("delete {}", object.meta().name), text.unwrap_or_default());
        if !self.handed.holds.load(Ordering::Relaxed) {
            return Ok(Deletion::Done);
        }
        let going = ReportedCondition::new("Delivered", false, Reason::Deleting, "its worker is still there");
        Ok(Deletion::Pending(Report::new(()).with(going).recheck(Recheck::After(Duration::from_mins(1)))))
    }
}

/// Everything that is logged.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Listens on this thread to every level, until the guard is dropped.
    pub(crate) fn listen(&self) -> tracing::subscriber::DefaultGuard {
        let writer = self.clone();
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone()).finish();
        tracing::subscriber::set_default(subscriber)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
