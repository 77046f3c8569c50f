//! The ways to workload clusters: one for each, made from its Secret when it is needed, and made anew when the Secret has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::Secret;
use parking_lot::Mutex;
use secrecy::SecretString;

use crate::api::names::ObjectName;
use crate::reconciler::Verb;

use super::external::{KUBECONFIG, Lack, Member, SECRET};
use super::rest;
use super::telemetry::Metrics;
use super::transport::{Transport, Wire};

/// From the first byte of a request to the last of its answer.
const DEADLINE: Duration = Duration::from_secs(30);
/// Ways that are open at once at most: each holds a kubeconfig and a few idle connections. Whoever needs one more takes the place of the one that
/// was not needed for longest.
const MAX_OPEN: usize = 64;

/// A workload cluster as it is reached.
pub(crate) struct Connection {
    pub(crate) name: Arc<str>,
    /// How errors name it.
    pub(crate) place: Box<str>,
    pub(crate) kubeconfig: SecretString,
    pub(crate) transport: Transport,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Where Secrets are read.
pub(crate) struct Door<'a> {
    pub(crate) transport: &'a Transport,
    pub(crate) metrics: &'a Metrics,
    pub(crate) base: &'a str,
    pub(crate) namespace: &'a str,
}

/// All ways to workload clusters.
#[derive(Default)]
pub(crate) struct Workloads {
    /// Servers of this process, by the URL that a kubeconfig has for them.
    wires: BTreeMap<String, Wire>,
    /// How many requests to one of them may wait for their headers at once.
    requests: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Who is in the pool: to others no way is kept.
    known: BTreeSet<Arc<str>>,
    open: BTreeMap<Arc<str>, Open>,
    uses: u64,
}

struct Open {
    /// The resourceVersion of the Secret that it was made from.
    version: Box<str>,
    connection: Arc<Connection>,
    used: u64,
}

impl Workloads {
    pub(crate) fn new(wires: BTreeMap<String, Wire>, requests: usize) -> Self {
        Self { wires, requests, inner: Mutex::default() }
    }

    /// Who is in the pool now; the ways to others are closed once their last call has ended.
    pub(crate) fn keep(&self, names: BTreeSet<Arc<str>>) {
        let mut inner = self.inner.lock();
        inner.open.retain(|name, _| names.contains(name));
        inner.known = names;
    }

    /// Forgets a way whose credentials were refused: the next call reads the Secret again.
    pub(crate) fn distrust(&self, connection: &Arc<Connection>) {
        let mut inner = self.inner.lock();
        if inner.open.get(&connection.name).is_some_and(|open| Arc::ptr_eq(&open.connection, connection)) {
            inner.open.remove(&connection.name);
        }
    }

    /// The way to a workload cluster; at most one request, for its Secret, and none where that has not changed.
    pub(crate) async fn connect(&self, door: &Door<'_>, member: &Member) -> Result<Arc<Connection>, Lack> {
        if let Some(open) = self.open(member) {
            return Ok(open);
        }
        let (version, kubeconfig) = read(door, &member.name).await?;
        let unusable = |problem: String| {
            let (namespace, name) = (door.namespace, &member.name);
            Lack::denied(format!("the kubeconfig in the Secret {namespace}/{name} of the provider workspace cannot be used: {problem}"))
        };
        let transport = Transport::of_kubeconfig(&kubeconfig, self.requests, &self.wires).await.map_err(unusable)?;
        let place = format!("the workload cluster {}", member.name).into();
        let connection = Arc::new(Connection { name: member.name.clone(), place, kubeconfig, transport });
        self.put(version, &connection);
        Ok(connection)
    }

    /// The way that is open, if it was made from this state of the Secret, or from a later one.
    fn open(&self, member: &Member) -> Option<Arc<Connection>> {
        let mut inner = self.inner.lock();
        inner.uses += 1;
        let uses = inner.uses;
        let open = inner.open.get_mut(&member.name)?;
        let number = |version: &str| version.parse::<u64>().ok();
        let is_as_new = number(&open.version).zip(number(&member.version)).is_some_and(|(open, wanted)| open >= wanted);
        if !is_as_new && open.version != member.version {
            return None;
        }
        open.used = uses;
        Some(open.connection.clone())
    }

    fn put(&self, version: Box<str>, connection: &Arc<Connection>) {
        let mut inner = self.inner.lock();
        if !inner.known.contains(&connection.name) {
            return;
        }
        if inner.open.len() >= MAX_OPEN
            && !inner.open.contains_key(&connection.name)
            && let Some(least) = inner.open.iter().min_by_key(|(_, open)| open.used).map(|(name, _)| name.clone())
        {
            inner.open.remove(&least);
        }
        let used = inner.uses;
        inner.open.insert(connection.name.clone(), Open { version, connection: connection.clone(), used });
    }
}

/// The Secret's resourceVersion and its kubeconfig.
async fn read(door: &Door<'_>, name: &str) -> Result<(Box<str>, SecretString), Lack> {
    let at = format!("the Secret {}/{name} of the provider workspace", door.namespace);
    let object = ObjectName::namespaced(door.namespace, name);
    let ask = rest::ask(door.base, SECRET, &object, &Verb::Get);
    let reply = door.metrics.request(Verb::Get.word(), door.transport.send(&ask, DEADLINE).await);
    let reply = reply.map_err(|problem| Lack::pending(format!("{at} cannot be read: {problem}")).passing())?;
    match reply.status {
        status if status.is_success() => {}
        StatusCode::NOT_FOUND => return Err(Lack::pending(format!("{at} is not there"))),
        StatusCode::FORBIDDEN => return Err(Lack::denied(format!("{at} may not be read: {}", rest::message(&reply.body))).passing()),
        status => return Err(Lack::pending(format!("{at} cannot be read: the server answered {status}")).passing()),
    }
    // What it holds is in no error.
    let secret: Secret = serde_json::from_slice(&reply.body).map_err(|_| Lack::denied(format!("{at} cannot be decoded")))?;
    let version = secret.metadata.resource_version.unwrap_or_default().into();
    let held = secret.data.unwrap_or_default().remove(KUBECONFIG).ok_or_else(|| Lack::denied(format!("{at} has no key {KUBECONFIG}")))?;
    let text = String::from_utf8(held.0).map_err(|_| Lack::denied(format!("the kubeconfig in {at} is no text")))?;
    Ok((version, text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, version: u64) -> Member {
        Member { name: name.into(), purpose: "workload".into(), closed: false, version: version.to_string().into() }
    }

    async fn connection(name: &str) -> Arc<Connection> {
        let text = "{current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], \
            clusters: [{name: a, cluster: {server: 'https://a.invalid'}}], users: [{name: a, user: {token: t}}]}";
        let kubeconfig = SecretString::from(text.to_owned());
        let transport = Transport::of_kubeconfig(&kubeconfig, 1, &BTreeMap::new()).await.unwrap();
        Arc::new(Connection { name: name.into(), place: name.into(), kubeconfig, transport })
    }

    #[tokio::test]
    async fn a_way_is_kept_while_its_secret_is_as_it_was_and_in_the_pool() {
        let workloads = Workloads::new(BTreeMap::new(), 1);
        let one = connection("one").await;
        workloads.put("7".into(), &one);
        assert!(workloads.open(&member("one", 7)).is_none(), "it is in no pool");
        workloads.keep(["one".into()].into());
        workloads.put("7".into(), &one);
        let open = |version| workloads.open(&member("one", version)).is_some();
        assert_eq!([open(6), open(7), open(8)], [true, true, false], "it was made from the seventh state");
        workloads.distrust(&connection("one").await);
        assert!(open(7), "another one was refused");
        workloads.distrust(&one);
        assert!(!open(7));
        workloads.put("7".into(), &one);
        workloads.keep(["two".into()].into());
        assert!(!open(7));
    }

    #[tokio::test]
    async fn the_way_that_was_not_needed_for_longest_makes_place() {
        let workloads = Workloads::new(BTreeMap::new(), 1);
        let names: Vec<String> = (0..=MAX_OPEN).map(|at| format!("c{at}")).collect();
        workloads.keep(names.iter().map(|name| Arc::from(name.as_str())).collect());
        let is_open = |name: &str| workloads.open(&member(name, 1)).is_some();
        for name in &names[..MAX_OPEN] {
            assert!(!is_open(name));
            workloads.put("1".into(), &connection(name).await);
        }
        assert!(is_open("c0"), "it is needed again");
        workloads.put("1".into(), &connection(&names[MAX_OPEN]).await);
        assert_eq!([is_open("c0"), is_open("c1"), is_open(&names[MAX_OPEN])], [true, false, true]);
        assert_eq!(workloads.inner.lock().open.len(), MAX_OPEN);
    }
}
