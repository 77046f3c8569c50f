//! What a request gets for an answer.
//!
//! Reading order: [`route`] (who, where, which kind), `options` (what the query says), then one file for each verb.

mod admit;
mod body;
mod create;
mod delete;
mod list;
mod meta;
mod options;
mod route;
mod serve;
mod types;
mod update;
mod validate;
pub(crate) mod watch;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::access::User;
use super::errors::Refusal;
use super::request::Request;
use super::served::Served;
use super::store::Scope;
use super::world::World;

pub(crate) use route::Way;

/// An answer.
#[derive(Debug)]
pub(crate) enum Reply {
    /// JSON, with what is said in `Warning` headers.
    Json { code: u16, body: Bytes, warnings: Vec<String> },
    /// Plain text.
    Text(u16, String),
    /// Something else, with its media type.
    Bytes(&'static str, Bytes),
    /// A stream of events.
    Watch(Box<watch::Plan>),
}

impl Reply {
    /// The HTTP status.
    pub(crate) const fn code(&self) -> u16 {
        match self {
            Self::Json { code, .. } | Self::Text(code, _) => *code,
            Self::Bytes(..) | Self::Watch(_) => 200,
        }
    }
}

/// A request about objects, once it is known who asks and of what.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a Request,
    pub(crate) user: User,
    pub(crate) way: Way,
    /// `None` is every workspace of the shard.
    pub(crate) workspace: Option<Arc<str>>,
    pub(crate) shard: usize,
    pub(crate) kind: Arc<Served>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: String,
}

impl Call<'_> {
    /// The objects that a list or watch is about.
    pub(crate) fn scope(&self) -> Scope {
        Scope { workspace: self.workspace.clone(), namespace: self.namespace.as_deref().map(Into::into) }
    }

    /// Who is written down as the manager: through a virtual workspace it is kcp that writes.
    pub(crate) fn manager(&self) -> &str {
        match (&self.way, self.request.query.get("fieldManager")) {
            (_, Some(manager)) => manager,
            (Way::Virtual { .. }, None) => "kcp",
            (Way::Direct, None) => self.request.manager(),
        }
    }
}

/// Answers one request at the world's present time.
pub(crate) fn answer(world: &mut World, request: &Request) -> Reply {
    match serve::serve(world, request) {
        Ok(reply) => reply,
        Err(refusal) if refusal.is_plain() => Reply::Text(refusal.code, refusal.message),
        Err(refusal) => Reply::Json { code: refusal.code, body: bytes_of(&refusal.status()), warnings: refusal.warnings },
    }
}

/// JSON as it is sent.
pub(crate) fn bytes_of(value: &Value) -> Bytes {
    // Values have string keys, which is all that can fail.
    serde_json::to_vec(value).unwrap_or_default().into()
}

fn json(code: u16, value: &Value) -> Reply {
    Reply::Json { code, body: bytes_of(value), warnings: Vec::new() }
}

type Answer = Result<Reply, Refusal>;
