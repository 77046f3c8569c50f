//! Kubeconfigs of tenants' workspaces: who gets one, what it is good for, when it is replaced, and that nothing of it stays or shows.

use std::time::Duration;

use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::api::manifest::export::access_claims;
use kcp_provider_runtime::kit::trial::under_every_fault;
use kcp_provider_runtime::kit::{Sent, Workspace, World};
use kcp_provider_runtime::runtime::Options;
use serde_json::{Value, json};

use crate::courier::{Courier, Handed, Log, token};
use crate::provider::Toy;
use crate::{toy, toys};

const ACCOUNT: &str = "kcp-provider-courier.toys.test";
const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

/// As the provider's own account would be: who may use the export's content, and nothing in workspaces.
async fn world() -> World {
    let mut world = World::new().await;
    world.export(toys()).await;
    for claim in access_claims() {
        world.claim(claim).await;
    }
    world
}

/// An identity that may use the export and no more, which no tenant's workspace knows.
pub(crate) async fn identity(world: &World) -> Options {
    let provider = world.provider();
    for object in manager() {
        provider.apply(object).await;
    }
    let account = "/api/v1/namespaces/default/serviceaccounts/manager/token";
    let asked = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 31_536_000}});
    let token = provider.client().create(account, &asked).await.ok().unwrap()["status"]["token"].as_str().unwrap().to_owned();
    Options { credentials: world.credentials(token), ..world.options() }
}

fn manager() -> [Value; 3] {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "manager"}, "rules": [
        {"apiGroups": ["apis.kcp.io"], "resources": ["apiexportendpointslices"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "manager"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "manager"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "manager"}]});
    [json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": "default", "name": "manager"}}), role, binding]
}

fn carry(world: &World, options: Options) -> Handed {
    let handed = Handed::default();
    let told = handed.clone();
    world.run_with(options, move |runtime| {
        let told = told.clone();
        runtime.serve(move |inputs| Courier::<Toy>::new(inputs, told))
    });
    handed
}

async fn delivered(workspace: &Workspace, name: &str) {
    workspace.condition::<Toy>(name, "Delivered", True, "Ready").await;
}

/// Everything of an account that is there.
async fn parts(workspace: &Workspace) -> Vec<String> {
    let client = workspace.client();
    let mut found = Vec::new();
    for kind in [
        "/api/v1/namespaces/default/serviceaccounts",
        "/api/v1/namespaces/default/secrets",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    ] {
        if client.get(&format!("{kind}/{ACCOUNT}")).await.code == 200 {
            found.push(kind.rsplit('/').next().unwrap().to_owned());
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_for_a_kubeconfig_gets_one_that_may_do_what_was_declared_in_this_workspace_alone() {
    let world = world().await;
    let (acme, bolt) = (world.workspace("acme").await, world.workspace("bolt").await);
    let seen = carry(&world, identity(&world).await);
    acme.apply(toy("car", "red")).await;
    bolt.apply(toy("kite", "red")).await;
    delivered(&acme, "car").await;
    delivered(&bolt, "kite").await;
    let text = seen.of("car").pop().unwrap();
    let server = format!("server: \"{}/clusters/{}\"", world.control_plane().url(), acme.logical_cluster());
    assert!(text.contains(&server), "{server}");
    let worker = acme.client().as_bearer(token(&text));
    assert_eq!(worker.get(CONFIGMAPS).await.code, 200);
    assert_eq!(worker.get("/api/v1/namespaces/default/secrets").await.code, 403);
    assert_eq!(worker.delete(&format!("{CONFIGMAPS}/none")).await.code, 403);
    assert_eq!(bolt.client().as_bearer(token(&text)).get(CONFIGMAPS).await.code, 403);
    world.settled().await;
    assert_eq!(parts(&acme).await, ["serviceaccounts", "secrets", "clusterroles", "clusterrolebindings"]);
    world.forget_requests();
    world.advance(Duration::from_mins(30)).await;
    assert_eq!(world.writes(), [].into(), "what is in force costs nothing");
}

#[tokio::test(start_paused = true)]
async fn whoever_may_ask_for_tokens_directly_needs_no_secret() {
    let world = world().await;
    let acme = world.workspace("acme").await;
    // The administrator of the whole.
    let seen = carry(&world, world.options());
    acme.apply(toy("car", "red")).await;
    delivered(&acme, "car").await;
    assert_eq!(acme.client().as_bearer(seen.tokens("car")[0].clone()).get(CONFIGMAPS).await.code, 200);
    assert_eq!(parts(&acme).await, ["serviceaccounts", "clusterroles", "clusterrolebindings"]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_missing_is_named_and_once_it_is_accepted_the_object_goes_on() {
    let world = world().await;
    let acme = world.workspace("acme").await;
    let bindings = "/apis/apis.kcp.io/v1alpha2/apibindings/toys.test";
    let mut binding = acme.client().get(bindings).await.ok().unwrap();
    let claims = binding["spec"]["permissionClaims"].as_array_mut().unwrap();
    let secrets = claims.iter_mut().find(|claim| claim["resource"] == "secrets").unwrap();
    secrets["state"] = "Rejected".into();
    let change = json!({"spec": {"permissionClaims": binding["spec"]["permissionClaims"]}});
    acme.client().merge(bindings, &change).await.ok().unwrap();
    world.advance(Duration::from_secs(30)).await;
    let seen = carry(&world, identity(&world).await);
    acme.apply(toy("car", "red")).await;
    let told = acme.condition::<Toy>("car", "Delivered", False, "AccessPending").await;
    assert!(told.message.contains("the permission claim on secrets (create)"), "{}", told.message);
    assert_eq!(seen.of("car").len(), 0);
    world.advance(Duration::from_hours(1)).await;
    let mut claims = binding["spec"]["permissionClaims"].clone();
    for claim in claims.as_array_mut().unwrap() {
        claim["state"] = "Accepted".into();
    }
    let accepted = world.now();
    acme.client().merge(bindings, &json!({"spec": {"permissionClaims": claims}})).await.ok().unwrap();
    delivered(&acme, "car").await;
    let waited = world.now().duration_since(accepted).as_secs();
    assert!(waited < 60, "it was looked at when the claim was accepted, not {waited} s later");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_replaced_before_its_end_and_one_that_cannot_be_is_used_until_then() {
    let world = world().await;
    let acme = world.workspace("acme").await;
    let seen = carry(&world, identity(&world).await);
    acme.apply(toy("car", "red")).await;
    delivered(&acme, "car").await;
    world.advance(Duration::from_mins(47)).await;
    assert_eq!(seen.tokens("car").len(), 1);
    world.advance(Duration::from_mins(5)).await;
    let tokens = seen.tokens("car");
    assert_eq!(tokens.len(), 2, "at four fifths of an hour");
    for token in &tokens {
        assert_eq!(acme.client().as_bearer(token.clone()).get(CONFIGMAPS).await.code, 200, "the one before is good for some minutes");
    }
    // Somebody takes the account's rights to its own tokens away, and its Secret: both come back.
    acme.client().delete("/api/v1/namespaces/default/secrets/kcp-provider-courier.toys.test").await.ok().unwrap();
    acme.client()
        .merge("/apis/rbac.authorization.k8s.io/v1/clusterroles/kcp-provider-courier.toys.test", &json!({"rules": []}))
        .await
        .ok()
        .unwrap();
    world.advance(Duration::from_mins(52)).await;
    assert_eq!(seen.tokens("car").len(), 3);
    assert_eq!(acme.client().as_bearer(seen.tokens("car")[2].clone()).get(CONFIGMAPS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn what_was_made_for_access_goes_with_the_last_object_after_its_deletion_and_before_its_finalizer() {
    let world = world().await;
    let acme = world.workspace("acme").await;
    let seen = carry(&world, identity(&world).await);
    for name in ["car", "kite"] {
        acme.apply(toy(name, "red")).await;
        delivered(&acme, name).await;
    }
    acme.delete::<Toy>("car").await;
    acme.gone::<Toy>("car").await;
    assert_eq!(parts(&acme).await.len(), 4, "the other needs it");
    world.forget_requests();
    acme.delete::<Toy>("kite").await;
    acme.gone::<Toy>("kite").await;
    assert_eq!(parts(&acme).await, [] as [&str; 0]);
    assert!(seen.of("delete kite")[0].contains("token: "), "the deletion had access");
    let kinds = |verb: &str| {
        let sent = world.requests().into_iter().filter(|sent| sent.verb == verb);
        sent.map(|sent| sent.target.split('?').next().unwrap().rsplit('/').nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(kinds("delete"), ["secrets", "clusterrolebindings", "clusterroles", "serviceaccounts"]);
    let last = world.requests().into_iter().rfind(Sent::is_write).unwrap();
    assert!(last.verb == "update" && last.target.contains("/toys/kite"), "the finalizer goes last: {last}");
    // Two that go at once are the last one together.
    for name in ["car", "kite"] {
        acme.apply(toy(name, "red")).await;
        delivered(&acme, name).await;
    }
    tokio::join!(acme.delete::<Toy>("car"), acme.delete::<Toy>("kite"));
    acme.gone::<Toy>("car").await;
    acme.gone::<Toy>("kite").await;
    assert_eq!(parts(&acme).await, [] as [&str; 0]);
}

#[test]
fn whatever_goes_wrong_once_access_is_given_and_taken_back() {
    let prepare = async || {
        let world = world().await;
        for object in manager() {
            world.provider().apply(object).await;
        }
        world.workspace("acme").await;
        world
    };
    let story = async |world: &World| {
        let seen = carry(world, identity(world).await);
        let acme = world.tenant("acme");
        acme.apply(toy("car", "red")).await;
        delivered(&acme, "car").await;
        let token = seen.tokens("car").pop().unwrap();
        assert_eq!(acme.client().as_bearer(token).get(CONFIGMAPS).await.code, 200);
        acme.delete::<Toy>("car").await;
        acme.gone::<Toy>("car").await;
        assert_eq!(parts(&acme).await, [] as [&str; 0]);
    };
    under_every_fault(prepare, story).assert();
}

#[tokio::test(start_paused = true)]
async fn a_hundred_tokens_are_in_no_log_condition_metric_or_debug_text() {
    let world = world().await;
    let log = Log::default();
    let guard = log.listen();
    let options = identity(&world).await;
    let own = format!("{options:?}");
    let seen = carry(&world, options);
    let mut told = String::new();
    for number in 0..100 {
        let tenant = world.workspace(&format!("w{number}")).await;
        tenant.apply(toy(&format!("car-{number}"), "red")).await;
        delivered(&tenant, &format!("car-{number}")).await;
        told += &tenant.get_json::<Toy>(&format!("car-{number}")).await.unwrap().to_string();
    }
    drop(guard);
    let logged = log.text();
    assert!(logged.contains("how tokens of a workspace are come by"), "what is said of it is logged");
    let metrics = world.handles()[0].metrics().text();
    let tokens: Vec<String> = (0..100).flat_map(|number| seen.tokens(&format!("car-{number}"))).collect();
    assert!(tokens.len() >= 100);
    for token in tokens {
        // The first part is the same for all of them, and says nothing.
        let secret = token.rsplit('.').next().unwrap();
        for (what, text) in [("a log", &logged), ("a condition", &told), ("a metric", &metrics), ("Debug", &own)] {
            assert!(!text.contains(secret), "a token is in {what}");
        }
    }
}
