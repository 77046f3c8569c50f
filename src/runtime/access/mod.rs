//! Access to tenants' workspaces for what runs elsewhere: accounts are made and taken away through the virtual workspace, tokens are asked for
//! directly, kept, and replaced in time. One of each (workspace, controller) is minted at once.

mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use parking_lot::Mutex;
use secrecy::SecretString;
use serde_json::Value;
use tokio::sync::Mutex as Turn;
use tracing::info;

use crate::api::names::{LogicalCluster, ObjectName};
use crate::api::reason::Reason;
use crate::reconciler::{Answer, Failure, Kubeconfig, Verb};

use super::clock::Moment;
use super::rest;
use super::telemetry::Metrics;
use super::transport::{Ask, Reply, Transport};

pub(crate) use steps::Account;
use steps::{ENDS, NAMESPACE, PARTS, Part, Token, missing_claim};

/// From the first byte of a request to the last of its answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// How often a Secret is looked at until kcp has filled it, which takes it less than a second.
const LOOKS: u32 = 10;
const LOOK: Duration = Duration::from_millis(300);
/// Between two attempts to replace a token that is still good: a quarter of what is left of its time gets ever shorter.
const RENEWAL_PAUSE: Duration = Duration::from_secs(15);

/// How tokens of an account are come by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    /// It was not tried yet.
    #[default]
    Unknown,
    /// As ourselves: who we are may ask for tokens in tenants' workspaces.
    Direct,
    /// As the account itself, by the token of its Secret.
    Chain,
}

/// What is known of one account in one workspace.
#[derive(Debug, Default)]
struct Entry {
    is_made: bool,
    way: Way,
    /// The token of the account's Secret.
    bootstrap: Option<SecretString>,
    current: Option<Current>,
    /// Objects whose deletion is done and that may still be seen: for those nobody is let in.
    left: BTreeSet<ObjectName>,
}

impl Entry {
    fn found(&mut self, place: &Place, way: Way) {
        if self.way != way {
            info!(workspace = %place.workspace, ?way, "how tokens of a workspace are come by");
            self.way = way;
        }
    }
}

/// A token in use.
#[derive(Clone, Debug)]
struct Current {
    text: SecretString,
    refresh: Duration,
    end: Duration,
    expires: jiff::Timestamp,
}

/// Why there is no access: what a condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

/// What was granted, and when it is to be asked for again.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    pub(crate) kubeconfig: Kubeconfig,
    pub(crate) refresh: Duration,
}

/// Where a workspace is: behind its shard's virtual workspace, and by itself.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) workspace: LogicalCluster,
    /// The base URL behind the virtual workspace.
    pub(crate) base: String,
    /// The address of kcp as a workload sees it, where that is another one.
    pub(crate) external: Option<String>,
    /// The claims that the tenant's bindings grant, as kcp has put them into effect.
    pub(crate) claims: Arc<str>,
}

/// Accounts by workspace and name. Whoever is at work on one has its turn.
type Entries = BTreeMap<(LogicalCluster, String), Arc<Turn<Entry>>>;

/// Mints and keeps tokens: an entry for each workspace in which a reconciler that wants access has had objects since it bound.
pub(crate) struct Minter {
    export: Arc<str>,
    transport: Arc<Transport>,
    metrics: Arc<Metrics>,
    entries: Mutex<Entries>,
}

impl Minter {
    pub(crate) fn new(transport: Arc<Transport>, metrics: Arc<Metrics>, export: Arc<str>) -> Self {
        Self { transport, metrics, entries: Mutex::default(), export }
    }

    fn entry(&self, workspace: &LogicalCluster, account: &Account) -> Arc<Turn<Entry>> {
        self.entries.lock().entry((workspace.clone(), account.name.clone())).or_default().clone()
    }

    /// Forgets a workspace that has unbound.
    pub(crate) fn forget(&self, workspace: &LogicalCluster) {
        self.entries.lock().retain(|(of, _), _| of != workspace);
    }

    /// A kubeconfig for the account, minted when there is none or its time is four fifths over. One that could not be replaced stays in use until
    /// its end. May be cancelled; callers for one account wait for each other.
    pub(crate) async fn grant(&self, place: &Place, account: &Account, of: &ObjectName, now: Moment) -> Result<Granted, Refused> {
        let account = &account.behind(&self.export);
        let entry = self.entry(&place.workspace, account);
        let mut entry = entry.lock().await;
        entry.left.remove(of);
        let current = match entry.current.clone() {
            Some(current) if now.mono < current.refresh => current,
            before => match (self.mint(&mut entry, place, account).await, before) {
                (Ok(token), _) => {
                    let expires = now.wall.checked_add(jiff::SignedDuration::try_from(token.life).unwrap_or_default()).unwrap_or(now.wall);
                    let refresh = now.mono + steps::refresh_after(token.life, &place.workspace);
                    let current = Current { text: token.text, refresh, end: now.mono + token.life, expires };
                    entry.current = Some(current.clone());
                    current
                }
                (Err(_), Some(before)) if now.mono < before.end => {
                    let wait = (before.end.saturating_sub(now.mono) / 4).max(RENEWAL_PAUSE);
                    let current = Current { refresh: before.end.min(now.mono + wait), ..before };
                    // For all objects of the workspace, so that they do not each try.
                    entry.current = Some(current.clone());
                    current
                }
                (Err(refused), _) => {
                    entry.current = None;
                    return Err(refused);
                }
            },
        };
        let host = place.external.as_deref().unwrap_or_else(|| rest::host(self.transport.server())).trim_end_matches('/');
        let server = format!("{host}/clusters/{}", place.workspace);
        let text = steps::kubeconfig(&server, self.transport.authority().as_deref(), &account.name, &current.text);
        Ok(Granted { kubeconfig: Kubeconfig::new(text, current.expires), refresh: current.refresh })
    }

    async fn mint(&self, entry: &mut Entry, place: &Place, account: &Account) -> Result<Token, Refused> {
        let was_made = entry.is_made;
        match self.try_to_mint(entry, place, account).await {
            // Somebody may have taken the account, its Secret or its rights away.
            Err(refused) if was_made && refused.reason == Reason::AccessDenied => {
                *entry = Entry { current: entry.current.take(), left: std::mem::take(&mut entry.left), ..Entry::default() };
                self.try_to_mint(entry, place, account).await
            }
            other => other,
        }
    }

    async fn try_to_mint(&self, entry: &mut Entry, place: &Place, account: &Account) -> Result<Token, Refused> {
        if !entry.is_made {
            for part in PARTS {
                self.make(place, account, part).await?;
            }
            entry.is_made = true;
        }
        if entry.way != Way::Chain {
            match self.ask_for_token(place, account, None).await {
                Ok(token) => {
                    entry.found(place, Way::Direct);
                    return Ok(token);
                }
                Err(refused) if refused.reason != Reason::AccessDenied => return Err(refused),
                Err(_) => entry.found(place, Way::Chain),
            }
        }
        let own = match &entry.bootstrap {
            Some(own) => own.clone(),
            None => self.bootstrap(place, account).await?,
        };
        entry.bootstrap = Some(own.clone());
        self.ask_for_token(place, account, Some(&own)).await
    }

    /// Makes one object of the account, or mends it.
    async fn make(&self, place: &Place, account: &Account, part: Part) -> Result<(), Refused> {
        if part == Part::Role
            && let Some(live) = self.find(place, account, part).await?
        {
            let Some(mended) = account.mended(live) else { return Ok(()) };
            return self.through(place, account, part, &Verb::Replace(mended)).await.map(drop);
        }
        self.through(place, account, part, &Verb::Create(account.body(part))).await.map(drop)
    }

    async fn find(&self, place: &Place, account: &Account, part: Part) -> Result<Option<Value>, Refused> {
        self.through(place, account, part, &Verb::Get).await
    }

    /// The token of the account's Secret, which kcp fills.
    async fn bootstrap(&self, place: &Place, account: &Account) -> Result<SecretString, Refused> {
        self.make(place, account, Part::Secret).await?;
        for _ in 0..LOOKS {
            let secret = self.find(place, account, Part::Secret).await?;
            if let Some(token) = secret.and_then(|secret| steps::filled(&secret, super::transport::from_base64)) {
                return Ok(token);
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(pending("kcp has not filled the token Secret of the provider's account yet".into()))
    }

    /// Sends through the virtual workspace; what is there already, and what is not, is no error.
    async fn through(&self, place: &Place, account: &Account, part: Part, verb: &Verb) -> Result<Option<Value>, Refused> {
        let (kind, name) = (part.kind(), account.object(part));
        let reply = self.send(&rest::ask(&place.base, kind, &name, verb), verb.word(), None).await?;
        match rest::answer(&name, verb, reply.status, &reply.body) {
            Ok(Answer::Object(object)) => Ok(Some(object)),
            Ok(Answer::Gone) | Err(Failure::AlreadyExists | Failure::NotFound) => Ok(None),
            Err(Failure::Forbidden(_) | Failure::Server(404, _)) if !steps::is_granted(&place.claims, kind, word(verb)) => {
                Err(pending(missing_claim(kind, word(verb))))
            }
            Err(Failure::NotAllowed(_)) => {
                Err(pending("the APIBinding of this workspace is being deleted, so nothing is made in it".into()))
            }
            Err(failure) => Err(pending(format!("cannot {} {kind} {name}: {failure}", verb.word()))),
        }
    }

    /// Asks for a token where the workspace is itself: virtual workspaces serve none.
    async fn ask_for_token(&self, place: &Place, account: &Account, own: Option<&SecretString>) -> Result<Token, Refused> {
        let host = rest::host(self.transport.server());
        let url = format!("{host}/clusters/{}/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{}/token", place.workspace, account.name);
        let body = Some(("application/json", Bytes::from(steps::request().to_string())));
        let ask = Ask { method: Method::POST, url, accept: "application/json", body };
        let reply = self.send(&ask, "token", own).await?;
        if reply.status.is_success() {
            return steps::token(&reply.body).map_err(pending);
        }
        let told = rest::message(&reply.body);
        let message = format!("kcp does not give the provider's account a token ({}): {told}", reply.status.as_u16());
        let is_no = matches!(reply.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND);
        Err(Refused { reason: if is_no { Reason::AccessDenied } else { Reason::AccessPending }, message })
    }

    async fn send(&self, ask: &Ask, word: &'static str, own: Option<&SecretString>) -> Result<Reply, Refused> {
        let reply = match own {
            Some(token) => self.transport.send_as(ask, token, DEADLINE).await,
            None => self.transport.send(ask, DEADLINE).await,
        };
        self.metrics.request(word, reply).map_err(|problem| pending(format!("access cannot be set up now: {problem}")))
    }

    /// The deletion of an object is done. With the last one everything of the account goes, `others` being who else is seen in the workspace. What is
    /// gone already is no error, nor is a claim that the tenant has taken back: then the account is theirs.
    pub(crate) async fn leave(&self, place: &Place, account: &Account, of: &ObjectName, others: &[ObjectName]) -> Result<(), Refused> {
        let account = &account.behind(&self.export);
        let entry = self.entry(&place.workspace, account);
        let mut entry = entry.lock().await;
        entry.left.insert(of.clone());
        entry.left.retain(|left| left == of || others.contains(left));
        if others.iter().any(|other| !entry.left.contains(other)) {
            return Ok(());
        }
        for part in ENDS {
            let found = match self.find(place, account, part).await {
                Ok(found) => found,
                Err(_) if !steps::is_granted(&place.claims, part.kind(), "get") => {
                    info!(workspace = %place.workspace, part = %part.kind(), "what was made for the provider's account stays: its claim is not accepted");
                    continue;
                }
                Err(refused) => return Err(refused),
            };
            let Some(uid) = found.as_ref().and_then(|found| found.pointer("/metadata/uid")?.as_str()) else { continue };
            self.through(place, account, part, &Verb::Delete { uid: uid.to_owned() }).await?;
        }
        let left = std::mem::take(&mut entry.left);
        *entry = Entry { left, ..Entry::default() };
        Ok(())
    }
}

/// The verb as a claim names it.
const fn word(verb: &Verb) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::Create(_) => "create",
        Verb::Replace(_) => "update",
        Verb::ApplyStatus { .. } => "patch",
        Verb::Delete { .. } => "delete",
    }
}

const fn pending(message: String) -> Refused {
    Refused { reason: Reason::AccessPending, message }
}
