//! Who lives behind an export, as a table, a sentence and JSON.
//!
//! Pure: from the objects to text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use comfy_table::{Table, presets};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::virtual_workspaces::workspace_of;

/// How many lines say of one binding what it waits for, before the rest is counted.
const NAMED: usize = 5;

/// Everything that was seen in one look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Living {
    /// Clusters and projections, by workspace, kind, namespace and name.
    pub objects: Vec<Live>,
    /// The bindings of the export.
    pub bindings: Vec<Binding>,
}

/// An object that lives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Live {
    /// The logical cluster of its workspace.
    pub workspace: String,
    /// `kc` or `pkc`.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Since when it is to be deleted, where it is.
    pub deleted_at: Option<String>,
    /// What keeps it after that.
    pub finalizers: Vec<String>,
    /// Which incarnation it is.
    pub uid: String,
}

/// A binding of the export.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    /// The logical cluster of its workspace.
    pub workspace: String,
    /// Its name.
    pub name: String,
    /// How far it is: empty, `Binding` or `Bound`.
    pub phase: String,
    /// Since when it is to be deleted, where it is.
    pub deleted_at: Option<String>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn deleted_at(object: &Value) -> Option<String> {
    object["metadata"]["deletionTimestamp"].as_str().map(ToOwned::to_owned)
}

impl Live {
    /// An object of the kind that messages call `kind`.
    pub fn of(kind: &'static str, object: &Value) -> Self {
        let metadata = &object["metadata"];
        Self {
            workspace: workspace_of(object).to_owned(),
            kind,
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            deleted_at: deleted_at(object),
            finalizers: metadata["finalizers"].as_array().into_iter().flatten().map(text).collect(),
            uid: text(&metadata["uid"]),
        }
    }

    fn state(&self) -> String {
        match (&self.deleted_at, self.finalizers.as_slice()) {
            (None, _) => "live".to_owned(),
            (Some(since), []) => format!("deleted at {since}"),
            (Some(since), kept) => format!("deleted at {since}, kept by {}", kept.join(", ")),
        }
    }
}

impl Binding {
    /// A binding, as the virtual workspace shows it.
    pub fn of(binding: &Value) -> Self {
        Self {
            workspace: workspace_of(binding).to_owned(),
            name: text(&binding["metadata"]["name"]),
            phase: text(&binding["status"]["phase"]),
            deleted_at: deleted_at(binding),
        }
    }
}

impl Living {
    /// Whether nobody lives there. Bindings alone are no life: with nothing in it, a workspace unbinds at once.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// How many objects live in each workspace.
    pub fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for live in &self.objects {
            *counts.entry(live.workspace.as_str()).or_insert(0) += 1;
        }
        counts
    }

    /// One sentence with the counts.
    pub fn summary(&self) -> String {
        let of = |kind| self.objects.iter().filter(|live| live.kind == kind).count();
        let going = self.objects.iter().filter(|live| live.deleted_at.is_some()).count();
        if self.is_empty() {
            return format!("nothing lives behind the export; {} bindings", self.bindings.len());
        }
        let workspaces = self.counts().len();
        format!("{} kc and {} pkc live in {workspaces} workspaces, {going} of them are being deleted", of("kc"), of("pkc"))
    }

    /// The bindings that are to be deleted and wait until what lives in their workspaces is gone, one line each.
    pub fn warnings(&self) -> Vec<String> {
        let waiting = self.bindings.iter().filter_map(|binding| {
            let since = binding.deleted_at.as_ref()?;
            let here: Vec<&Live> = self.objects.iter().filter(|live| live.workspace == binding.workspace).collect();
            let mut names: Vec<String> =
                here.iter().take(NAMED).map(|live| format!("{}/{}/{}", live.kind, live.namespace, live.name)).collect();
            if here.len() > NAMED {
                names.push(format!("{} more", here.len() - NAMED));
            }
            let finalizers: std::collections::BTreeSet<&str> = here.iter().flat_map(|live| &live.finalizers).map(String::as_str).collect();
            let kept: Vec<&str> = finalizers.into_iter().collect();
            let Binding { workspace, name, .. } = binding;
            Some(if here.is_empty() {
                format!("binding {name} in {workspace} is being deleted since {since}")
            } else {
                format!(
                    "binding {name} in {workspace} is being deleted since {since} and waits for {}, kept by {}: keep the manager running",
                    names.join(", "),
                    if kept.is_empty() { "nothing".to_owned() } else { kept.join(", ") }
                )
            })
        });
        waiting.collect()
    }

    /// A line for each object, then the summary and the warnings.
    pub fn table(&self) -> String {
        let mut text = String::new();
        if !self.is_empty() {
            let mut table = Table::new();
            table.load_style(presets::NOTHING).force_no_tty();
            table.set_header(["WORKSPACE", "KIND", "NAMESPACE", "NAME", "STATE"]);
            for live in &self.objects {
                table.add_row([&live.workspace, live.kind, &live.namespace, &live.name, &live.state()]);
            }
            // Writing to a `String` does not fail.
            let _ = writeln!(text, "{}", table.trim_fmt());
        }
        let _ = writeln!(text, "{}", self.summary());
        for warning in self.warnings() {
            let _ = writeln!(text, "Warning: {warning}");
        }
        text
    }

    /// For programs.
    pub fn to_value(&self) -> Value {
        json!({ "drained": self.is_empty(), "objects": self.objects, "bindings": self.bindings, "warnings": self.warnings() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(workspace: &str, name: &str, deleted: bool) -> Value {
        let mut object = json!({ "metadata": { "name": name, "namespace": "default", "uid": "u", "finalizers": ["f"],
            "annotations": { "kcp.io/cluster": workspace } } });
        if deleted {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        object
    }

    fn living() -> Living {
        Living {
            objects: vec![
                Live::of("kc", &object("a", "demo", true)),
                Live::of("pkc", &object("a", "demo", false)),
                Live::of("kc", &object("b", "demo", false)),
            ],
            bindings: vec![
                Binding::of(&object("a", "e", true)),
                Binding::of(&object("b", "e", false)),
                Binding::of(&object("c", "e", true)),
            ],
        }
    }

    #[test]
    fn the_same_name_in_two_workspaces_is_two_objects() {
        assert_eq!(living().counts(), BTreeMap::from([("a", 2), ("b", 1)]));
        assert_eq!(living().summary(), "2 kc and 1 pkc live in 2 workspaces, 1 of them are being deleted");
    }

    #[test]
    fn a_binding_that_is_being_deleted_names_what_it_waits_for() {
        let [waits, goes] = living().warnings().try_into().expect("two are being deleted");
        assert!(
            waits.contains("in a") && waits.contains("kc/default/demo, pkc/default/demo, kept by f: keep the manager running"),
            "{waits}"
        );
        assert!(goes.contains("in c") && !goes.contains("waits"), "{goes}");
    }

    #[test]
    fn a_deleted_object_says_what_keeps_it() {
        let table = living().table();
        assert!(table.contains("deleted at 2026-01-01T00:00:00Z, kept by f") && table.contains("live"), "{table}");
    }

    #[test]
    fn with_nobody_left_the_answer_says_so_in_both_forms() {
        let empty = Living { objects: vec![], ..living() };
        assert_eq!(empty.to_value()["drained"], true);
        assert!(empty.table().starts_with("nothing lives behind the export; 3 bindings\n"));
        assert_eq!(living().to_value()["objects"][0]["deletedAt"], "2026-01-01T00:00:00Z");
    }
}
