//! Accounts in tenants' workspaces: tokens that are refused, tokens in the wrong hands, and deletions whose accounts and Secrets went before them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::api::manifest::export::access_claims;
use kcp_provider_runtime::embedded::{ADMIN, Options};
use kcp_provider_runtime::kit::{Resource, Workspace, World};
use kcp_provider_runtime::runtime;
use serde_json::{Value, json};

use crate::courier::{Courier, Handed};
use crate::kinds::Toy;
use crate::support::{Fate, Faults};

/// A user who may use the export's content, and whom no tenant's workspace knows.
const MANAGER: &str = "manager";
const ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/kcp-provider-courier.toys.test";
const SECRET: &str = "/api/v1/namespaces/default/secrets/kcp-provider-courier.toys.test";
const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn world() -> World {
    let users = vec![
        (ADMIN.into(), ADMIN.into(), vec!["system:kcp:admin".into()]),
        (MANAGER.into(), MANAGER.into(), vec!["system:authenticated".into()]),
    ];
    let mut world = World::with(Options { users, started: "2026-01-01T00:00:00Z".parse().unwrap(), ..Options::default() }).await;
    world.export(Resource::new::<Toy>(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}))).await;
    for claim in access_claims() {
        world.claim(claim).await;
    }
    let rules = json!([
        {"nonResourceURLs": ["/"], "verbs": ["access"]},
        {"apiGroups": ["apis.kcp.io"], "resources": ["apiexportendpointslices"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]},
    ]);
    let (group, metadata) = ("rbac.authorization.k8s.io", json!({"name": MANAGER}));
    let version = format!("{group}/v1");
    world.provider().apply(json!({"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": rules})).await;
    world
        .provider()
        .apply(json!({"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": MANAGER},
            "subjects": [{"apiGroup": group, "kind": "User", "name": MANAGER}]}))
        .await;
    world
}

fn carry(world: &World, who: &str) -> (Handed, Faults) {
    let (handed, faults) = (Handed::default(), Faults::default());
    let told = handed.clone();
    let options = runtime::Options { credentials: faults.credentials_of(world, who), ..world.options() };
    world.run_with(options, move |runtime| {
        let told = told.clone();
        runtime.serve(move |inputs| Courier::<Toy>::new(inputs, told))
    });
    (handed, faults)
}

async fn order(workspace: &Workspace, name: &str) {
    workspace.apply(json!({"apiVersion": "toys.test/v1", "kind": "Toy", "metadata": {"name": name}})).await;
    delivered(workspace, name).await;
}

async fn delivered(workspace: &Workspace, name: &str) {
    workspace.condition::<Toy>(name, "Delivered", True, "Ready").await;
}

async fn works(workspace: &Workspace, token: &str) -> bool {
    workspace.client().as_bearer(token).get(CONFIGMAPS).await.code == 200
}

/// Report 27: a server that refuses an account's token, as another shard did.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_refused_is_asked_for_again_and_its_tenant_reads_why_there_is_none() {
    let world = world().await;
    let (acme, bolt) = (world.workspace("acme").await, world.workspace("bolt").await);
    let (courier, faults) = carry(&world, MANAGER);
    order(&acme, "car").await;
    order(&acme, "bus").await;
    order(&bolt, "kite").await;
    faults.add(&format!("/clusters/{}{ACCOUNT}/token", acme.logical_cluster()), Fate::Code(401));
    world.advance(Duration::from_mins(52)).await;
    delivered(&acme, "car").await;
    assert!(works(&acme, &courier.tokens("car")[0]).await, "what could not be renewed is good until its end");
    world.advance(Duration::from_mins(30)).await;
    let told = acme.condition::<Toy>("car", "Delivered", False, "AccessDenied").await;
    assert!(told.message.contains("does not give the provider's account a token (401)"), "{}", told.message);
    assert!((10..200).contains(&faults.met()), "{} requests for a token in half an hour", faults.met());
    assert!(courier.tokens("kite").len() >= 2 && works(&bolt, courier.tokens("kite").last().unwrap()).await, "others are renewed");
    acme.delete::<Toy>("bus").await;
    acme.gone::<Toy>("bus").await;
    faults.end();
    delivered(&acme, "car").await;
    assert!(works(&acme, courier.tokens("car").last().unwrap()).await);
    // Somebody makes the account anew, and kcp refuses what it gave to the one before.
    acme.client().delete(ACCOUNT).await.ok().unwrap();
    assert!(!works(&acme, courier.tokens("car").last().unwrap()).await);
    world.advance(Duration::from_mins(52)).await;
    assert!(works(&acme, courier.tokens("car").last().unwrap()).await, "at its next renewal at the latest");
}

/// The tokens of the workspaces' accounts, as their tenants see them, with the workspace.
async fn learn(known: &mut BTreeMap<String, String>, tenants: &[&Workspace]) {
    for tenant in tenants {
        let secret = tenant.client().get(SECRET).await.ok().unwrap_or_default();
        let Some(text) = secret["data"]["token"].as_str() else { continue };
        known.insert(String::from_utf8(BASE64.decode(text).unwrap()).unwrap(), tenant.logical_cluster().to_string());
    }
}

/// Report 28: a tenant's token was good in the parent, so that it matters where one is shown.
#[tokio::test(start_paused = true)]
async fn a_token_of_one_workspace_is_shown_to_no_other_and_behind_no_virtual_workspace() {
    for who in [MANAGER, ADMIN] {
        let world = world().await;
        let tenants = [world.workspace("acme").await, world.workspace("bolt").await, world.workspace("cube").await];
        let (courier, faults) = carry(&world, who);
        let mut known = BTreeMap::new();
        for round in 0..3 {
            for tenant in &tenants {
                order(tenant, &format!("car-{round}")).await;
            }
            learn(&mut known, &tenants.each_ref()).await;
            world.advance(Duration::from_hours(1)).await;
            // Its account goes with its last toy; the next round makes another.
            tenants[0].delete::<Toy>(&format!("car-{round}")).await;
            tenants[0].gone::<Toy>(&format!("car-{round}")).await;
            world.restart().await;
        }
        let handed: BTreeSet<String> = (0..3).flat_map(|round| courier.tokens(&format!("car-{round}"))).collect();
        assert!(handed.len() > 9, "{who}: {} tokens were handed out", handed.len());
        let mut shown = BTreeSet::new();
        for (token, path) in faults.heard().into_iter().filter(|(token, _)| token != who) {
            let of = known.get(&token).unwrap_or_else(|| panic!("{who}: a token that is no account's was shown for {path}"));
            assert_eq!(path, format!("/clusters/{of}{ACCOUNT}/token"), "{who}");
            assert!(!handed.contains(&token), "{who}: what a worker has is the worker's");
            shown.insert(of.clone());
        }
        // Whoever may ask for tokens in every workspace never needs another's.
        assert_eq!(shown.len(), if who == MANAGER { 3 } else { 0 }, "{who}");
    }
}

/// Reports 34 and 35: a workspace is deleted; its accounts, Secrets and rights go first, and nobody lets us in any more.
#[tokio::test(start_paused = true)]
async fn a_deletion_is_finished_though_the_accounts_and_secrets_of_its_workspace_went_first() {
    for is_another_process in [false, true] {
        let world = world().await;
        let acme = world.workspace("acme").await;
        let (courier, faults) = carry(&world, MANAGER);
        courier.hold(true);
        order(&acme, "car").await;
        world.settled().await;
        let workspace = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/acme";
        world.client().delete(workspace).await.ok().unwrap();
        faults.add("/token", Fate::Code(403));
        world.advance(Duration::from_mins(2)).await;
        assert_eq!([acme.client().get(ACCOUNT).await.code, acme.client().get(SECRET).await.code], [404, 404], "they are gone");
        assert!(acme.get_json::<Toy>("car").await.is_some(), "and the toy waits for its provider");
        if is_another_process {
            world.restart().await;
        }
        world.advance(Duration::from_hours(2)).await;
        let before = courier.of("delete car");
        assert!(before.len() > 60, "it is asked on, {} times in two hours", before.len());
        assert_eq!(before.last().unwrap(), "", "without access, once the token is over");
        courier.hold(false);
        let mut minute = tokio::time::interval(Duration::from_mins(1));
        for _ in 0..60 {
            minute.tick().await;
            if world.client().get(workspace).await.code == 404 {
                break;
            }
        }
        assert_eq!(world.client().get(workspace).await.code, 404, "the workspace is gone");
    }
}

/// Report 34, of a tenant who takes the rights back while the object lives.
#[tokio::test(start_paused = true)]
async fn a_tenant_ends_access_by_its_claims_and_the_account_and_can_still_delete_its_objects() {
    let world = world().await;
    let acme = world.workspace("acme").await;
    let (courier, _) = carry(&world, MANAGER);
    order(&acme, "car").await;
    let path = "/apis/apis.kcp.io/v1alpha2/apibindings/toys.test";
    let mut binding: Value = acme.client().get(path).await.ok().unwrap();
    for claim in binding["spec"]["permissionClaims"].as_array_mut().unwrap() {
        claim["state"] = "Rejected".into();
    }
    let claims = &binding["spec"]["permissionClaims"];
    acme.client().merge(path, &json!({"spec": {"permissionClaims": claims}})).await.ok().unwrap();
    world.advance(Duration::from_hours(2)).await;
    delivered(&acme, "car").await;
    assert!(works(&acme, courier.tokens("car").last().unwrap()).await, "an account that is there may still ask for its tokens");
    // By now it is the tenant's own.
    acme.client().delete(ACCOUNT).await.ok().unwrap();
    assert!(!works(&acme, courier.tokens("car").last().unwrap()).await, "which ends every token at once");
    world.advance(Duration::from_mins(75)).await;
    let told = acme.condition::<Toy>("car", "Delivered", False, "AccessPending").await;
    assert!(told.message.contains("the permission claim on serviceaccounts (create)"), "{}", told.message);
    assert_eq!(acme.client().get(ACCOUNT).await.code, 404, "it does not come back");
    acme.delete::<Toy>("car").await;
    acme.gone::<Toy>("car").await;
}
