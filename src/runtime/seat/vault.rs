//! The secrets that are kept for the end of one piece of work: they are there before what needs them begins, and gone before its record is.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use secrecy::SecretString;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::api::names::ObjectName;
use crate::reconciler::{Answer, Call, CallError, Failure, Port, Safe, Target, Verb};
use crate::runtime::core::Event;
use crate::runtime::external::{Entry, Keeping, Record, SECRET};
use crate::runtime::port::LivePort;
use crate::runtime::secured::{self, Kept};

use super::external::Index;

/// The Secret beside one record.
pub(super) struct Vault {
    live: Arc<LivePort>,
    namespace: Arc<str>,
    known: Mutex<Known>,
}

/// What is known of both, as of the last word about them in this call. One request about them is under way at once.
struct Known {
    record: Option<Record>,
    kept: Option<Kept>,
}

impl Vault {
    pub(super) fn new(live: &Arc<LivePort>, namespace: &Arc<str>, record: Option<Record>, kept: Option<Kept>) -> Self {
        Self { live: live.clone(), namespace: namespace.clone(), known: Mutex::new(Known { record, kept }) }
    }

    /// Takes away what was kept. The record says first that the work has ended, so that nobody is asked to end it again without.
    pub(super) async fn empty(&self) -> Result<(), CallError> {
        let mut known = self.known.lock().await;
        let Some(record) = known.record.clone() else { return Ok(()) };
        if record.entry.keeping == Keeping::Kept {
            known.record = Some(self.note(&record, Keeping::Ended).await?);
        }
        let kept = match known.kept.take() {
            None if record.entry.keeping != Keeping::Nothing => self.find(&record).await?,
            kept => kept,
        };
        if let Some(kept) = kept {
            match self.call(&record, Verb::Delete { uid: kept.uid.to_string() }).await {
                Ok(_) => {}
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes the Secret; the first one who does finds it there where an answer was lost.
    async fn store(&self, record: &Record, secrets: &BTreeMap<String, SecretString>, known: Option<Kept>) -> Result<Kept, CallError> {
        let known = match known {
            Some(known) => known,
            None => match self.write(record, secrets, None).await {
                Err(error) if *error.failure() == Failure::AlreadyExists => {
                    let found = self.find(record).await?.ok_or(error)?;
                    if found.digest == secured::digest(secrets) {
                        self.live.tell(Event::Secured(found.clone())).await;
                        return Ok(found);
                    }
                    found
                }
                answer => return answer,
            },
        };
        self.write(record, secrets, Some(&known)).await
    }

    async fn write(&self, record: &Record, secrets: &BTreeMap<String, SecretString>, known: Option<&Kept>) -> Result<Kept, CallError> {
        let body = secured::manifest(&self.namespace, record, secrets, known);
        let verb = if known.is_some() { Verb::Replace(body) } else { Verb::Create(body) };
        match self.call(record, verb).await? {
            Answer::Object(object) => {
                let kept = Kept::of(&object);
                self.live.tell(Event::Secured(kept.clone())).await;
                Ok(kept)
            }
            Answer::Gone => Err(self.failed("write", record, Failure::Undecodable("the answer holds no object".into()))),
        }
    }

    /// The Secret past every cache, whole; `None` is the server's own word that there is none.
    async fn get(&self, record: &Record) -> Result<Option<Value>, CallError> {
        match self.call(record, Verb::Get).await {
            Ok(Answer::Object(object)) => Ok(Some(object)),
            Ok(Answer::Gone) => Ok(None),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn find(&self, record: &Record) -> Result<Option<Kept>, CallError> {
        Ok(self.get(record).await?.map(|object| Kept::of(&object)))
    }

    /// Writes into the record what is kept beside it.
    async fn note(&self, record: &Record, keeping: Keeping) -> Result<Record, CallError> {
        let entry = Entry { keeping, ..record.entry.clone() };
        let index = Index { live: &self.live, namespace: &self.namespace, name: &record.name };
        index.write(&entry, Some(record)).await
    }

    async fn call(&self, record: &Record, verb: Verb) -> Result<Answer, CallError> {
        let name = ObjectName::namespaced(self.namespace.clone(), &*record.name);
        self.live.call(Call { target: Target::Platform, kind: SECRET, name, verb }).await
    }

    fn failed(&self, verb: &str, record: &Record, failure: Failure) -> CallError {
        CallError::new(format!("{verb} the secrets that are kept in {}/{}", self.namespace, record.name), failure)
    }
}

#[async_trait]
impl Safe for Vault {
    async fn keep(&self, secrets: BTreeMap<String, SecretString>) -> Result<(), CallError> {
        let mut known = self.known.lock().await;
        let Some(record) = known.record.clone() else {
            let why = "nothing is recorded of the work, so that nobody would find them".to_owned();
            return Err(CallError::new("keep the secrets of the work", Failure::Invalid(why)));
        };
        if known.kept.as_ref().is_none_or(|kept| kept.digest != secured::digest(&secrets)) {
            known.kept = Some(self.store(&record, &secrets, known.kept.clone()).await?);
        }
        if record.entry.keeping != Keeping::Kept {
            known.record = Some(self.note(&record, Keeping::Kept).await?);
        }
        Ok(())
    }

    async fn kept(&self) -> Result<Option<BTreeMap<String, SecretString>>, CallError> {
        let known = self.known.lock().await;
        let Some(record) = &known.record else { return Ok(None) };
        match self.get(record).await? {
            // What was seen of it before tells: an earlier state may hold what is not good any more.
            Some(object) if known.kept.as_ref().is_some_and(|kept| Kept::of(&object).is_before(kept)) => {
                Err(self.failed("read", record, Failure::Conflict("an earlier state of it was shown".into())))
            }
            Some(object) => {
                let contents = secured::contents(&object);
                contents.map(Some).map_err(|problem| self.failed("read", record, Failure::Undecodable(problem)))
            }
            None if record.entry.keeping == Keeping::Nothing => Ok(None),
            None => Err(self.failed("read", record, Failure::NotFound)),
        }
    }
}
