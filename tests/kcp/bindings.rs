//! Bindings come and go: the manager is ready without any, and nothing of a workspace that left stays behind.

use std::collections::BTreeMap;

use kcp_provider_runtime::api::manifest::export;

use crate::support::kcp;
use crate::support::platform::{BINDINGS, Manager, Platform, SOON, eventually};

/// The streams of the provider workspace: the endpoint slice, the configuration, offerings and machine types.
const STREAMS: u64 = 4;

fn one_list_and_one_watch_each() -> BTreeMap<(String, u16), u64> {
    [(("list".to_owned(), 200), STREAMS), (("watch".to_owned(), 200), STREAMS)].into()
}

/// Waits until the manager knows everything of the provider workspace, and shows that it asks for nothing more.
async fn is_quiet(manager: &Manager, before: &BTreeMap<(String, u16), u64>) {
    assert_eq!(manager.handle.missing(), Some(Vec::new()));
    // A new workspace takes kcp some seconds, in which a storm of requests would show.
    kcp().await.workspace("idle").await;
    assert_eq!(&manager.streamed(), before, "lists and watches");
    assert_eq!(manager.handle.missing(), Some(Vec::new()));
}

#[tokio::test]
async fn without_any_binding_the_manager_is_ready_and_quiet() {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let manager = platform.manager().await;
    eventually("the watches are open", async || manager.streamed() == one_list_and_one_watch_each()).await;

    is_quiet(&manager, &one_list_and_one_watch_each()).await;

    assert!(!manager.requests().keys().any(|(verb, _)| !verb.ends_with("the configuration")), "{:?}", manager.requests());
    manager.stop().await;
}

#[tokio::test]
async fn the_first_binding_is_picked_up_and_so_is_a_new_one_after_the_last_has_gone() {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let manager = platform.manager().await;
    let tenant = platform.tenant().await;
    tenant.provider("otc").await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    let first = tenant.scheduled("demo").await;

    tenant.client().delete(&BINDINGS, "", export::EXPORT).await.unwrap();
    tenant.client().wait_gone(&BINDINGS, "", export::EXPORT, SOON).await.unwrap();
    manager.forgets().await;
    is_quiet(&manager, &manager.streamed()).await;

    platform.bind(&tenant.workspace).await;
    tenant.served().await;
    tenant.provider("otc").await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    let second = tenant.scheduled("demo").await;
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    eventually("the workspace is counted again", async || manager.size("workspaces") == 1).await;
    manager.stop().await;
}
