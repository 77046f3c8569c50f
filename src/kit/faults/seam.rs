//! A reconciler that fails when it is told to.

use async_trait::async_trait;

use crate::reconciler::{Actor, Context, Deletion, Reconciler, Report, Workspace};

use super::Faults;
use super::fault::{Fault, Side};

/// A reconciler which panics or never comes back where a world's faults say so, and does its work else. Made by
/// [`Seam::brittle`](crate::kit::Seam::brittle).
pub struct Brittle<R> {
    inner: R,
    faults: Faults,
}

impl<R> Brittle<R> {
    pub(in crate::kit) fn new(inner: R, faults: Faults) -> Self {
        Self { inner, faults }
    }

    async fn call<T>(&self, work: impl Future<Output = T>) -> T {
        let fault = self.faults.strike_call();
        let fails = |side| (fault == Some(Fault::Panic(side)), fault == Some(Fault::Stall(side)));
        fail(fails(Side::Before)).await;
        let done = work.await;
        fail(fails(Side::After)).await;
        done
    }
}

async fn fail((panics, stalls): (bool, bool)) {
    if panics {
        // Not by `panic!`, whose message would be printed for each of many thousand runs.
        std::panic::resume_unwind(Box::new("a fault of the kit"));
    }
    if stalls {
        std::future::pending::<()>().await;
    }
}

#[async_trait]
impl<R: Reconciler> Reconciler for Brittle<R> {
    type Object = R::Object;
    type Config = R::Config;
    type Status = R::Status;
    type Error = R::Error;

    fn actor(&self) -> Actor {
        self.inner.actor()
    }

    async fn create_or_update(&self, ctx: &Context<R::Config>, object: &R::Object) -> Result<Report<R::Status>, R::Error> {
        self.call(self.inner.create_or_update(ctx, object)).await
    }

    async fn delete(&self, ctx: &Context<R::Config>, object: &R::Object) -> Result<Deletion<R::Status>, R::Error> {
        self.call(self.inner.delete(ctx, object)).await
    }

    async fn bound(&self, workspace: &Workspace) {
        self.inner.bound(workspace).await;
    }

    async fn unbound(&self, workspace: &Workspace) {
        self.inner.unbound(workspace).await;
    }

    fn unevaluated(&self, generation: i64) -> Option<R::Status> {
        self.inner.unevaluated(generation)
    }
}
