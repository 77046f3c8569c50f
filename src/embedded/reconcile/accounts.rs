//! Accounts and the tokens in their Secrets.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::embedded::base64;
use crate::embedded::store::Place;
use crate::embedded::world::workspaces::{accounts, secrets};
use crate::embedded::world::{Task, World};

const TOKEN: &str = "kubernetes.io/service-account-token";
const OF: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";

impl World {
    pub(super) fn ask_for_token(&mut self, workspace: &Arc<str>, place: &Place, secret: &Value) {
        if secret["type"] == TOKEN && secret["data"]["token"].is_null() {
            self.ask(Duration::ZERO, Task::Token(workspace.clone(), place.namespace.clone(), place.name.clone()));
        }
    }

    /// Fills a token Secret. One whose account is not there is deleted, as kcp does.
    pub(super) fn do_token(&mut self, workspace: &Arc<str>, namespace: &str, name: &str) {
        let Some(secret) = self.read(secrets(), workspace, namespace, name) else { return };
        let account = secret["metadata"]["annotations"][OF].as_str().unwrap_or_default().to_owned();
        let Some(owner) = self.read(accounts(), workspace, namespace, &account) else {
            self.delete(secrets(), &Place::new(workspace, namespace, name), None);
            return;
        };
        let uid = owner["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let token = self.tokens.issue_legacy(workspace, namespace, &account, &uid, name);
        let (authority, path) = (self.options.authority.clone(), namespace.to_owned());
        self.edit(secrets(), workspace, namespace, name, "", |secret| {
            secret["metadata"]["annotations"][UID] = uid.into();
            secret["data"]["token"] = base64::encode(token.as_bytes()).into();
            secret["data"]["namespace"] = base64::encode(path.as_bytes()).into();
            secret["data"]["ca.crt"] = base64::encode(authority.as_bytes()).into();
        });
    }

    /// The Secrets of an account go with it, and `default` comes back.
    pub(super) fn account_is_gone(&mut self, workspace: &Arc<str>, place: &Place, last: &Value) {
        let uid = &last["metadata"]["uid"];
        for secret in self.all(secrets(), workspace) {
            let metadata = &secret["metadata"];
            if secret["type"] == TOKEN && metadata["namespace"] == *place.namespace && metadata["annotations"][UID] == *uid {
                let name = metadata["name"].as_str().unwrap_or_default();
                self.delete(secrets(), &Place::new(workspace, &place.namespace, name), None);
            }
        }
        self.look_at_namespace(place);
    }
}
