//! Brings objects to what they should be, one after the other.

use std::fmt;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::plan::{Action, Desired, diff, plan, title};
use crate::cli::kcp_admin::{AdminClient, Resource};

/// How often one object is decided anew because somebody else wrote it in between.
const ATTEMPTS: usize = 5;

/// What was done, or would be, to one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// `kind/name`.
    pub object: String,
    /// What happened to it.
    pub outcome: Outcome,
}

/// What happened to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was missing.
    Created,
    /// It was changed; the diff.
    Updated(String),
    /// It was as it should be.
    Unchanged,
}

impl fmt::Display for Step {
    /// One line, and the diff of an update below it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Outcome::Created => writeln!(f, "create     {}", self.object),
            Outcome::Unchanged => writeln!(f, "unchanged  {}", self.object),
            Outcome::Updated(diff) => {
                writeln!(f, "update     {}", self.object)?;
                diff.lines().try_for_each(|line| writeln!(f, "    {line}"))
            }
        }
    }
}

/// Upserts the objects in their order; with `dry_run` only reads and says what it would do.
///
/// Ends at the first error. May be cancelled and repeated: each object is either as it was or as it should be.
pub async fn upsert(client: &AdminClient, desired: &[Desired], dry_run: bool) -> anyhow::Result<Vec<Step>> {
    let mut steps = Vec::with_capacity(desired.len());
    for desired in desired {
        let object = title(&desired.object);
        let outcome = one(client, desired, dry_run).await.with_context(|| format!("{object} in {}", client.url()))?;
        steps.push(Step { object, outcome });
    }
    Ok(steps)
}

async fn one(client: &AdminClient, desired: &Desired, dry_run: bool) -> anyhow::Result<Outcome> {
    let (resource, namespace, name) = address(&desired.object)?;
    for attempt in 1.. {
        let live = client.find(&resource, namespace, name).await?;
        let (written, outcome) = match (plan(desired, live.as_ref()), live) {
            (Action::Keep, _) => return Ok(Outcome::Unchanged),
            (Action::Refuse, _) => bail!("it exists with another spec and cannot be changed"),
            (Action::Update(body), Some(live)) => {
                let outcome = Outcome::Updated(diff(&live, &body));
                if dry_run {
                    return Ok(outcome);
                }
                (client.replace(&resource, namespace, name, &body).await, outcome)
            }
            _ if dry_run => return Ok(Outcome::Created),
            _ => (client.create(&resource, namespace, &desired.object).await, Outcome::Created),
        };
        match written {
            Ok(_) => return Ok(outcome),
            Err(error) if error.is_conflict() && attempt < ATTEMPTS => {}
            Err(error) => return Err(error.into()),
        }
    }
    unreachable!("the loop has no end of its own")
}

/// Where an object of the kinds that `init` writes is served, its namespace and its name.
fn address(object: &Value) -> anyhow::Result<(Resource, &str, &str)> {
    let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let plural = match text("/kind") {
        "APIExport" => "apiexports",
        "APIResourceSchema" => "apiresourceschemas",
        "ClusterRole" => "clusterroles",
        "ClusterRoleBinding" => "clusterrolebindings",
        "CustomResourceDefinition" => "customresourcedefinitions",
        "Namespace" => "namespaces",
        "ProviderConfig" => "providerconfigs",
        "Secret" => "secrets",
        "ServiceAccount" => "serviceaccounts",
        "WorkspaceType" => "workspacetypes",
        other => bail!("init writes no {other:?}"),
    };
    let (group, version) = text("/apiVersion").rsplit_once('/').unwrap_or(("", text("/apiVersion")));
    let resource =
        Resource { group: group.to_owned().into(), version: version.to_owned().into(), plural: plural.into(), subresource: "".into() };
    Ok((resource, text("/metadata/namespace"), text("/metadata/name")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::manifest::door::Door;
    use crate::cli::init::desired;

    #[test]
    fn every_object_that_init_writes_has_an_address() {
        let door = desired::door("root:p", &Door::new("otc", "hash").unwrap());
        for desired in [desired::exports(), desired::crds(), desired::workspace("root:p", true, Some("u")), door].concat() {
            let (resource, namespace, name) = address(&desired.object).unwrap();
            assert!(!name.is_empty() && !resource.version.is_empty());
            assert_eq!(namespace.is_empty(), desired.object["kind"] != "ServiceAccount", "{resource:?}");
        }
    }
}
