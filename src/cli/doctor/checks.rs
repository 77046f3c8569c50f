//! What was found, in the order it was looked at, and the checks that need no server.
//!
//! Pure: from objects and times to words.

use std::fmt;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::manifest::{Definition, schema_name};
use crate::cli::virtual_workspaces::workspace_of;

/// How far the clocks may be apart: tokens are refreshed minutes before they end, and a `Date` has whole seconds.
const SKEW: i64 = 30;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What, in a word that stays the same.
    pub check: &'static str,
    /// How it is.
    pub status: Status,
    /// The logical cluster it is about, where it is one tenant's.
    pub workspace: Option<String>,
    /// What was found, and what to do.
    pub message: String,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Good to know; nobody must do anything.
    Note,
    /// Somebody must do something.
    Action,
}

impl fmt::Display for Check {
    /// One line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = match self.status {
            Status::Ok => "ok    ",
            Status::Note => "note  ",
            Status::Action => "ACTION",
        };
        let place = self.workspace.as_ref().map(|workspace| format!("workspace {workspace}: ")).unwrap_or_default();
        writeln!(f, "{status}  {:<10} {place}{}", self.check, self.message)
    }
}

/// Everything that was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// In the order it was looked at.
    pub checks: Vec<Check>,
}

impl fmt::Display for Report {
    /// A line for each check, then a summary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.checks.iter().try_for_each(|check| check.fmt(f))?;
        let actions = self.checks.iter().filter(|check| check.status == Status::Action).count();
        writeln!(f, "{}", if actions == 0 { "nothing needs action".to_owned() } else { format!("{actions} need action") })
    }
}

impl Report {
    /// Whether nothing needs action.
    pub fn is_well(&self) -> bool {
        self.checks.iter().all(|check| check.status != Status::Action)
    }

    /// For programs.
    pub fn to_value(&self) -> Value {
        json!({ "ok": self.is_well(), "checks": self.checks })
    }

    /// Adds checks.
    pub fn extend(&mut self, checks: impl IntoIterator<Item = Check>) {
        self.checks.extend(checks);
    }

    /// Adds that something is as it should be.
    pub fn fine(&mut self, check: &'static str, message: String) {
        self.checks.push(Check { check, status: Status::Ok, workspace: None, message });
    }

    /// Adds what is good to know.
    pub fn note(&mut self, check: &'static str, workspace: Option<String>, message: String) {
        self.checks.push(Check { check, status: Status::Note, workspace, message });
    }

    /// Adds what somebody must do.
    pub fn action(&mut self, check: &'static str, workspace: Option<String>, message: String) {
        self.checks.push(Check { check, status: Status::Action, workspace, message });
    }
}

/// The server's `Date` beside the time here.
pub fn clock(date: &str, here: Timestamp) -> Check {
    let check = |status, message| Check { check: "clock", status, workspace: None, message };
    let Ok(there) = jiff::fmt::rfc2822::parse(date) else {
        return check(Status::Note, format!("the server's Date {date:?} is no date"));
    };
    let ahead = there.timestamp().as_second() - here.as_second();
    let message = format!("the server's clock is {} s {} this one", ahead.abs(), if ahead < 0 { "behind" } else { "ahead of" });
    let status = if ahead.abs() > SKEW { Status::Action } else { Status::Ok };
    check(status, message)
}

/// Whether the export names the schemas of this version.
pub fn schemas(export: &Value, definitions: &[Definition]) -> Vec<Check> {
    let resources = || export["spec"]["resources"].as_array().into_iter().flatten();
    let mut checks = Vec::new();
    for definition in definitions {
        let kind = definition.kind.resource();
        let named = resources().find(|resource| resource["group"] == definition.kind.group && resource["name"] == definition.kind.plural);
        let (status, message) = match named.and_then(|resource| resource["schema"].as_str()) {
            None => (Status::Action, format!("the export does not offer {kind}: kcm init adds it")),
            Some(schema) if schema == schema_name(definition) => (Status::Ok, format!("{kind} has the schema of this version")),
            Some(schema) => {
                (Status::Note, format!("{kind} has the schema {schema} of another version: kcm init would roll it to this one's"))
            }
        };
        checks.push(Check { check: "export", status, workspace: None, message });
    }
    checks
}

/// Whether a binding serves its workspace.
pub fn binding(binding: &Value) -> Option<Check> {
    let workspace = Some(workspace_of(binding).to_owned());
    let name = binding["metadata"]["name"].as_str().unwrap_or_default();
    let check = |status, message| Some(Check { check: "binding", status, workspace: workspace.clone(), message });
    if let Some(since) = binding["metadata"]["deletionTimestamp"].as_str() {
        return check(Status::Note, format!("binding {name} is being deleted since {since}; kcm drain says what it waits for"));
    }
    let broken = binding["status"]["conditions"].as_array().into_iter().flatten().filter(|condition| condition["status"] == "False");
    // Claims have checks of their own, and what they lack stands there.
    let broken = broken.filter(|condition| !condition["type"].as_str().is_some_and(|type_| type_.starts_with("PermissionClaims")));
    let words = |condition: &Value| plain(&format!("{}: {}", text(&condition["type"]), text(&condition["message"])));
    let broken: Vec<String> = broken.map(words).collect();
    let phase = binding["status"]["phase"].as_str().unwrap_or_default();
    match (phase, broken.as_slice()) {
        ("Bound", []) => None,
        ("Bound", broken) => check(Status::Action, format!("binding {name} is Bound, but {}", broken.join("; "))),
        (_, broken) => check(Status::Action, format!("binding {name} is not Bound yet; {}", broken.join("; "))),
    }
}

/// A tenant may have written it, and it goes to an operator's terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::manifest::{export, exported};

    #[test]
    fn clocks_that_are_far_apart_need_action() {
        let here: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (date, status, words) in [
            ("Thu, 01 Jan 2026 00:00:03 GMT", Status::Ok, "3 s ahead of"),
            ("Wed, 31 Dec 2025 23:59:50 GMT", Status::Ok, "10 s behind"),
            ("Thu, 01 Jan 2026 00:01:00 GMT", Status::Action, "60 s ahead of"),
            ("soon", Status::Note, "is no date"),
        ] {
            let check = clock(date, here);
            assert!(check.status == status && check.message.contains(words), "{check}");
        }
    }

    #[test]
    fn an_export_of_another_version_is_noted_and_a_missing_kind_needs_action() {
        let mut live = export::export();
        assert!(schemas(&live, &exported()).iter().all(|check| check.status == Status::Ok));
        live["spec"]["resources"][0]["schema"] = json!("v1.x.y");
        assert_eq!(schemas(&live, &exported())[0].status, Status::Note);
        live["spec"]["resources"] = json!([]);
        assert!(schemas(&live, &exported()).iter().all(|check| check.status == Status::Action));
    }

    #[test]
    fn a_binding_that_serves_says_nothing() {
        let with = |phase: &str, status: &str, type_: &str| json!({ "metadata": { "name": "b" }, "status": { "phase": phase, "conditions": [{ "type": type_, "status": status, "message": "why" }] } });
        assert_eq!(binding(&with("Bound", "True", "Ready")), None);
        assert_eq!(binding(&with("Bound", "False", "PermissionClaimsValid")), None, "claims are looked at by themselves");
        for (phase, type_) in [("Bound", "APIExportValid"), ("Binding", "BindingUpToDate")] {
            let check = binding(&with(phase, "False", type_)).expect("it is named");
            assert!(check.status == Status::Action && check.message.contains(&format!("{type_}: why")), "{check}");
        }
        let mut going = with("Bound", "True", "Ready");
        going["metadata"]["deletionTimestamp"] = json!("t");
        assert_eq!(binding(&going).expect("it is named").status, Status::Note);
    }
}
