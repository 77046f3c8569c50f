//! What an operator may ask of `kcm init` besides: marks on the export, the guard's claims, a manager that writes directly, and old schemas
//! collected.
//!
//! Pure: from arguments to what the export should hold.

use clap::Args;

use super::plan::Desired;
use crate::api::manifest::export::{Claim, guard_claims};

/// What is asked for besides.
#[derive(Args, Clone, Debug, Default)]
pub struct Extras {
    /// Label to put on the export, such as ui.platform-mesh.io/content-for=kubernetes.edge-connect.eu; it stays until another run changes it,
    /// and those of others stay too. May be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = mark)]
    pub export_label: Vec<(String, String)>,
    /// Annotation to put on the export, in the same way
    #[arg(long, value_name = "KEY=VALUE", value_parser = mark)]
    pub export_annotation: Vec<(String, String)>,
    /// Also claim what the disconnect guard needs: in each workspace whose binding accepts it, the manager then keeps an admission policy that
    /// refuses to delete the binding while clusters live there. The claims stay in later runs
    #[arg(long, conflicts_with = "provider")]
    pub disconnect_guard: bool,
    /// Also let this user, whom kcp takes the manager for, write to workspaces directly, where their tenants let it in: for `kcm run --direct-writes`.
    /// The grant stays in later runs
    #[arg(long, value_name = "USER", conflicts_with = "provider")]
    pub direct_writes: Option<String>,
    /// Fail if it cannot be told whether an old schema is unused. Without this flag old schemas that are proven unused go too, others stay
    #[arg(long, conflicts_with = "provider")]
    pub prune_schemas: bool,
}

/// `KEY=VALUE`; the server knows the rest of the rules.
fn mark(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    if key.is_empty() || key.ends_with("kcp.io") || key.contains("kcp.io/") {
        return Err(format!("{key:?} cannot be set by anybody but kcp itself"));
    }
    Ok((key.to_owned(), value.to_owned()))
}

impl Extras {
    /// The same objects, each export among them with the marks, and with the guard's claims where they are asked for.
    pub fn on(&self, mut desired: Vec<Desired>) -> Vec<Desired> {
        for object in desired.iter_mut().map(|desired| &mut desired.object).filter(|object| object["kind"] == "APIExport") {
            for (field, marks) in [("labels", &self.export_label), ("annotations", &self.export_annotation)] {
                for (key, value) in marks {
                    object["metadata"][field][key] = value.as_str().into();
                }
            }
            if self.disconnect_guard {
                let asked = object["spec"]["permissionClaims"].as_array().cloned().unwrap_or_default();
                let guard = guard_claims().iter().map(Claim::to_value).collect();
                object["spec"]["permissionClaims"] = [asked, guard].concat().into();
            }
        }
        desired
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{desired, plan};
    use super::*;

    fn export(extras: &Extras) -> Desired {
        let is_export = |desired: &Desired| desired.object["kind"] == "APIExport";
        extras.on(desired::exports()).into_iter().find(is_export).expect("an export")
    }

    #[test]
    fn a_mark_stays_until_it_is_changed_and_those_of_others_are_left_alone() {
        let stamped = Extras {
            export_label: vec![("a/b".into(), "1".into())],
            export_annotation: vec![("c".into(), "x=y".into())],
            ..Extras::default()
        };
        let mut live = export(&stamped).object;
        live["metadata"]["labels"]["theirs"] = json!("2");
        for (why, extras) in [("later without", Extras::default()), ("again", stamped)] {
            assert_eq!(plan::plan(&export(&extras), Some(&live)), plan::Action::Keep, "{why}");
        }
        let changed = Extras { export_label: vec![("a/b".into(), "3".into())], ..Extras::default() };
        let plan::Action::Update(body) = plan::plan(&export(&changed), Some(&live)) else { panic!("an update") };
        assert_eq!(body["metadata"]["labels"], json!({ "a/b": "3", "theirs": "2" }));
        assert_eq!(body["metadata"]["annotations"], json!({ "c": "x=y" }));
    }

    #[test]
    fn the_guards_claims_come_when_asked_for_and_stay() {
        let guarded = export(&Extras { disconnect_guard: true, ..Extras::default() });
        let plain = export(&Extras::default());
        assert_eq!(plan::plan(&plain, Some(&guarded.object)), plan::Action::Keep);
        assert!(matches!(plan::plan(&guarded, Some(&plain.object)), plan::Action::Update(_)));
        let claims = guarded.object["spec"]["permissionClaims"].as_array().map_or(0, Vec::len);
        assert_eq!(claims, 4, "two of everybody, two of the guard");
    }

    #[test]
    fn a_mark_needs_a_key_that_is_not_kcps_own() {
        assert_eq!(mark("ui.platform-mesh.io/content-for=x"), Ok(("ui.platform-mesh.io/content-for".into(), "x".into())));
        assert_eq!(mark("a="), Ok(("a".into(), String::new())));
        for odd in ["a", "=a", "kcp.io/path=x", "internal.apis.kcp.io/x=y"] {
            assert!(mark(odd).is_err(), "{odd}");
        }
    }
}
