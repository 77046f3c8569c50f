//! What a reconciler keeps of its tenant's secrets, so that its work can be ended when the tenant's workspace is not there any more.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};

use super::Context;
use super::port::{CallError, Failure};

/// What one Secret may hold, by the rule of Kubernetes, in bytes; its keys count here too, so that they are bounded as well.
const HOLDS: usize = 1 << 20;
/// The longest key, by the same rule.
const LONGEST_KEY: usize = 253;

/// Where secrets are kept for the end of one piece of work.
#[async_trait]
pub(crate) trait Safe: Send + Sync {
    async fn keep(&self, secrets: BTreeMap<String, SecretString>) -> Result<(), CallError>;
    async fn kept(&self) -> Result<Option<BTreeMap<String, SecretString>>, CallError>;
}

impl<C> Context<C> {
    /// Keeps what the end of this object's work needs, in a Secret of the provider workspace, in place of everything that was kept before.
    ///
    /// Where a tenant's workspace is deleted, its Secrets go first: call this in `create_or_update` before the work begins, each time, with what
    /// the tenant's Secret holds by then. Nothing is sent where the same is kept already; what is new takes one request, and one more the first
    /// time, by which the record of the work says so. What is kept goes after `delete` has said [`Done`](super::Deletion::Done), and before the record.
    ///
    /// # Errors
    /// [`Failure::Invalid`], and nothing is sent, where the reconciler has not said [`Inputs::secured`](super::Inputs::secured), where nothing is
    /// recorded, for a key that no Secret may have, and for more than 1,048,576 bytes, keys and values together. Then nothing may be begun that
    /// needs them.
    pub async fn secure(&self, secrets: BTreeMap<String, SecretString>) -> Result<(), CallError> {
        fits(&secrets).map_err(|why| self.refused("keep", why))?;
        self.safe("keep")?.keep(secrets).await
    }

    /// What [`Self::secure`] has kept, past every cache, also when the tenant's workspace is not there any more. One request.
    ///
    /// `None` says that nothing was kept: nothing that needs it was ever begun, or all of it has ended.
    ///
    /// # Errors
    /// [`Failure::NotFound`] where something was kept and somebody has taken it away: the work must not count as ended. [`Failure::Invalid`]
    /// where the reconciler has not said [`Inputs::secured`](super::Inputs::secured).
    pub async fn secured(&self) -> Result<Option<BTreeMap<String, SecretString>>, CallError> {
        self.safe("read")?.kept().await
    }

    fn safe(&self, verb: &str) -> Result<&Arc<dyn Safe>, CallError> {
        let undeclared = || self.refused(verb, "this reconciler keeps none, for it has not declared inputs.secured()".into());
        self.inside.safe.as_ref().ok_or_else(undeclared)
    }

    fn refused(&self, verb: &str, why: String) -> CallError {
        CallError::new(format!("{verb} the secrets of the work for {}", self.workspace), Failure::Invalid(why))
    }
}

/// Whether one Secret can hold them. The reason tells no key, for it may be a value that came into the wrong place.
fn fits(secrets: &BTreeMap<String, SecretString>) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_key = |key: &String| (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(is_plain) && key != "." && !key.starts_with("..");
    if let Some(at) = secrets.keys().position(|key| !is_key(key)) {
        let (place, all) = (at + 1, secrets.len());
        return Err(format!(
            "key {place} of {all}, in their order, is none of a Secret's: letters, digits, -, _ and ., {LONGEST_KEY} at most"
        ));
    }
    let size: usize = secrets.iter().map(|(key, value)| key.len() + value.expose_secret().len()).sum();
    if size > HOLDS { Err(format!("they are {size} bytes, and a Secret holds {HOLDS}")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(key: &str, bytes: usize) -> Result<(), String> {
        fits(&BTreeMap::from([("a".to_owned(), "b".into()), (key.to_owned(), "x".repeat(bytes).into())]))
    }

    #[test]
    fn a_secret_holds_a_mebibyte_and_what_is_more_is_named() {
        assert_eq!(told("key", HOLDS - 5), Ok(()));
        assert_eq!(told("key", HOLDS - 4).unwrap_err(), "they are 1048577 bytes, and a Secret holds 1048576");
    }

    #[test]
    fn a_key_that_no_secret_may_have_is_refused_and_not_repeated() {
        for key in ["cloud.yaml", "_", "A-1", ".dockerconfigjson"] {
            assert_eq!(told(key, 1), Ok(()), "{key}");
        }
        for key in ["", ".", "..", "..a", "can/ary", "can ary", "canarÿ", &"canary".repeat(43)] {
            let why = told(key, 1).unwrap_err();
            assert!(why.contains("of 2") && !why.contains("canary") && why.len() < 120, "{why}");
        }
    }
}
