//! Kubernetes Events that a workspace or its server does not take: nobody waits for them.

use std::time::Duration;

use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::api::manifest::samples;
use kcp_provider_runtime::api::tenant::KubernetesCluster;
use serde_json::json;

use crate::support::{Fate, platform};
use crate::told::{asked, codes, only, refused, unserved};

const BINDING: &str = "/apis/apis.kcp.io/v1alpha2/apibindings/kubernetes.edge-connect.eu";

/// Report 20: events are refused right after binding, or for ever.
#[tokio::test(start_paused = true)]
async fn a_workspace_that_rejected_the_claim_on_events_misses_them_and_nothing_else() {
    let (world, _) = platform().await;
    let (acme, bolt) = (world.workspace("acme").await, world.workspace("bolt").await);
    let answer = async |state: &str| {
        let claim =
            json!({"group": "", "resource": "events", "verbs": ["create", "patch"], "state": state, "selector": {"matchAll": true}});
        acme.client().merge(BINDING, &json!({"spec": {"permissionClaims": [claim]}})).await.ok().unwrap();
    };
    answer("Rejected").await;
    for tenant in [&acme, &bolt] {
        for name in ["one", "two", "three"] {
            tenant.apply(unserved(name, "9.9.0")).await;
        }
        tenant.apply(samples::tenant()[1].clone()).await;
        tenant.condition::<KubernetesCluster>("demo", "Scheduled", False, "ProviderNotConfigured").await;
    }
    world.settled().await;
    let refusals = || asked(&world).iter().filter(|sent| sent.code == 403).count();
    assert_eq!(refusals(), 1, "it is asked once: {:?}", codes(&world));
    assert_eq!(bolt.events::<KubernetesCluster>("demo").await.len(), 1);
    acme.apply(samples::tenant()[0].clone()).await;
    acme.condition::<KubernetesCluster>("demo", "Projected", True, "InSync").await;
    world.advance(Duration::from_hours(1)).await;
    assert_eq!(refusals(), 2, "and once more, an interval later: {:?}", codes(&world));
    assert!(world.handles()[0].metrics().text().contains("kcp_provider_events_total{outcome=\"refused\"} 2"));
    answer("Accepted").await;
    acme.merge::<KubernetesCluster>("one", json!({"spec": {"version": "9.9.1"}})).await;
    refused(&acme, "one").await;
    world.settled().await;
    assert_eq!(only(&acme, "one").await["count"], 2, "what it missed is counted");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_no_event_delays_no_cluster_and_is_not_pestered() {
    for fate in [Fate::Code(404), Fate::Code(405), Fate::Code(500), Fate::Refused, Fate::Unanswered, Fate::Lost] {
        let (world, faults) = platform().await;
        faults.add("/api/v1/namespaces/default/events", fate);
        let acme = world.workspace("acme").await;
        acme.apply(unserved("late", "9.9.0")).await;
        acme.apply(samples::tenant()[1].clone()).await;
        acme.condition::<KubernetesCluster>("demo", "Scheduled", False, "ProviderNotConfigured").await;
        let began = world.now();
        acme.apply(samples::tenant()[0].clone()).await;
        acme.condition::<KubernetesCluster>("demo", "Projected", True, "InSync").await;
        let took = world.now().duration_since(began).unsigned_abs();
        assert!(took < Duration::from_secs(3), "{fate:?}: {took:?}");
        world.advance(Duration::from_mins(30)).await;
        assert!((1..=3).contains(&faults.met()), "{fate:?}: {} requests in half an hour", faults.met());
        faults.end();
        acme.merge::<KubernetesCluster>("late", json!({"spec": {"version": "9.9.1"}})).await;
        refused(&acme, "late").await;
        world.settled().await;
        assert_eq!(only(&acme, "late").await["count"], 2, "{fate:?}");
    }
}
