//! What a refused workspace is told.

use super::*;
use crate::api::names::LogicalCluster;

fn refusal(path: Option<&str>, rules: &[&str]) -> Result<(), String> {
    let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
    entitled(&Workspace { logical_cluster: LogicalCluster::new("2hx7k1z"), path: path.map(str::to_owned) }, &rules)
}

#[test]
fn a_workspace_is_served_under_any_rule_that_covers_it() {
    assert_eq!(refusal(None, &[]), Ok(()));
    assert_eq!(refusal(None, &["root:orgs:*", "other", "2hx7k1z"]), Ok(()), "its name needs no path");
    assert_eq!(refusal(Some("root:orgs:acme"), &["other", "root:orgs:*"]), Ok(()));
}

#[test]
fn a_refused_workspace_reads_the_reason_first_and_three_rules_at_most() {
    let names = ["acme", "bolt", "corp", "dyne", "echo"];
    assert_eq!(
        refusal(Some("root:orgs:me"), &names).unwrap_err(),
        "this workspace is under none of the platform's allowedWorkspaces (acme, bolt, corp and 2 more)"
    );
    assert_eq!(
        refusal(Some("root:orgs:me"), &names[..3]).unwrap_err(),
        "this workspace is under none of the platform's allowedWorkspaces (acme, bolt, corp)"
    );
    let long = "x".repeat(400);
    assert!(refusal(None, &[long.as_str(); 256]).unwrap_err().len() < 500);
}

#[test]
fn a_path_that_could_not_be_resolved_is_what_a_refused_workspace_reads_first() {
    assert_eq!(
        refusal(None, &["acme", "bolt", "corp", "dyne", "root:orgs:*"]).unwrap_err(),
        "the path of this workspace could not be resolved, so it is not known to be under any of the platform's allowedWorkspaces (root:orgs:*)"
    );
    let names = refusal(None, &["acme"]).unwrap_err();
    assert_eq!(names, "this workspace is under none of the platform's allowedWorkspaces (acme)", "no path would help it");
}
