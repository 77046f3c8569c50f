//! From a long list of operations that ends in a difference to a short one.

use std::time::Duration;

use tokio::time::Instant;

use super::lane::Difference;
use super::plan::Operation;

/// The shortest list that was found in time: whole parts are left out as long as a difference in the same kind of operation remains.
///
/// `run` runs operations on fresh workspaces and returns the first difference.
pub(crate) async fn shrink(
    operations: Vec<Operation>,
    first: Difference,
    within: Duration,
    mut run: impl AsyncFnMut(&[Operation]) -> Option<(usize, Difference)>,
) -> (Vec<Operation>, Difference) {
    let began = Instant::now();
    let (mut operations, mut difference) = (operations, first);
    // Most differences are about one object: what never names it can go at once.
    if let Some(last) = operations.last() {
        let about = last.objects();
        let mut related: Vec<Operation> =
            operations[..operations.len() - 1].iter().filter(|operation| !operation.objects().is_disjoint(&about)).cloned().collect();
        related.push(last.clone());
        if related.len() < operations.len()
            && let Some((at, found)) = run(&related).await
            && found.kind == difference.kind
        {
            operations = related[..=at].to_vec();
            difference = found;
        }
    }
    let mut part = operations.len().div_ceil(2).max(1);
    loop {
        let mut start = 0;
        let mut shorter = false;
        // The last one is where the difference is.
        while start + 1 < operations.len() {
            if began.elapsed() >= within {
                return (operations, difference);
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
            return (operations, difference);
        }
        part = part.div_ceil(2).max(1).min(operations.len().max(1));
    }
}
