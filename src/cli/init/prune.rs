//! Old schemas: found, proven unused, collected.
//!
//! kcp keeps a schema's spec immutable, so that every roll leaves one behind. One that a binding still uses must stay: without it the kind of that
//! workspace cannot be told any more. The proof is complete or nothing is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::Context as _;
use serde_json::Value;

use super::{EXPORTS, SCHEMAS};
use crate::api::manifest::exported;
use crate::cli::kcp_admin::AdminClient;
use crate::cli::virtual_workspaces::{EndpointArgs, endpoints, workspace_of};

/// What became of one old schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Old {
    /// The schema's name.
    pub name: String,
    /// What became of it.
    pub fate: Fate,
}

/// What became of an old schema, or would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nobody uses it, and it was deleted.
    Collected,
    /// It stays; why.
    Kept(String),
}

impl fmt::Display for Old {
    /// One line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fate {
            Fate::Collected => writeln!(f, "delete     apiresourceschema/{}: nobody uses it", self.name),
            Fate::Kept(why) => writeln!(f, "keep       apiresourceschema/{}: {why}", self.name),
        }
    }
}

/// Deletes the schemas of our kinds that no export of the workspace names and no binding uses; with `dry_run` only says which.
///
/// Looks only at schemas whose names `init` could have made. Empty when there is no old one: then no endpoint is asked. A schema is deleted only if
/// it is still the one that was looked at, and only after every binding behind every endpoint was read.
///
/// # Errors
/// When schemas, exports, slices or an endpoint cannot be read: then nothing was deleted.
pub async fn prune(client: &AdminClient, args: &EndpointArgs, dry_run: bool) -> anyhow::Result<Vec<Old>> {
    let schemas = client.list(&SCHEMAS, "").await.context("cannot list the schemas")?;
    let exports = client.list(&EXPORTS, "").await.context("cannot list the exports")?;
    let (old, mut fates) = unnamed(&schemas, &exports);
    if old.is_empty() && fates.is_empty() {
        return Ok(Vec::new());
    }
    let mut bindings = Vec::new();
    if !old.is_empty() {
        for export in exports.iter().filter(|export| concerns_us(export)).filter_map(name) {
            let endpoints = endpoints(client, export, args).await?;
            // An export without a slice may have bindings that nothing here shows.
            for endpoint in endpoints.with_context(|| format!("export {export} has no endpoint slice, so its bindings cannot be seen"))? {
                bindings.extend(endpoint.bindings().await?);
            }
        }
    }
    let users = users(&bindings);
    for (name, uid) in old {
        let fate = if let Some(workspaces) = users.get(name).or_else(|| users.get(uid)) {
            Fate::Kept(format!("bound in {}; they follow within seconds", places(workspaces)))
        } else {
            if !dry_run {
                client.delete_exactly(&SCHEMAS, "", name, uid).await?;
            }
            Fate::Collected
        };
        fates.push(Old { name: name.to_owned(), fate });
    }
    fates.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(fates)
}

/// Schemas that could be `init`'s and that this version would not write: name and uid of those that no export names, and what holds the others.
fn unnamed<'a>(schemas: &'a [Value], exports: &'a [Value]) -> (Vec<(&'a str, &'a str)>, Vec<Old>) {
    let current: BTreeSet<String> = exported().iter().map(crate::api::manifest::schema_name).collect();
    let holder = |schema: &str| {
        let names = |export: &&Value| resources(export).any(|resource| resource["schema"] == schema);
        exports.iter().find(names).and_then(name)
    };
    let (mut old, mut held) = (Vec::new(), Vec::new());
    for schema in schemas.iter().filter(|schema| is_ours(schema)) {
        let (Some(name), Some(uid)) = (name(schema), schema["metadata"]["uid"].as_str()) else { continue };
        match holder(name) {
            _ if current.contains(name) => {}
            Some(export) => held.push(Old { name: name.to_owned(), fate: Fate::Kept(format!("export {export} names it")) }),
            None => old.push((name, uid)),
        }
    }
    (old, held)
}

/// `v<8 hex digits>.<plural>.<group>` of one of our kinds, and of that group.
pub fn is_ours(schema: &Value) -> bool {
    let Some((prefix, rest)) = name(schema).and_then(|name| name.split_once('.')) else { return false };
    let digest = prefix.strip_prefix('v').is_some_and(|hex| hex.len() == 8 && hex.bytes().all(|b| b.is_ascii_hexdigit()));
    digest && exported().iter().any(|definition| definition.kind.resource() == rest && schema["spec"]["group"] == definition.kind.group)
}

fn concerns_us(export: &Value) -> bool {
    resources(export).any(|resource| exported().iter().any(|definition| resource["group"] == definition.kind.group))
}

fn resources(export: &Value) -> impl Iterator<Item = &Value> {
    export["spec"]["resources"].as_array().into_iter().flatten()
}

fn name(object: &Value) -> Option<&str> {
    object["metadata"]["name"].as_str()
}

/// Who uses a schema, by its name and by its uid.
fn users(bindings: &[Value]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for binding in bindings {
        for resource in binding["status"]["boundResources"].as_array().into_iter().flatten() {
            for word in ["name", "UID"].iter().filter_map(|field| resource["schema"][field].as_str()) {
                users.entry(word).or_default().insert(workspace_of(binding));
            }
        }
    }
    users
}

/// The first few workspaces, and how many more.
fn places(workspaces: &BTreeSet<&str>) -> String {
    const SHOWN: usize = 3;
    let first: Vec<&str> = workspaces.iter().copied().take(SHOWN).collect();
    let more = workspaces.len().saturating_sub(SHOWN);
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{rest}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::manifest::{definition, schema_name};
    use crate::api::tenant;

    fn schema(name: &str) -> Value {
        json!({ "metadata": { "name": name, "uid": format!("uid of {name}") }, "spec": { "group": tenant::GROUP } })
    }

    const OLD: &str = "v00000000.kubernetesclusters.kubernetes.edge-connect.eu";

    #[test]
    fn only_schemas_that_init_could_have_made_and_no_export_names_are_old() {
        let current = schema_name(&definition::tenant());
        let export =
            |schema: &str| json!({ "metadata": { "name": "e" }, "spec": { "resources": [{ "group": tenant::GROUP, "schema": schema }] } });
        for (why, name, exports, is_old) in [
            ("left over", OLD, vec![], true),
            ("the current one, before the export names it", current.as_str(), vec![], false),
            ("somebody else's name", "v250725-abc123.kubernetesclusters.kubernetes.edge-connect.eu", vec![], false),
            ("another kind", "v00000000.widgets.kubernetes.edge-connect.eu", vec![], false),
            ("an export names it", OLD, vec![export(OLD)], false),
            ("an export names another", OLD, vec![export("x")], true),
        ] {
            let schemas = [schema(name)];
            assert_eq!(!unnamed(&schemas, &exports).0.is_empty(), is_old, "{why}");
        }
        let mut foreign = schema(OLD);
        foreign["spec"]["group"] = json!("example.org");
        assert!(!is_ours(&foreign), "a name alone is no proof");
    }

    #[test]
    fn a_binding_uses_a_schema_by_its_name_and_by_its_uid() {
        let binding = json!({
            "metadata": { "annotations": { "kcp.io/cluster": "a" } },
            "status": { "boundResources": [{ "schema": { "name": "n", "UID": "u" } }] },
        });
        let bindings = [binding, json!({ "metadata": {}, "status": {} })];
        let users = users(&bindings);
        assert!(users.contains_key("n") && users.contains_key("u") && users.len() == 2);
        assert_eq!(places(&BTreeSet::from(["a", "b", "c", "d", "e"])), "a, b, c and 2 more");
    }
}
