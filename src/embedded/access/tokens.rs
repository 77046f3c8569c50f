//! Bearer tokens: static ones, and those of `ServiceAccount`s with the claims of kcp's.
//!
//! No clock and no dice: the time comes in as seconds since 1970, and what makes two tokens differ is a count. A token is shaped like a JSON web
//! token, but its signature is a hash over a secret, which nobody else can check: it is for one process, in tests and trials.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{AUTHENTICATED, User};
use crate::embedded::errors::{About, Cause, Refusal};

/// The audience of the server, which a token has by default and must have to be taken.
pub const AUDIENCE: &str = "https://kcp.default.svc";
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// How long after its end a token is still taken, and how long before its beginning; of the library that kcp checks tokens with.
const LEEWAY: i64 = 60;
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// The tokens that the server takes.
pub struct Tokens {
    secret: Vec<u8>,
    fixed: BTreeMap<String, User>,
    issued: AtomicU64,
    /// Those that were read lately and are ours: each request brings one.
    read: Mutex<BTreeMap<String, Arc<Value>>>,
}

/// Tokens that are kept as read; at the limit all are dropped, which costs one reading each.
const READ: usize = 256;

/// Whose token it is, once its signature holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The logical cluster.
    pub workspace: String,
    /// The account's namespace.
    pub namespace: String,
    /// The account's name.
    pub name: String,
    /// The account's UID when the token was issued.
    pub uid: String,
    /// The Secret in the same namespace that has this token; without it, or with another token in it, the token is not taken.
    pub secret: Option<String>,
}

/// A valid `TokenRequest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// At least one.
    pub audiences: Vec<String>,
    /// How long the token is for.
    pub seconds: i64,
}

impl Clone for Tokens {
    fn clone(&self) -> Self {
        let Self { secret, fixed, issued, read } = self;
        let (issued, read) = (AtomicU64::new(issued.load(Ordering::Relaxed)), Mutex::new(read.lock().clone()));
        Self { secret: secret.clone(), fixed: fixed.clone(), issued, read }
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

impl Tokens {
    /// `fixed` are users by token, such as `kcp-admin` in [`super::KCP_ADMIN`]; each has logged in, so that `system:authenticated` is added.
    pub fn new(secret: impl Into<Vec<u8>>, fixed: impl IntoIterator<Item = (String, User)>) -> Self {
        let logged_in = |(token, mut user): (String, User)| {
            if !user.is_in(AUTHENTICATED) {
                user.groups.push(AUTHENTICATED.to_owned());
            }
            (token, user)
        };
        Self { secret: secret.into(), fixed: fixed.into_iter().map(logged_in).collect(), issued: AtomicU64::new(0), read: Mutex::default() }
    }

    /// Whom a token is from, if it is taken at `now` (seconds since 1970): the server answers 401 for `None`, and without any token the user
    /// is [`User::anonymous`]. `exists` says whether there is a `ServiceAccount` of this workspace, namespace, name and UID.
    ///
    /// Whether the Secret of a token is still there is for the caller to ask, with [`Tokens::account`].
    pub fn authenticate(&self, bearer: &str, now: i64, exists: &dyn Fn(&str, &str, &str, &str) -> bool) -> Option<User> {
        if let Some(user) = self.fixed.get(bearer) {
            return Some(user.clone());
        }
        let claims = self.claims(bearer)?;
        let account = account_of(&claims)?;
        let is_legacy = account.secret.is_some();
        let time = |name: &str| claims[name].as_i64();
        let in_time = time("exp").is_none_or(|exp| now - LEEWAY <= exp) && time("nbf").is_none_or(|nbf| now + LEEWAY >= nbf);
        let for_us = is_legacy || claims["aud"].as_array().is_some_and(|list| list.iter().any(|audience| audience == AUDIENCE));
        if !in_time || !for_us || !exists(&account.workspace, &account.namespace, &account.name, &account.uid) {
            return None;
        }
        let mut user = User::service_account(&account.workspace, &account.namespace, &account.name, &account.uid);
        if let Some(id) = claims["jti"].as_str() {
            user.extra.insert(CREDENTIAL.to_owned(), vec![format!("JTI={id}")]);
        }
        Some(user)
    }

    /// The account that a token of ours is for, whether or not it is still taken: its workspace is where a request without `/clusters/…` goes.
    pub fn account(&self, bearer: &str) -> Option<Account> {
        let claims = self.claims(bearer)?;
        account_of(&claims)
    }

    /// A token for `seconds` from `now`, and the second of its end.
    #[allow(clippy::too_many_arguments)]
    pub fn issue(
        &self,
        workspace: &str,
        namespace: &str,
        name: &str,
        uid: &str,
        audiences: &[String],
        seconds: i64,
        now: i64,
    ) -> (String, i64) {
        let end = now + seconds;
        let claims = json!({
            "aud": audiences,
            "exp": end,
            "iat": now,
            "iss": AUDIENCE,
            "jti": self.id(),
            "kubernetes.io": {"clusterName": workspace, "namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
            "nbf": now,
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
        });
        (self.signed(&claims), end)
    }

    /// The token of a Secret of the type `kubernetes.io/service-account-token`: it has no end, and is always the same one.
    pub fn issue_legacy(&self, workspace: &str, namespace: &str, name: &str, uid: &str, secret: &str) -> String {
        let mut claims = json!({"iss": LEGACY_ISSUER, "sub": format!("system:serviceaccount:{namespace}:{name}")});
        for (field, value) in LEGACY_CLAIMS.iter().zip([workspace, namespace, secret, name, uid]) {
            claims[of_issuer(field)] = value.into();
        }
        self.signed(&claims)
    }

    fn id(&self) -> String {
        let count = self.issued.fetch_add(1, Ordering::Relaxed);
        let hash = self.hash(&count.to_be_bytes());
        let number = hash[..16].iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
        let hex = format!("{number:032x}");
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    fn signed(&self, claims: &Value) -> String {
        let head = encode(br#"{"alg":"none+sha256"}"#);
        let signed = format!("{head}.{}", encode(claims.to_string().as_bytes()));
        let signature = encode(&self.hash(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    /// Hashed twice with the secret, since a plain hash over secret and text can be continued by others.
    fn hash(&self, text: &[u8]) -> [u8; 32] {
        let inner = Sha256::new().chain_update(&self.secret).chain_update(text).finalize();
        Sha256::new().chain_update(&self.secret).chain_update(inner).finalize().into()
    }

    /// What a token says, if it is one of ours.
    fn claims(&self, bearer: &str) -> Option<Arc<Value>> {
        if let Some(known) = self.read.lock().get(bearer) {
            return Some(known.clone());
        }
        let claims = Arc::new(self.verified(bearer)?);
        let mut read = self.read.lock();
        if read.len() >= READ {
            read.clear();
        }
        read.insert(bearer.to_owned(), claims.clone());
        Some(claims)
    }

    fn verified(&self, bearer: &str) -> Option<Value> {
        let (signed, signature) = bearer.rsplit_once('.')?;
        if decode(signature)? != self.hash(signed.as_bytes()) {
            return None;
        }
        let (_, payload) = signed.split_once('.')?;
        serde_json::from_slice(&decode(payload)?).ok()
    }
}

/// In the order of the arguments of `issue_legacy`.
const LEGACY_CLAIMS: [&str; 5] = ["clusterName", "namespace", "secret.name", "service-account.name", "service-account.uid"];

fn of_issuer(field: &str) -> String {
    format!("kubernetes.io/serviceaccount/{field}")
}

fn account_of(claims: &Value) -> Option<Account> {
    if claims["iss"] == LEGACY_ISSUER {
        let [workspace, namespace, secret, name, uid] = LEGACY_CLAIMS.map(|field| claims[of_issuer(field)].as_str().map(str::to_owned));
        return Some(Account { workspace: workspace?, namespace: namespace?, name: name?, uid: uid?, secret });
    }
    let claims = &claims["kubernetes.io"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let account = &claims["serviceaccount"];
    let (workspace, namespace) = (text(&claims["clusterName"])?, text(&claims["namespace"])?);
    Some(Account { workspace, namespace, name: text(&account["name"])?, uid: text(&account["uid"])?, secret: None })
}

/// Checks a posted `TokenRequest` of a `ServiceAccount` that is there. An hour and our own audience are the defaults; 422 for less than ten
/// minutes, more than 2^32 seconds or another name, 400 for another namespace.
///
/// Tokens bound to an object are not made: 404 for a Pod or Node, which kcp does not have either, and 400 for others, where kcp knows Secrets.
pub fn token_request(namespace: &str, name: &str, body: &Value) -> Result<Ask, Refusal> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    if text(&body["metadata"]["namespace"]).is_some_and(|own| own != namespace) {
        return Err(Refusal::bad_request("the namespace of the provided object does not match the namespace sent on the request"));
    }
    let about = |name| About { group: "authentication.k8s.io", kind: "TokenRequest", name };
    let invalid = |name, field: &str, shown: &str, why: &str| {
        Refusal::invalid(about(name), &[Cause::new("FieldValueInvalid", field, format!("Invalid value: {shown}: {why}"))])
    };
    if let Some(own) = text(&body["metadata"]["name"]).filter(|own| own != name) {
        return Err(invalid(name, "metadata.name", &format!("{own:?}"), "must match the service account name if specified"));
    }
    let spec = &body["spec"];
    let seconds = spec["expirationSeconds"].as_i64().unwrap_or(3600);
    let wrong = match seconds {
        ..600 => Some("may not specify a duration less than 10 minutes"),
        600..=4_294_967_296 => None,
        _ => Some("may not specify a duration larger than 2^32 seconds"),
    };
    if let Some(why) = wrong {
        return Err(invalid("", "spec.expirationSeconds", &seconds.to_string(), why));
    }
    let bound = &spec["boundObjectRef"];
    if bound.is_object() {
        let name = bound["name"].as_str().unwrap_or_default();
        let kind = bound["kind"].as_str().unwrap_or_default();
        return Err(match kind {
            "Pod" => Refusal::not_found(About { group: "", kind: "pods", name }),
            "Node" => Refusal::not_found(About { group: "", kind: "nodes", name }),
            _ => {
                let version = bound["apiVersion"].as_str().unwrap_or_default();
                let version = if version.contains('/') { version.to_owned() } else { format!("/{version}") };
                Refusal::bad_request(format!("cannot bind token to object of type {version}, Kind={kind}"))
            }
        });
    }
    let mut audiences: Vec<String> = spec["audiences"].as_array().into_iter().flatten().filter_map(text).collect();
    if audiences.is_empty() {
        audiences.push(AUDIENCE.to_owned());
    }
    Ok(Ask { audiences, seconds })
}

/// The answer to a `TokenRequest`, made at `now`.
pub fn token_answer(namespace: &str, name: &str, ask: &Ask, token: &str, now: i64) -> Value {
    let time = |second: i64| jiff::Timestamp::from_second(second).map_or(Value::Null, |time| time.to_string().into());
    json!({
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": time(now)},
        "spec": {"audiences": ask.audiences, "expirationSeconds": ask.seconds, "boundObjectRef": null},
        "status": {"token": token, "expirationTimestamp": time(now + ask.seconds)},
    })
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Base64 for URLs, without padding.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(word >> (18 - 6 * at) & 63) as usize]));
        }
    }
    text
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for chunk in text.as_bytes().chunks(4) {
        let mut word = 0_u32;
        for byte in chunk {
            let digit = ALPHABET.iter().position(|own| own == byte)?;
            word = word << 6 | u32::try_from(digit).ok()?;
        }
        let word = (word << (6 * (4 - chunk.len()))).to_be_bytes();
        bytes.extend_from_slice(word.get(1..chunk.len())?);
    }
    Some(bytes)
}
