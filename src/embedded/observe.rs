//! What an observer of the control plane is told: every answered request, and every committed change, in the order of their commits.
//!
//! Pure: values, and how a request and the changes it made become one sequence.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use super::request::{Door, Request, What};
use super::served::Served;
use super::store;

/// One answered request, or one change that none asked for by name.
///
/// A request that changes an object is one event with both states; every other change that it brings about (a `deletecollection`, a cascade) and
/// every change of kcp's own controllers is an event with an empty verb and the code 0. A request that changes nothing, because it reads, is
/// refused, or asks for what is there already, has neither state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// When, on the control plane's wall clock.
    pub at: Timestamp,
    /// Who asked, before any impersonation; `""` for kcp's own controllers and for a token that nobody has.
    pub user: String,
    /// The field manager of the request, or what stands for one; `""` for kcp's own controllers.
    pub manager: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; `""` for a change that no request named.
    pub verb: &'static str,
    /// The HTTP status; 0 for a change that no request named.
    pub code: u16,
    /// A request's path, as sent.
    pub path: String,
    /// A request's body, as sent.
    pub body: Bytes,
    /// The logical cluster, as a request wrote it: `*` and paths too.
    pub workspace: String,
    /// `""` is core.
    pub group: String,
    /// The plural; `""` for a request that is about no objects, such as discovery.
    pub resource: String,
    /// `""` for a kind without, or for all.
    pub namespace: String,
    /// `""` for all.
    pub name: String,
    /// `status`, or `""`.
    pub subresource: String,
    /// The object before the change, in its storage version.
    pub before: Option<Value>,
    /// The object after it; with no `before` either, nothing changed.
    pub after: Option<Value>,
}

impl Event {
    /// A change of a stored object.
    pub(crate) fn change(kind: &Served, at: Timestamp, change: &store::Change) -> Self {
        let state = |stored: &Option<std::sync::Arc<store::Stored>>| stored.as_ref().map(|stored| stored.value());
        Self {
            at,
            workspace: change.place.workspace.to_string(),
            group: kind.names.group.to_string(),
            resource: kind.names.plural.to_string(),
            namespace: change.place.namespace.to_string(),
            name: change.place.name.to_string(),
            before: state(&change.before),
            after: state(&change.after),
            ..Self::default()
        }
    }

    /// A request that was answered, and the changes that it made, in their order.
    pub(crate) fn answered(request: &Request, user: &str, at: Timestamp, code: u16, mut changes: Vec<Self>) -> Vec<Self> {
        for change in &mut changes {
            user.clone_into(&mut change.user);
            request.manager().clone_into(&mut change.manager);
        }
        let (Door::Direct(workspace) | Door::Virtual { workspace, .. }) = &request.door else { return changes };
        let mut asked = Self {
            at,
            user: user.to_owned(),
            manager: request.manager().to_owned(),
            verb: request.verb(),
            code,
            path: request.raw_path.clone(),
            body: request.body.clone(),
            workspace: workspace.clone(),
            ..Self::default()
        };
        if let What::Objects(target) = &request.what {
            asked.group.clone_from(&target.group);
            asked.resource.clone_from(&target.resource);
            asked.namespace = target.namespace.clone().unwrap_or_default();
            asked.name = target.name.clone().unwrap_or_default();
            asked.subresource.clone_from(&target.subresource);
        }
        let named = |change: &Self| {
            let same = (&change.group, &change.resource) == (&asked.group, &asked.resource);
            same && (change.name == asked.name || asked.verb == "create")
        };
        match changes.iter().position(named) {
            Some(own) => {
                let change = &mut changes[own];
                asked.name.clone_from(&change.name);
                (asked.before, asked.after) = (change.before.take(), change.after.take());
                *change = asked;
            }
            None => changes.push(asked),
        }
        changes
    }
}
