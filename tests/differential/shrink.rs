//! From a long list of operations that ends in a difference to a short one.

use std::time::Duration;

use tokio::time::Instant;

use super::lane::Difference;
use super::plan::Operation;

/// The last of some operations, and those before it that are about an object of it.
pub(crate) fn related(operations: &[Operation]) -> Vec<Operation> {
    let Some((last, before)) = operations.split_last() else { return Vec::new() };
    let about = last.objects();
    before.iter().filter(|operation| !operation.objects().is_disjoint(&about)).chain([last]).cloned().collect()
}

/// The shortest list that was found in time: whole parts are left out as long as a difference in the same kind of operation remains. `None`
/// when it does not come again though everything is played once more: the real server's controllers had run in another order.
///
/// `run` runs operations on fresh workspaces and returns the first difference.
pub(crate) async fn shrink(
    operations: Vec<Operation>,
    first: Difference,
    within: Duration,
    mut run: impl AsyncFnMut(&[Operation]) -> Option<(usize, Difference)>,
) -> Option<(Vec<Operation>, Difference)> {
    let began = Instant::now();
    let (mut operations, mut difference) = (operations, first);
    let mut again = false;
    // Most differences are about one object: what never names it can go at once.
    let related = related(&operations);
    if related.len() < operations.len()
        && let Some((at, found)) = run(&related).await
        && found.kind == difference.kind
    {
        operations = related[..=at].to_vec();
        difference = found;
        again = true;
    }
    if !again && !within.is_zero() {
        let (at, found) = run(&operations).await.filter(|(_, found)| found.kind == difference.kind)?;
        operations.truncate(at + 1);
        difference = found;
    }
    let mut part = operations.len().div_ceil(2).max(1);
    loop {
        let mut start = 0;
        let mut shorter = false;
        // The last one is where the difference is.
        while start + 1 < operations.len() {
            if began.elapsed() >= within {
                return Some((operations, difference));
            }
            let end = (start + part).min(operations.len() - 1);
            let without: Vec<Operation> = operations[..start].iter().chain(&operations[end..]).cloned().collect();
            match run(&without).await {
                Some((at, found)) if found.kind == difference.kind => {
                    operations = without[..=at].to_vec();
                    difference = found;
                    shorter = true;
                }
                _ => start = end,
            }
        }
        if part == 1 && !shorter {
            return Some((operations, difference));
        }
        part = part.div_ceil(2).max(1).min(operations.len().max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Call;
    use serde_json::Value;

    fn get(name: &str) -> Operation {
        Operation::one("get", Call::get(format!("/clusters/⟦t1⟧/api/v1/namespaces/default/configmaps/{name}")))
    }

    fn found(operation: &Operation) -> Difference {
        Difference { kind: operation.kind, step: operation.to_string(), answers: [Value::Null, Value::Bool(true)] }
    }

    /// A difference that needs the operations on `needed`, in this order, and then the last.
    async fn shrunk(all: &[&str], needed: &[&str]) -> Vec<String> {
        let operations: Vec<Operation> = all.iter().map(|name| get(name)).collect();
        let difference = found(operations.last().unwrap());
        let needed: Vec<String> = needed.iter().map(|name| get(name).to_string()).collect();
        let run = async |operations: &[Operation]| {
            let mut left = needed.iter();
            let mut next = left.next();
            for (at, operation) in operations.iter().enumerate() {
                if next == Some(&operation.to_string()) {
                    next = left.next();
                    if next.is_none() {
                        return Some((at, found(operation)));
                    }
                }
            }
            None
        };
        let (operations, _) = shrink(operations, difference, Duration::from_mins(1), run).await.expect("it comes again");
        operations.iter().map(|operation| operation.to_string().rsplit('/').next().unwrap().to_owned()).collect()
    }

    #[tokio::test]
    async fn what_does_not_come_again_is_no_difference() {
        let operations = vec![get("a"), get("b")];
        let difference = found(&operations[1]);
        assert!(shrink(operations, difference, Duration::from_mins(1), async |_: &[Operation]| None).await.is_none());
    }

    #[tokio::test]
    async fn only_what_leads_to_the_difference_is_left() {
        for (why, all, needed) in [
            ("one object", &["a", "b", "a", "c", "d", "a"][..], &["a", "a"][..]),
            ("two objects", &["a", "b", "c", "d", "e", "f", "g"], &["b", "e", "g"]),
            ("the last alone", &["a", "b", "c"], &["c"]),
            ("everything", &["a", "b", "c"], &["a", "b", "c"]),
        ] {
            assert_eq!(shrunk(all, needed).await, needed, "{why}");
        }
    }
}
