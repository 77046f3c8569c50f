//! The embedded control plane as a source of events.

use kcp_provider_runtime::embedded;
use serde_json::Value;

use crate::checker::{Event, Key, Principal};

/// From what an observer is told to what the checker knows; who is who is the caller's to say.
pub(crate) fn event(seen: embedded::Event, principal: Principal) -> Event {
    let kind = if seen.group.is_empty() { seen.resource } else { format!("{}.{}", seen.resource, seen.group) };
    let key = Key { workspace: seen.workspace, kind, namespace: seen.namespace, name: seen.name };
    let (gone, body) = (seen.before.is_some() && seen.after.is_none(), serde_json::from_slice(&seen.body).unwrap_or(Value::Null));
    Event {
        at: seen.at,
        principal,
        user: seen.user,
        manager: seen.manager,
        verb: seen.verb.to_owned(),
        key,
        subresource: seen.subresource,
        before: seen.before,
        after: seen.after,
        code: seen.code,
        path: seen.path,
        body,
        gone,
    }
}
