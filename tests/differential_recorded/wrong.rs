//! That the test can fail: a server with one fault, beside one without.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::embedded::Embedded;
use super::generate::Generator;
use super::plan::Operation;
use super::run::first_difference;
use super::target::{Got, Sent, Target};
use super::{report, shrink};

/// Counts the generations of widgets wrongly: the second is the first.
struct Wrong(Embedded);

#[async_trait]
impl Target for Wrong {
    async fn send(&self, sent: &Sent) -> anyhow::Result<Got> {
        let mut got = self.0.send(sent).await?;
        if let Ok(mut body) = serde_json::from_str::<Value>(&got.text)
            && body["kind"] == "Widget"
            && body["metadata"]["generation"] == 2
        {
            body["metadata"]["generation"] = json!(1);
            got.text = body.to_string();
        }
        Ok(got)
    }

    fn token(&self, user: &str) -> Option<String> {
        self.0.token(user)
    }

    fn base_url(&self) -> &str {
        self.0.base_url()
    }
}

#[tokio::test(start_paused = true)]
async fn one_fault_is_found_and_told_in_a_few_operations() {
    let targets: [Arc<dyn Target>; 2] = [Arc::new(Embedded::start()), Arc::new(Wrong(Embedded::start()))];
    let mut generator = Generator::new(1, 0);
    let operations: Vec<Operation> = std::iter::repeat_with(|| generator.next()).take(200).collect();
    let (at, found) = first_difference(&targets, "wrong", &operations).await.expect("the fault shows");
    let rerun = async |operations: &[Operation]| first_difference(&targets, "wrong", operations).await;
    let (operations, difference) =
        shrink::shrink(operations[..=at].to_vec(), found, Duration::from_hours(1), rerun).await.expect("it comes again");
    assert!(operations.len() <= 3, "{operations:?}");
    let text = report::difference(1, 0, &operations, &difference);
    for line in ["-      \"generation\": 2,", "+      \"generation\": 1,"] {
        assert!(text.contains(line), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_fault_is_like_itself() {
    let targets: [Arc<dyn Target>; 2] = [Arc::new(Embedded::start()), Arc::new(Embedded::start())];
    let mut generator = Generator::new(1, 0);
    let operations: Vec<Operation> = std::iter::repeat_with(|| generator.next()).take(300).collect();
    let found = first_difference(&targets, "right", &operations).await;
    assert!(found.is_none(), "{}", found.map(|(at, found)| report::difference(1, 0, &operations[..=at], &found)).unwrap_or_default());
}
