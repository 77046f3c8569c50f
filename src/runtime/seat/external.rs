//! External work in a call: it is recorded before it begins, and its record goes after it.

use std::sync::Arc;

use serde_json::Value;

use crate::api::meta::Kind;
use crate::api::names::{ObjectKey, ObjectName};
use crate::reconciler::{Answer, Call, CallError, Failure, Port, Reconciler, Safe, Target, Verb, WorkloadClient};
use crate::runtime::core::Event;
use crate::runtime::external::{CONFIG_MAP, Choice, Entry, ExternalWork, Keeping, Lack, Record, essence};
use crate::runtime::finalizer::{Step, carries};
use crate::runtime::port::LivePort;
use crate::runtime::workload::Connection;

use super::vault::Vault;
use super::{Seat, Trouble};

/// What a call needs for external work.
#[derive(Default)]
pub(super) struct Footing {
    /// The namespace of the index, and the record in it.
    record: Option<(Arc<str>, Record)>,
    workload: Option<Arc<Connection>>,
    /// What is kept beside the record, for a reconciler that keeps something.
    vault: Option<Arc<Vault>>,
}

/// Why a call cannot have it.
pub(super) enum Refusal {
    /// The object is told why.
    Lack(Lack),
    Trouble(Trouble),
    /// Nothing was ever begun, so that nothing has to be ended.
    Nothing,
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        match error.failure() {
            // It does not mend itself, such as a namespace that is not there: somebody has to be told.
            Failure::Forbidden(_) | Failure::Invalid(_) | Failure::Undecodable(_) | Failure::Server(..500, _) => {
                Self::Lack(Lack::denied(format!("the index of external work in the provider workspace: {error}")).passing())
            }
            _ => Self::Trouble(Trouble::Call(error)),
        }
    }
}

impl Footing {
    /// The client of the workload cluster.
    pub(super) fn client(&self, port: &Arc<dyn Port>) -> Option<WorkloadClient> {
        let connection = self.workload.as_ref()?;
        Some(WorkloadClient::new(port.clone(), &connection.name, connection.kubeconfig.clone()))
    }

    /// Where the reconciler keeps what the end needs.
    pub(super) fn safe(&self) -> Option<Arc<dyn Safe>> {
        self.vault.clone().map(|vault| vault as Arc<dyn Safe>)
    }

    /// Whether the reconciler has said before that nothing of the work is left; what it needed for that may be gone.
    pub(super) fn has_ended(&self) -> bool {
        self.record.as_ref().is_some_and(|(_, record)| record.entry.keeping == Keeping::Ended)
    }

    /// Takes the record away, and before it what was kept beside it: nothing of the work is left.
    pub(super) async fn finish(&self, live: &LivePort) -> Result<(), CallError> {
        let Some((namespace, record)) = &self.record else { return Ok(()) };
        if let Some(vault) = &self.vault {
            vault.empty().await?;
        }
        let name = ObjectName::namespaced(namespace.clone(), &*record.name);
        let verb = Verb::Delete { uid: record.uid.to_string() };
        match live.call(Call { target: Target::Platform, kind: CONFIG_MAP, name, verb }).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        live.tell(Event::Forgotten(record.name.clone())).await;
        Ok(())
    }
}

impl<R: Reconciler> Seat<R> {
    /// Makes sure that the work of an object is recorded and its workload cluster can be reached, before the reconciler is called.
    pub(super) async fn stand(
        &self,
        live: &Arc<LivePort>,
        external: ExternalWork,
        key: &ObjectKey,
        path: Option<&str>,
        raw: &Value,
        step: Step,
    ) -> Result<Footing, Refusal> {
        let ExternalWork { namespace, name, export, record, kept, choice, orphan: _ } = external;
        let vault = |record: Option<Record>| self.declared.secured.then(|| Arc::new(Vault::new(live, &namespace, record, kept)));
        let index = Index { live, namespace: &namespace, name: &name };
        match step {
            Step::CreateOrUpdate => {
                let mut workload = match (&choice, &record) {
                    (Some(choice), _) => Some(index.reach(choice, None).await?),
                    (None, _) => None,
                };
                let mut entry = self.entry(&export, key, path, raw, workload.as_ref().map(|connection| connection.name.clone()));
                let record = index.keep(&mut entry, record).await?;
                // Another call had recorded it elsewhere.
                if let (Some(choice), Some(cluster)) = (&choice, &record.entry.cluster)
                    && workload.as_ref().is_none_or(|connection| connection.name != *cluster)
                {
                    workload = Some(index.reach(choice, Some(cluster)).await?);
                }
                Ok(Footing { vault: vault(Some(record.clone())), record: Some((namespace.clone(), record)), workload })
            }
            Step::Delete => {
                let record = match record {
                    Some(record) => Some(record),
                    None => index.find().await?,
                };
                let begun = record.is_some() || self.actor.finalizer.is_some_and(|finalizer| carries(raw, finalizer));
                let workload = match &choice {
                    None => None,
                    Some(choice) => {
                        let recorded = record.as_ref().and_then(|record| record.entry.cluster.as_ref());
                        match index.reach(choice, recorded).await {
                            Ok(connection) => Some(connection),
                            Err(Refusal::Lack(_)) if !begun => return Err(Refusal::Nothing),
                            Err(refusal) => return Err(refusal),
                        }
                    }
                };
                Ok(Footing { vault: vault(record.clone()), record: record.map(|record| (namespace.clone(), record)), workload })
            }
        }
    }

    fn entry(&self, export: &str, key: &ObjectKey, path: Option<&str>, raw: &Value, cluster: Option<Arc<str>>) -> Entry {
        Entry {
            controller: self.actor.name.into(),
            export: export.into(),
            key: key.clone(),
            uid: raw.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().into(),
            kind: R::Object::REF.resource().into(),
            path: path.map(Into::into),
            cluster,
            object: essence(raw).to_string().into(),
            keeping: Keeping::Nothing,
        }
    }
}

/// One record's place in the index.
pub(super) struct Index<'a> {
    pub(super) live: &'a LivePort,
    pub(super) namespace: &'a Arc<str>,
    pub(super) name: &'a str,
}

impl Index<'_> {
    /// The way to a workload cluster: to the one that is recorded, or else to the chosen one.
    async fn reach(&self, choice: &Choice, recorded: Option<&Arc<str>>) -> Result<Arc<Connection>, Refusal> {
        let chosen = match recorded {
            Some(recorded) => recorded,
            None => choice.chosen.as_ref().map_err(|lack| Refusal::Lack(lack.clone()))?,
        };
        let member = choice.member(chosen, self.namespace).map_err(Refusal::Lack)?;
        self.live.reach(self.namespace, member).await.map_err(Refusal::Lack)
    }

    /// Writes the record where it is not as it should be. The cluster that is recorded stays, and that secrets are kept: the entry takes both over.
    async fn keep(&self, entry: &mut Entry, known: Option<Record>) -> Result<Record, Refusal> {
        let known = match known {
            Some(known) => known,
            None => match self.write(entry, None).await {
                Ok(record) => return Ok(record),
                Err(error) if *error.failure() == Failure::AlreadyExists => {
                    let missing = || CallError::new(format!("find the record {}/{}", self.namespace, self.name), Failure::NotFound);
                    self.find().await?.ok_or_else(missing)?
                }
                Err(error) => return Err(error.into()),
            },
        };
        if known.entry.cluster.is_some() {
            entry.cluster.clone_from(&known.entry.cluster);
        }
        if entry.path.is_none() {
            entry.path.clone_from(&known.entry.path);
        }
        if known.entry.keeping == Keeping::Kept {
            entry.keeping = Keeping::Kept;
        }
        if (&known.entry.object, &known.entry.cluster, known.entry.keeping) == (&entry.object, &entry.cluster, entry.keeping) {
            return Ok(known);
        }
        Ok(self.write(entry, Some(&known)).await?)
    }

    pub(super) async fn write(&self, entry: &Entry, known: Option<&Record>) -> Result<Record, CallError> {
        let body = entry.manifest(self.namespace, self.name, known);
        let verb = if known.is_some() { Verb::Replace(body) } else { Verb::Create(body) };
        match self.call(verb).await? {
            Answer::Object(raw) => {
                let record = self.read(&raw)?;
                self.live.tell(Event::Recorded(record.clone())).await;
                Ok(record)
            }
            Answer::Gone => Err(self.unreadable("the answer holds no object".into())),
        }
    }

    /// The record past every cache; `None` is the server's own word that there is none.
    async fn find(&self) -> Result<Option<Record>, CallError> {
        match self.call(Verb::Get).await {
            Ok(Answer::Object(raw)) => {
                let record = self.read(&raw)?;
                self.live.tell(Event::Recorded(record.clone())).await;
                Ok(Some(record))
            }
            Ok(Answer::Gone) => Ok(None),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn call(&self, verb: Verb) -> Result<Answer, CallError> {
        let name = ObjectName::namespaced(self.namespace.clone(), self.name);
        self.live.call(Call { target: Target::Platform, kind: CONFIG_MAP, name, verb }).await
    }

    fn read(&self, raw: &Value) -> Result<Record, CallError> {
        Record::read(&raw.to_string()).map_err(|problem| self.unreadable(problem))
    }

    fn unreadable(&self, problem: String) -> CallError {
        CallError::new(format!("read the record {}/{}", self.namespace, self.name), Failure::Undecodable(problem))
    }
}
