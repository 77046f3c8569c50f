//! What a provider's types and its inputs' functions say of one object, or of a configuration. They run for all objects at once, most of them in
//! the heart's own task: what one object does to them must not end the process for all of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use tracing::{error, warn};

use crate::api::config::FieldError;
use crate::reconciler::{ProviderConfig, Reconciler, Topic, decode_text};
use crate::runtime::fence;
use crate::runtime::raw::Raw;
use crate::runtime::served::{AnyConfig, Feed, Subscription};

use super::{Seat, fields};

impl<R: Reconciler> Seat<R> {
    /// Reads an object; the error is for whoever wrote it.
    pub(super) fn read(&self, raw: &Raw) -> Result<R::Object, String> {
        fence::called(|| decode_text::<R::Object>(&raw.body)).unwrap_or_else(|panic| {
            let (controller, name) = (self.actor.name, &raw.name);
            error!(controller, %name, panic, "the provider panicked over an object while it read it");
            Err("the provider's own code failed over it".into())
        })
    }

    /// What the object listens to; `None` when it is another controller's.
    pub(super) fn concerns(&self, raw: &Raw) -> Option<BTreeSet<Subscription>> {
        let (controller, name) = (self.actor.name, &raw.name);
        let object = match self.read(raw) {
            Ok(object) => object,
            // It is ours too, and gets a condition that says so.
            Err(_) if self.declared.only.is_none() => return Some(BTreeSet::new()),
            Err(problem) => {
                warn!(controller, %name, %problem, "an object cannot be read, so whose it is cannot be told; it is left alone");
                return None;
            }
        };
        let mine = |only: &dyn Fn(&R::Object) -> bool| {
            fence::called(|| only(&object)).unwrap_or_else(|panic| {
                error!(controller, %name, panic, "whose an object is cannot be told, for that panicked; it is left alone");
                false
            })
        };
        if self.declared.only.as_ref().is_some_and(|only| !mine(only)) {
            return None;
        }
        let mut topics = BTreeSet::new();
        let mut listen = |feed: Feed, of: fn(&R::Object) -> Vec<Topic>| match fence::called(|| of(&object)) {
            Ok(heard) => topics.extend(heard.into_iter().map(|topic| (feed, Some(topic)))),
            Err(panic) => {
                error!(controller, %name, panic, "what an object is concerned by cannot be told, for that panicked: it is by every change");
                topics.insert((feed, None));
            }
        };
        for (at, input) in self.declared.names.iter().enumerate() {
            listen(Feed::Names(at), input.of);
        }
        for (at, input) in self.declared.platform.iter().enumerate() {
            listen(Feed::Platform(at), input.of);
        }
        if let Some(input) = &self.declared.config {
            listen(Feed::Config, input.of);
        }
        Some(topics)
    }

    /// The status fields while the reconciler cannot be called. Where it has none to give after all they stay as they are: what the runtime has to
    /// say matters more.
    pub(super) fn unevaluated(&self, generation: i64) -> Value {
        let problem = match fence::called(|| fields(self.reconciler.unevaluated(generation).as_ref())) {
            Ok(Ok(fields)) => return fields,
            Ok(Err(problem)) | Err(problem) => problem,
        };
        error!(
            controller = self.actor.name,
            problem, "what was said for a status without a call cannot be used; the fields stay as they are"
        );
        Value::Null
    }
}

/// Reads a configuration and checks it; without one, what is in force then.
pub(super) fn configuration<C: ProviderConfig>(raw: Option<&Raw>) -> Result<Option<AnyConfig>, Vec<FieldError>> {
    let config = match raw {
        None => C::absent(),
        Some(raw) => {
            let mut text = serde_json::Deserializer::from_str(&raw.body);
            let config: C = serde_path_to_error::deserialize(&mut text)
                .map_err(|error| vec![FieldError::new(error.path().to_string(), error.inner().to_string())])?;
            config.validate()?;
            Some(config)
        }
    };
    Ok(config.map(|config| AnyConfig {
        poll: config.runtime().poll_interval(),
        allowed: config.runtime().allowed_workspaces().into(),
        external_url: config.runtime().kcp.as_ref().and_then(|kcp| kcp.external_url.as_deref()).map(Arc::from),
        purpose: config.runtime().workload_purpose().into(),
        value: Arc::new(config),
    }))
}
