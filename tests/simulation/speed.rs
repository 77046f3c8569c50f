//! How fast the simulator is: many lives in one world, without faults and without the checker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kcp_provider_runtime::api::condition::ConditionStatus::True;
use kcp_provider_runtime::api::manifest::samples;
use kcp_provider_runtime::api::tenant::KubernetesCluster;
use kcp_provider_runtime::embedded::{Timing, Version};
use kcp_provider_runtime::kit::World;
use kcp_provider_runtime::kit::faults::Plan;
use kcp_provider_runtime::kit::trial::Trial;
use parking_lot::Mutex;

use crate::life::{order, serve};
use crate::platform::{platform, report};

const TENANTS: [&str; 5] = ["a", "b", "c", "d", "e"];
/// Clusters of all.
const ALL: u32 = 5 * CLUSTERS;
/// Clusters of each tenant.
const CLUSTERS: u32 = 10;
/// For how long it is measured.
const MEASURED: Duration = Duration::from_secs(10);

async fn told(world: &World, token: &str) {
    serve(world, token, false);
    let names: Vec<String> = (0..CLUSTERS).map(|at| format!("cluster-{at}")).collect();
    for tenant in TENANTS.map(|tenant| world.tenant(tenant)) {
        for name in &names {
            tenant.apply(order(name)).await;
        }
    }
    for tenant in TENANTS.map(|tenant| world.tenant(tenant)) {
        for name in &names {
            tenant.condition::<KubernetesCluster>(name, "Projected", True, "InSync").await;
            report(world, &tenant, name, true).await;
        }
        for name in &names {
            tenant.condition::<KubernetesCluster>(name, "Ready", True, "Ready").await;
            tenant.delete::<KubernetesCluster>(name).await;
        }
    }
    for tenant in TENANTS.map(|tenant| world.tenant(tenant)) {
        for name in &names {
            tenant.gone::<KubernetesCluster>(name).await;
        }
    }
}

/// Measures on one core and tells of it; whether every life came to its end.
pub(crate) fn measure() -> bool {
    let token: Arc<Mutex<String>> = Arc::default();
    let made = token.clone();
    let prepare = async move || {
        let (world, _, token) = platform(1, Timing::INSTANT, Version::V0_28).await;
        for tenant in TENANTS {
            world.workspace(tenant).await.apply(samples::tenant()[0].clone()).await;
        }
        *made.lock() = token;
        world
    };
    let trial = Trial::new(prepare, async move |world: &World| {
        let token = token.lock().clone();
        told(world, &token).await;
    });
    let (began, mut worlds) = (Instant::now(), 0_u32);
    while began.elapsed() < MEASURED {
        if let Some(problem) = trial.play(&Plan::default()).problem {
            println!("{problem}");
            return false;
        }
        worlds += 1;
    }
    let lives = f64::from(worlds * ALL) / began.elapsed().as_secs_f64();
    println!("speed: {lives:.0} lives of clusters a second on one core ({worlds} worlds of {ALL} clusters)");
    true
}
