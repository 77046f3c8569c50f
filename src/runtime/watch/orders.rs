//! What a stream can be told from outside, each thing kept once until it is heard.

use tokio::sync::watch;

/// What a stream can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// The kind is about to be served.
    Nudge,
    /// List now.
    Refresh,
}

/// How often each order was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Given {
    nudges: u64,
    refreshes: u64,
}

/// Gives orders; dropping it ends the stream. Never waits, and takes no more room however many are given.
#[derive(Debug)]
pub(crate) struct Orders(watch::Sender<Given>);

/// Hears orders: one of each kind at most, however often it was given since the last time.
#[derive(Debug)]
pub(crate) struct Inbox {
    given: watch::Receiver<Given>,
    heard: Given,
}

/// A way for orders to one stream.
pub(crate) fn orders() -> (Orders, Inbox) {
    let (sender, given) = watch::channel(Given::default());
    (Orders(sender), Inbox { given, heard: Given::default() })
}

impl Orders {
    /// Gives an order; one that was given and not heard yet is the same order.
    pub(crate) fn give(&self, order: Order) {
        self.0.send_modify(|given| match order {
            Order::Nudge => given.nudges += 1,
            Order::Refresh => given.refreshes += 1,
        });
    }
}

impl Inbox {
    /// Waits for the next order; `None` when no more can come. Cancelling the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Order> {
        loop {
            let given = *self.given.borrow_and_update();
            if given.refreshes != self.heard.refreshes {
                self.heard.refreshes = given.refreshes;
                return Some(Order::Refresh);
            }
            if given.nudges != self.heard.nudges {
                self.heard.nudges = given.nudges;
                return Some(Order::Nudge);
            }
            self.given.changed().await.ok()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_refresh_behind_any_number_of_nudges_is_heard_and_each_order_once() {
        let (sender, mut inbox) = orders();
        for _ in 0..1000 {
            sender.give(Order::Nudge);
        }
        sender.give(Order::Refresh);
        assert_eq!((inbox.next().await, inbox.next().await), (Some(Order::Refresh), Some(Order::Nudge)));
        sender.give(Order::Refresh);
        drop(sender);
        assert_eq!((inbox.next().await, inbox.next().await), (Some(Order::Refresh), None));
    }

    #[tokio::test]
    async fn an_order_that_comes_while_it_is_waited_for_ends_the_wait() {
        let (sender, mut inbox) = orders();
        let waiting = tokio::spawn(async move { inbox.next().await });
        tokio::task::yield_now().await;
        sender.give(Order::Nudge);
        assert_eq!(waiting.await.unwrap(), Some(Order::Nudge));
    }
}
