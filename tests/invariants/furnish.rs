//! KCM's exports, claims and sample catalog in a world of the kit.

use kcp_provider_runtime::api::manifest::{catalog, export, exported, samples};
use kcp_provider_runtime::kit::World;

/// Sets them up, in a world that has nothing yet.
pub(crate) async fn furnish(world: &mut World) {
    for definition in exported() {
        world.export(definition).await;
    }
    for claim in export::claims() {
        world.claim(claim).await;
    }
    for definition in catalog() {
        world.provider().define(definition).await;
    }
    for object in samples::catalog() {
        world.provider().apply(object).await;
    }
}
