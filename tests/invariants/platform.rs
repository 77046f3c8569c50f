//! KCM's platform in a world of the kit, and a checker that is told of all that happens there.

use std::sync::Arc;

use kcp_provider_runtime::api::manifest::rbac;
use kcp_provider_runtime::api::projection::Projection;
use kcp_provider_runtime::embedded::{self, Timing, Version};
use kcp_provider_runtime::kit::{Workspace, World};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::checker::{Checker, Principal, Violation};
use crate::embedded::event;
use crate::furnish::furnish;

/// The bearer token of the provider's controller.
pub(crate) const PROVIDER: &str = "otc-controller";
/// The bearer token, and the name, of tenants that are no more than that.
#[allow(dead_code, reason = "each target uses its part of the platform")]
pub(crate) const TENANT: &str = "tenant";
/// Where projections are, below a workspace.
pub(crate) const DEMO: &str = "/apis/provider.kubernetes.edge-connect.eu/v1alpha1/namespaces/default/kubernetesclusters";
const MANAGER: &str = "system:serviceaccount:kcm-system:kcm";

/// What was checked, and what was found.
#[derive(Default)]
pub(crate) struct Book {
    pub(crate) checker: Checker,
    pub(crate) found: Vec<Violation>,
}

/// How tenants' workspaces know the manager.
#[allow(dead_code, reason = "each target uses its part of the platform")]
pub(crate) fn manager(world: &World) -> String {
    format!("system:kcp:serviceaccount:{}:kcm-system:kcm", world.provider().logical_cluster())
}

fn principal(seen: &embedded::Event) -> Principal {
    match seen.user.as_str() {
        user if user == MANAGER || (user.starts_with("system:kcp:serviceaccount:") && user.ends_with(":kcm-system:kcm")) => {
            if seen.manager == "cluster-status" { Principal::Status } else { Principal::Scheduler }
        }
        PROVIDER => Principal::Provider,
        "" => Principal::Other,
        _ => Principal::Tenant,
    }
}

/// A platform with the sample catalog, checked from its beginning, and the token of the manager's account, which has the rights that it is deployed
/// with and no more. From v0.31 on, workspaces know it by [`manager`].
pub(crate) async fn platform(shards: usize, timing: Timing, version: Version) -> (World, Arc<Mutex<Book>>, String) {
    let user = |name: &str, groups: &[&str]| (name.to_owned(), name.to_owned(), groups.iter().map(|group| (*group).to_owned()).collect());
    let users = [user(PROVIDER, &["system:masters"]), user(TENANT, &[])];
    let profile =
        embedded::Options { shards, timing, version, started: "2026-01-01T00:00:00Z".parse().unwrap(), ..embedded::Options::default() };
    let users = profile.users.iter().cloned().chain(users).collect();
    let mut world = World::with(embedded::Options { users, ..profile }).await;
    let book = observe(&world, Checker::default());
    furnish(&mut world).await;
    for object in rbac::manager_identity().into_iter().chain(rbac::manager()) {
        world.provider().apply(object).await;
    }
    let token = "/api/v1/namespaces/kcm-system/serviceaccounts/kcm/token";
    let token = world.provider().client().create(token, &json!({"spec": {"expirationSeconds": 86_400}})).await.ok().unwrap();
    let token = token["status"]["token"].as_str().unwrap().to_owned();
    (world, book, token)
}

/// `<plural>.<group>` of a list's target: `…/apis/<group>/<version>/<plural>?…`.
fn kind_of(target: &str) -> String {
    let path = target.split('?').next().unwrap_or_default();
    let mut parts = path.rsplit('/');
    let (plural, group) = (parts.next().unwrap_or_default(), parts.nth(1).unwrap_or_default());
    format!("{plural}.{group}")
}

/// Checks every event of a world from now on; the checker knows what is there already.
pub(crate) fn observe(world: &World, checker: Checker) -> Arc<Mutex<Book>> {
    let book = Arc::new(Mutex::new(Book { checker, found: Vec::new() }));
    let (kept, restarted) = (book.clone(), book.clone());
    let told = book.clone();
    world.on_answer(move |sent| {
        if (sent.verb, sent.code) == ("list", 404) {
            told.lock().checker.not_served(&kind_of(&sent.target));
        }
        if sent.code != 409 {
            told.lock().checker.was_not_heard(sent.target.split('?').next().unwrap_or_default());
        }
    });
    world.on_crash(move || restarted.lock().checker.restarted());
    world.control_plane().observe(move |seen| {
        let who = principal(&seen);
        let Book { checker, found } = &mut *kept.lock();
        found.extend(checker.observe(&event(seen, who)));
    });
    book
}

/// The provider says how a cluster of its is.
pub(crate) async fn report(world: &World, tenant: &Workspace, name: &str, ready: bool) {
    let projection = tenant.eventually::<Projection>(name, "is there", |_| true).await;
    let generation = projection.metadata.generation();
    let status = if ready { "True" } else { "False" };
    let condition = json!({"type": "Ready", "status": status, "reason": "Says", "message": "", "observedGeneration": generation,
        "lastTransitionTime": world.now().to_string()});
    let status = json!({"status": {"ready": ready, "observedGeneration": generation, "conditions": [condition]}});
    tenant.client().as_bearer(PROVIDER).merge(&format!("{DEMO}/{name}/status"), &status).await.ok().unwrap();
}

/// The provider has machines behind its projection, or has none any more.
pub(crate) async fn holds(tenant: &Workspace, name: &str, machines: bool) {
    let finalizers = if machines { json!(["otc.example.org/machines"]) } else { Value::Null };
    let patch = json!({"metadata": {"finalizers": finalizers}});
    tenant.client().as_bearer(PROVIDER).merge(&format!("{DEMO}/{name}"), &patch).await.ok().unwrap();
}
