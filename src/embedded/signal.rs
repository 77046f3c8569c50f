//! A count that can be waited for. tokio's `watch` wakes its receivers in an order drawn at random; here they wake in the order in which they began
//! to wait, so that a run can be repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
struct Shared {
    count: AtomicU64,
    grown: Notify,
}

/// Where the count grows.
#[derive(Debug, Default)]
pub(crate) struct Signal(Arc<Shared>);

/// Who waits for it to grow.
#[derive(Debug)]
pub(crate) struct Waiter {
    shared: Arc<Shared>,
    seen: u64,
}

impl Signal {
    /// Lets it grow, which wakes everybody.
    pub(crate) fn grow(&self) {
        self.0.count.fetch_add(1, Ordering::Relaxed);
        self.0.grown.notify_waiters();
    }

    /// Somebody who waits from now on.
    pub(crate) fn waiter(&self) -> Waiter {
        Waiter { shared: self.0.clone(), seen: self.0.count.load(Ordering::Relaxed) }
    }

    /// Whether anybody may wait.
    pub(crate) fn is_heard(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl Waiter {
    /// Comes back when it has grown since it was last seen to; never after that if nothing happens. Cancelling it loses nothing.
    pub(crate) async fn grown(&mut self) {
        let shared = self.shared.clone();
        loop {
            // Made before the look, so that what happens in between wakes it.
            let grown = shared.grown.notified();
            if self.look() {
                return;
            }
            grown.await;
        }
    }

    /// Takes note of the count as it is, and says whether it had grown.
    pub(crate) fn look(&mut self) -> bool {
        let count = self.shared.count.load(Ordering::Relaxed);
        std::mem::replace(&mut self.seen, count) != count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn everybody_runs() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn waiters_wake_in_the_order_in_which_they_began_to_wait() {
        let (signal, order) = (Signal::default(), Arc::new(parking_lot::Mutex::new(Vec::new())));
        for number in 0..50 {
            let (mut waiter, order) = (signal.waiter(), order.clone());
            drop(tokio::spawn(async move {
                waiter.grown().await;
                order.lock().push(number);
            }));
        }
        everybody_runs().await;
        assert!(order.lock().is_empty() && signal.is_heard());
        signal.grow();
        everybody_runs().await;
        assert_eq!(*order.lock(), (0..50).collect::<Vec<_>>());
        assert!(!signal.is_heard());
    }

    #[tokio::test]
    async fn what_grew_before_it_was_waited_for_is_not_missed() {
        let signal = Signal::default();
        let mut waiter = signal.waiter();
        signal.grow();
        waiter.grown().await;
        assert!(!waiter.look());
    }
}
