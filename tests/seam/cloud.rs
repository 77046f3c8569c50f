//! A provider whose work is an account in a cloud, which opens and ends under the password that the tenant keeps in a Secret of its workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kcp_provider_runtime::api::meta::{Kind, KindRef, Meta, ServiceObject};
use kcp_provider_runtime::api::names::ObjectName;
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::reconciler::{Actor, CallError, Context, Deletion, Failure, Inputs, Reconciler, Report, ReportedCondition};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The tenant's Secret.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Password {
    metadata: Meta,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

impl Kind for Password {
    const REF: KindRef = KindRef { group: "", version: "v1", kind: "Secret", plural: "secrets", namespaced: true };

    fn meta(&self) -> &Meta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut Meta {
        &mut self.metadata
    }
}

/// The cloud, which no process of ours takes with it; clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Cloud(Arc<Mutex<Accounts>>);

#[derive(Default)]
struct Accounts {
    /// The passwords that are good now.
    good: BTreeSet<String>,
    open: BTreeSet<String>,
    /// What must never happen.
    wrongs: Vec<String>,
}

impl Cloud {
    /// From now on this password alone is good.
    pub(crate) fn accept(&self, password: &str) {
        self.0.lock().unwrap().good = BTreeSet::from([password.to_owned()]);
    }

    /// An account that was opened before.
    pub(crate) fn remember(&self, account: &str) {
        self.0.lock().unwrap().open.insert(account.to_owned());
    }

    fn open(&self, account: &str, password: &SecretString) -> Result<(), CallError> {
        let mut accounts = self.0.lock().unwrap();
        if !accounts.good.contains(password.expose_secret()) {
            return Err(CallError::new(format!("open the account {account}"), Failure::Unauthorized));
        }
        accounts.open.insert(account.to_owned());
        Ok(())
    }

    fn close(&self, account: &str, password: &SecretString) {
        let mut accounts = self.0.lock().unwrap();
        if accounts.good.contains(password.expose_secret()) {
            accounts.open.remove(account);
        } else {
            accounts.wrongs.push(format!("{account} was to end under a password that is not good"));
        }
    }

    /// Nothing of an account is to be ended, says its provider.
    fn forgo(&self, account: &str) {
        let mut accounts = self.0.lock().unwrap();
        if accounts.open.contains(account) {
            accounts.wrongs.push(format!("{account} was given up without its password"));
        }
    }

    /// How many accounts are open, once nothing was wrong.
    pub(crate) fn count(&self) -> usize {
        let accounts = self.0.lock().unwrap();
        assert!(accounts.wrongs.is_empty(), "{:?}", accounts.wrongs);
        accounts.open.len()
    }
}

/// Opens an account for each object.
pub(crate) struct Clouds<O> {
    cloud: Cloud,
    finalizer: Option<&'static str>,
    objects: PhantomData<fn() -> O>,
}

impl<O: ServiceObject> Clouds<O> {
    pub(crate) fn new(inputs: &mut Inputs<O>, cloud: &Cloud) -> Self {
        inputs.secured();
        Self { cloud: cloud.clone(), finalizer: Some("toys.test/cloud"), objects: PhantomData }
    }

    /// One whose objects do not wait for it.
    pub(crate) fn careless(inputs: &mut Inputs<O>, cloud: &Cloud) -> Self {
        Self { finalizer: None, ..Self::new(inputs, cloud) }
    }
}

async fn password<C>(ctx: &Context<C>) -> Result<Option<SecretString>, CallError> {
    let there = ctx.clusters.control_plane.get::<Password>(&ObjectName::namespaced("default", "cloud")).await?;
    let decode = |text: &String| String::from_utf8(BASE64.decode(text).ok()?).ok();
    Ok(there.and_then(|secret| secret.data.get("password").and_then(decode)).map(Into::into))
}

#[async_trait]
impl<O: ServiceObject> Reconciler for Clouds<O> {
    type Object = O;
    type Config = ();
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "clouds", finalizer: self.finalizer, conditions: &["Open"] }
    }

    async fn create_or_update(&self, ctx: &Context<()>, object: &O) -> Result<Report, CallError> {
        ctx.hold(object, json!({})).await?;
        let Some(password) = password(ctx).await? else {
            let missing = ReportedCondition::new("Open", false, Reason::Custom("NoPassword"), "there is no Secret cloud");
            return Ok(Report::new(()).with(missing));
        };
        let secrets = BTreeMap::from([("password".to_owned(), password.clone())]);
        let shown = format!("it is open under {secrets:?}");
        // Before the account is opened: what opens it has to be there to end it.
        ctx.secure(secrets).await?;
        self.cloud.open(object.meta().uid(), &password)?;
        Ok(Report::new(()).with(ReportedCondition::new("Open", true, Reason::Ready, shown)))
    }

    async fn delete(&self, ctx: &Context<()>, object: &O) -> Result<Deletion, CallError> {
        let account = object.meta().uid();
        match ctx.secured().await? {
            Some(secrets) => self.cloud.close(account, &secrets["password"]),
            None => self.cloud.forgo(account),
        }
        Ok(Deletion::Done)
    }
}
