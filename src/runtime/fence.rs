//! Where the runtime calls what a provider wrote: a panic in there is an answer, and harms nothing but what the call was about.
//!
//! No lock of the runtime is held around any of these calls, so that nothing is left half changed: the heart is one value in one task and has
//! none, and what a call has for itself is dropped with it. What unwinds is the provider's own code, which is handed shared references.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use futures::FutureExt as _;

use crate::reconciler::cut;

/// Why a call in time has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It panicked, in these words: for the operator's log alone, since nobody knows what is in them.
    Panicked(String),
    TooSlow,
}

/// Calls a function; the error is what it panicked with.
pub(crate) fn called<T>(function: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(function)).map_err(|panic| cut(&words(&*panic)).to_owned())
}

/// Awaits a future and drops it; the error is what it panicked with while it did either.
pub(crate) async fn awaited<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let inside = async {
        // Pinned in here, so that it is dropped in here too.
        let work = std::pin::pin!(work);
        work.await
    };
    AssertUnwindSafe(inside).catch_unwind().await.map_err(|panic| cut(&words(&*panic)).to_owned())
}

/// The same, for so long at most. A future that is given up is dropped in here too.
pub(crate) async fn in_time<T>(deadline: Duration, work: impl Future<Output = T>) -> Result<T, Broken> {
    match awaited(tokio::time::timeout(deadline, work)).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) => Err(Broken::TooSlow),
        Err(words) => Err(Broken::Panicked(words)),
    }
}

/// What a panic says.
pub(crate) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics when it is dropped.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[test]
    fn a_function_that_panics_answers_with_its_words() {
        assert_eq!(called(|| 7), Ok(7));
        assert_eq!(called(|| panic!("it has no {}", 7)), Err::<(), _>("it has no 7".into()));
        assert_eq!(called(|| std::panic::panic_any(7)), Err::<(), _>("a panic without words".into()));
        assert_eq!(called(|| panic!("{}", "x".repeat(5000))).map_err(|words| words.len()), Err::<(), _>(1024));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_given_up_may_panic_when_it_is_dropped() {
        let minute = Duration::from_mins(1);
        assert_eq!(in_time(minute, async { 7 }).await, Ok(7));
        assert_eq!(in_time(minute, std::future::pending::<()>()).await, Err(Broken::TooSlow));
        let late = async {
            let _bomb = Bomb;
            std::future::pending::<()>().await;
        };
        assert_eq!(in_time(minute, late).await, Err(Broken::Panicked("dropped".into())));
        let done = async {
            let _bomb = Bomb;
        };
        assert_eq!(awaited(done).await, Err("dropped".into()));
    }
}
