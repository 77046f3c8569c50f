//! Pure: whether the clusters have become what the scenario says, and what is missing.

use std::collections::BTreeMap;

use super::rows::{CONDITIONS, Row};
use super::scenario::{NAMESPACE, Order, Tenant};

/// How far the scenario is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Everything is ordered; the tenant without a Provider waits for one.
    Ordered,
    /// That tenant has its Provider.
    Mended,
}

/// Everything that is not as it should be, a sentence each; empty when all is well.
pub fn unmet(stage: Stage, tenants: &[Tenant], rows: &[Row]) -> Vec<String> {
    let mut unmet = Vec::new();
    let mut expected = 0;
    for tenant in tenants {
        let schedulable = stage == Stage::Mended || !tenant.providers.is_empty();
        for order in tenant.clusters {
            expected += 1;
            let workspace = workspace(tenant);
            let title = format!("{workspace} {NAMESPACE}/{}", order.name);
            let found = rows.iter().find(|row| (&row.workspace, &*row.namespace, &*row.name) == (&workspace, NAMESPACE, order.name));
            match found {
                None => unmet.push(format!("{title} is not there")),
                Some(row) if schedulable => unmet.extend(ready(order, row).into_iter().map(|what| format!("{title} {what}"))),
                Some(row) => unmet.extend(waiting(order, row).into_iter().map(|what| format!("{title} {what}"))),
            }
        }
    }
    if rows.len() > expected {
        unmet.push(format!("there are {} clusters, where {expected} were ordered", rows.len()));
    }
    unmet
}

/// The path of a tenant's workspace.
pub fn workspace(tenant: &Tenant) -> String {
    format!("root:{}", tenant.name)
}

fn ready(order: &Order, row: &Row) -> Vec<String> {
    let mut unmet: Vec<String> = CONDITIONS.iter().filter(|type_| !row.holds(type_)).map(|type_| state(row, type_, "True")).collect();
    let types: BTreeMap<String, String> = order.pools.iter().map(|pool| (pool.name.into(), pool.fits.into())).collect();
    if row.provider.as_deref() != Some(order.chosen) {
        unmet.push(format!("is with provider {}, not {}", row.provider.as_deref().unwrap_or("none"), order.chosen));
    }
    if row.types != types {
        unmet.push(format!("has the machine types {:?}, not {types:?}", row.types));
    }
    if row.ready != Some(true) {
        unmet.push("has no status.ready: true".into());
    }
    unmet
}

fn waiting(order: &Order, row: &Row) -> Vec<String> {
    let mut unmet = Vec::new();
    match row.conditions.get("Scheduled") {
        Some(shown) if shown.current && shown.status == "False" && shown.reason == "ProviderNotConfigured" => {
            if !shown.message.contains(order.chosen) {
                unmet.push(format!("does not name provider {}: {}", order.chosen, shown.message));
            }
        }
        _ => unmet.push(state(row, "Scheduled", "False (ProviderNotConfigured)")),
    }
    if !row.conditions.get("Ready").is_some_and(|shown| shown.current && shown.status == "False") {
        unmet.push(state(row, "Ready", "False"));
    }
    if row.provider.is_some() || !row.types.is_empty() {
        unmet.push("has a provider or a projection, though nothing is scheduled".into());
    }
    unmet
}

fn state(row: &Row, type_: &str, wanted: &str) -> String {
    match row.conditions.get(type_) {
        None => format!("has no {type_} yet, which should be {wanted}"),
        Some(shown) => {
            let age = if shown.current { "" } else { " for an older generation" };
            format!("has {type_}={} ({}: {}){age}, which should be {wanted}", shown.status, shown.reason, shown.message)
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::rows::Shown;
    use super::super::scenario::{TENANTS, UNSCHEDULABLE};
    use super::*;

    fn shown(status: &'static str, reason: &str, message: &str) -> Shown {
        Shown { status, reason: reason.into(), message: message.into(), current: true }
    }

    /// What a server shows once everything is as it should be.
    pub(in super::super) fn perfect(stage: Stage) -> Vec<Row> {
        let mut rows = Vec::new();
        for tenant in &TENANTS {
            for order in tenant.clusters {
                let up = stage == Stage::Mended || tenant.name != UNSCHEDULABLE;
                let condition = |type_: &str| match (up, type_) {
                    (true, _) => shown("True", "Ready", "fine"),
                    (false, "Scheduled") => shown("False", "ProviderNotConfigured", "the workspace has no Provider for otc"),
                    (false, _) => shown("False", "Pending", "waits"),
                };
                rows.push(Row {
                    workspace: workspace(tenant),
                    namespace: NAMESPACE.into(),
                    name: order.name.into(),
                    provider: up.then(|| order.chosen.into()),
                    types: order.pools.iter().filter(|_| up).map(|pool| (pool.name.into(), pool.fits.into())).collect(),
                    ready: Some(up),
                    conditions: CONDITIONS.iter().map(|type_| ((*type_).to_owned(), condition(type_))).collect(),
                });
            }
        }
        rows
    }

    #[test]
    fn what_the_scenario_says_is_met() {
        for stage in [Stage::Ordered, Stage::Mended] {
            assert_eq!(unmet(stage, &TENANTS, &perfect(stage)), Vec::<String>::new());
        }
        assert_eq!(unmet(Stage::Mended, &TENANTS, &perfect(Stage::Ordered)).len(), 7, "four conditions, provider, types and status.ready");
        assert_eq!(unmet(Stage::Ordered, &TENANTS, &perfect(Stage::Mended)).len(), 3, "it is scheduled too early");
        assert_eq!(unmet(Stage::Ordered, &TENANTS, &[]).len(), 5, "nothing is there");
    }

    #[test]
    fn each_deviation_is_named() {
        type Change = fn(&mut Row);
        let cases: [(&str, Change, &str); 7] = [
            ("another provider", |row| row.provider = Some("ionos".into()), "root:acme default/shop is with provider ionos, not otc"),
            ("another type", |row| drop(row.types.insert("system".into(), "m-8-32".into())), "has the machine types"),
            (
                "an old Ready",
                |row| row.conditions.get_mut("Ready").unwrap().current = false,
                "for an older generation, which should be True",
            ),
            ("no Ready", |row| drop(row.conditions.remove("Ready")), "has no Ready yet"),
            (
                "not projected",
                |row| drop(row.conditions.insert("Projected".into(), shown("False", "Pending", "m"))),
                "Projected=False (Pending: m)",
            ),
            ("the field lags", |row| row.ready = None, "has no status.ready: true"),
            ("another workspace", |row| row.workspace = "root:other".into(), "root:acme default/shop is not there"),
        ];
        for (why, change, sentence) in cases {
            let mut rows = perfect(Stage::Ordered);
            change(&mut rows[0]);
            let unmet = unmet(Stage::Ordered, &TENANTS, &rows);
            assert!(unmet.len() == 1 && unmet[0].contains(sentence), "{why}: {unmet:?}");
        }
    }

    #[test]
    fn the_waiting_cluster_must_say_which_provider_would_do() {
        let mut rows = perfect(Stage::Ordered);
        rows.last_mut().unwrap().conditions.insert("Scheduled".into(), shown("False", "ProviderNotConfigured", "no Provider"));
        assert_eq!(unmet(Stage::Ordered, &TENANTS, &rows), ["root:initech default/payroll does not name provider otc: no Provider"]);
        rows.last_mut().unwrap().conditions.insert("Scheduled".into(), shown("False", "OfferingNotFound", "otc"));
        assert!(unmet(Stage::Ordered, &TENANTS, &rows)[0].contains("which should be False (ProviderNotConfigured)"));
    }

    #[test]
    fn a_cluster_that_nobody_ordered_is_noticed() {
        let mut rows = perfect(Stage::Ordered);
        rows.push(Row { name: "stray".into(), ..rows[0].clone() });
        assert_eq!(unmet(Stage::Ordered, &TENANTS, &rows), ["there are 6 clusters, where 5 were ordered"]);
    }
}
