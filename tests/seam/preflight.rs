//! A provider's own check before anything is served.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kcp_provider_runtime::api::condition::ConditionStatus::True;
use kcp_provider_runtime::runtime::{Options, Preflight, RunError, Runtime};

use crate::provider::{Painter, Toy};
use crate::{Calls, toy, toys, world_of};

#[tokio::test(start_paused = true)]
async fn a_providers_own_check_runs_once_before_anything_is_served_and_may_refuse_the_start() {
    let world = world_of(toys()).await;
    world.forget_requests();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let refusing = Preflight::new(move |starting| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { Err(format!("the backend of {} is down, asked for {}", starting.export, starting.provider_workspace)) }
    });
    let options = Options { preflight: Some(refusing), ..world.options() };
    let refused = Runtime::new(options.clone()).serve(|_| Painter(Calls::default())).run().await.unwrap_err();
    assert!(matches!(&refused, RunError::Preflight(_)), "{refused}");
    let said = refused.to_string();
    assert!(
        said.starts_with("the preflight check refused the start: the backend of toys.test is down")
            && said.contains("/clusters/root:provider")
    );
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert!(world.requests().is_empty(), "nothing was asked of the server");

    let broken = Preflight::new(|_| async { panic!("the backend has no {}", "address") });
    let options = Options { preflight: Some(broken), ..options };
    let refused = Runtime::new(options).serve(|_| Painter(Calls::default())).run().await.unwrap_err();
    assert_eq!(refused.to_string(), "the preflight check refused the start: it panicked: the backend has no address");

    // One that hangs ends with the order to stop.
    let hanging = Options { preflight: Some(Preflight::new(|_| std::future::pending())), ..world.options() };
    let runtime = Runtime::new(hanging).serve(|_| Painter(Calls::default()));
    let handle = runtime.handle();
    let run = tokio::spawn(runtime.run());
    handle.stop();
    run.await.unwrap().unwrap();

    let fine = Options { preflight: Some(Preflight::new(|_| std::future::ready(Ok(())))), ..world.options() };
    world.run_with(fine, |runtime| runtime.serve(|_| Painter(Calls::default())));
    let acme = world.workspace("acme").await;
    acme.apply(toy("car", "red")).await;
    acme.condition::<Toy>("car", "Painted", True, "Dry").await;
}
