//! Pure: what came of a `kcm dev --once`.

use std::time::Duration;

use serde::Serialize;

use super::rows::Row;

/// When something was first seen, in seconds since the start of the process; looked at several times a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Milestones {
    /// The control plane answered that it is ready.
    pub(super) kcp_ready: Option<f64>,
    /// A cluster was Scheduled.
    pub(super) first_scheduled: Option<f64>,
    /// A cluster was Ready.
    pub(super) first_ready: Option<f64>,
    /// Everything was as ordered.
    pub(super) all_as_ordered: Option<f64>,
    /// The unschedulable cluster got its Provider.
    pub(super) mended: Option<f64>,
    /// It was Scheduled.
    pub(super) mended_scheduled: Option<f64>,
    /// Everything was Ready.
    pub(super) all_ready: Option<f64>,
}

impl Milestones {
    /// Notes what is seen for the first time, and says it.
    pub(super) fn note(&mut self, rows: &[Row], elapsed: Duration) -> Vec<String> {
        let mut said = Vec::new();
        for (type_, first) in [("Scheduled", &mut self.first_scheduled), ("Ready", &mut self.first_ready)] {
            if let Some(row) = rows.iter().find(|row| row.holds(type_)).filter(|_| first.is_none()) {
                *first = Some(seconds(elapsed));
                said.push(format!("the first cluster is {type_}: {} {}/{}", row.workspace, row.namespace, row.name));
            }
        }
        said
    }
}

/// To a hundredth of a second: nobody looked more often.
pub(super) fn seconds(elapsed: Duration) -> f64 {
    (elapsed.as_secs_f64() * 100.0).round() / 100.0
}

/// Everything about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Verdict {
    /// Whether every expectation held.
    pub(super) ok: bool,
    /// What did not hold.
    pub(super) unmet: Vec<String>,
    /// When.
    pub(super) seconds: Milestones,
    /// The clusters at the end.
    pub(super) clusters: Vec<Row>,
}

#[cfg(test)]
mod tests {
    use super::super::expectations::Stage;
    use super::super::expectations::tests::perfect;
    use super::*;

    #[test]
    fn the_first_time_is_noted_once() {
        let mut milestones = Milestones::default();
        assert_eq!(milestones.note(&[], Duration::from_secs(1)), Vec::<String>::new());
        let said = milestones.note(&perfect(Stage::Ordered), Duration::from_millis(2_344));
        assert_eq!(said[0], "the first cluster is Scheduled: root:acme default/shop");
        assert_eq!(said.len(), 2);
        assert_eq!(milestones.note(&perfect(Stage::Ordered), Duration::from_secs(3)), Vec::<String>::new());
        assert_eq!((milestones.first_scheduled, milestones.first_ready), (Some(2.34), Some(2.34)));
    }
}
