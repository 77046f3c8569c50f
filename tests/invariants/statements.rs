//! Each invariant, shown to hold in a good life and to be found broken in a bad one.

use std::collections::BTreeSet;

use kcp_provider_runtime::api::manifest::samples;
use serde_json::{Value, json};

use crate::checker::{Checker, Event, Key, Principal, RULES, event};

const FINALIZER: &str = "kubernetes.edge-connect.eu/cluster-projection";
const WORKSPACE: &str = "1abc";
const PROVIDER_WORKSPACE: &str = "9xyz";

/// Events by name, so that a bad life can be told as a good one with a difference.
pub(crate) struct Life(Vec<(&'static str, Event)>);

impl Life {
    fn at(&mut self, name: &str) -> &mut Event {
        &mut self.0.iter_mut().find(|(own, _)| *own == name).unwrap_or_else(|| panic!("no {name}")).1
    }

    fn without(&mut self, name: &str) {
        let _ = self.at(name);
        self.0.retain(|(own, _)| *own != name);
    }

    fn insert(&mut self, after: &str, name: &'static str, event: Event) {
        let at = self.0.iter().position(|(own, _)| *own == after).unwrap();
        self.0.insert(at + 1, (name, event));
    }

    fn until(mut self, name: &str) -> Checker {
        let at = self.0.iter().position(|(own, _)| *own == name).unwrap();
        self.0.truncate(at + 1);
        let mut checker = Checker::default();
        assert_eq!(rules(&mut checker, &self), [] as [&str; 0]);
        checker
    }
}

/// The rules that a life breaks, in order.
fn rules(checker: &mut Checker, life: &Life) -> Vec<&'static str> {
    life.0.iter().flat_map(|(_, event)| checker.observe(event)).map(|violation| violation.rule).collect()
}

fn event(principal: Principal, verb: &str, kind: &str, after: impl Into<Option<Value>>) -> Event {
    let in_catalog = [event::OFFERING, event::TYPE].contains(&kind);
    let (workspace, namespace) = if in_catalog { (PROVIDER_WORKSPACE, "") } else { (WORKSPACE, "default") };
    let after = after.into();
    let name = after.as_ref().and_then(|after| after["metadata"]["name"].as_str()).unwrap_or("demo");
    Event {
        at: "2026-01-01T00:00:00Z".parse().unwrap(),
        principal,
        verb: verb.into(),
        key: Key::new(workspace, kind, if kind == event::PROVIDER { "" } else { namespace }, name),
        body: after.clone().unwrap_or_default(),
        after,
        code: 200,
        ..Event::default()
    }
}

fn listed(kind: &str) -> Event {
    Event { key: Key::new("*", kind, "", ""), ..event(Principal::Scheduler, "list", kind, None) }
}

fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": "waiting for ProviderClusterReady", "observedGeneration": 2,
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

/// A status write as the runtime sends it.
fn status(principal: Principal, object: &Value) -> Event {
    let mut event = Event { subresource: "status".into(), ..event(principal, "patch", event::TENANT, object.clone()) };
    let own = if principal == Principal::Status { ["ProviderClusterReady", "Ready"] } else { ["Scheduled", "Projected"] };
    if let Some(conditions) = event.body["status"]["conditions"].as_array_mut() {
        conditions.retain(|condition| own.iter().any(|own| condition["type"] == *own));
    }
    event
}

/// From an order to nothing.
pub(crate) fn life() -> Life {
    let mut life = vec![("clusters are listed", listed(event::TENANT)), ("projections are listed", listed(event::PROJECTION))];
    for object in samples::catalog() {
        let kind = if object["kind"] == "VirtualMachineType" { event::TYPE } else { event::OFFERING };
        life.push(("catalog", event(Principal::Other, "create", kind, object)));
    }
    let [provider, mut tenant] = samples::tenant().try_into().unwrap();
    life.push(("provider", event(Principal::Tenant, "create", event::PROVIDER, provider)));
    tenant["metadata"] = json!({"name": "demo", "namespace": "default", "uid": "t-1", "resourceVersion": "1", "generation": 1});
    life.push(("order", event(Principal::Tenant, "create", event::TENANT, tenant.clone())));
    tenant["metadata"]["finalizers"] = json!([FINALIZER]);
    tenant["metadata"]["generation"] = 2.into();
    tenant["spec"]["providerRef"] = json!({"name": "otc"});
    life.push(("pin", event(Principal::Scheduler, "update", event::TENANT, tenant.clone())));
    let owner = json!({"apiVersion": "kubernetes.edge-connect.eu/v1alpha1", "kind": "KubernetesCluster", "name": "demo", "uid": "t-1",
        "controller": true, "blockOwnerDeletion": false});
    let mut projection = json!({
        "metadata": {"name": "demo", "namespace": "default", "uid": "p-1", "resourceVersion": "2", "generation": 1, "ownerReferences": [owner],
            "annotations": {"kubernetes.edge-connect.eu/requests": r#"{"workers":{"cpu":"4","memory":"16Gi"}}"#}},
        "spec": {"providerRef": {"name": "otc"}, "region": "eu-de", "version": "1.34.2",
            "nodePools": [{"name": "workers", "replicas": 3, "type": "m-4-16"}]},
    });
    life.push(("projection", event(Principal::Scheduler, "create", event::PROJECTION, projection.clone())));
    let (scheduled, projected) = (condition("Scheduled", "True", "Scheduled"), condition("Projected", "True", "InSync"));
    tenant["status"] = json!({"conditions": [scheduled, projected]});
    life.push(("scheduled", status(Principal::Scheduler, &tenant)));
    let (theirs, ready) = (condition("ProviderClusterReady", "False", "ProviderNotReady"), condition("Ready", "False", "Pending"));
    tenant["status"] = json!({"conditions": [scheduled, projected, theirs, ready], "ready": false, "observedGeneration": 2});
    life.push(("pending", status(Principal::Status, &tenant)));
    projection["status"] = json!({"ready": true, "observedGeneration": 1});
    life.push(("report", event(Principal::Provider, "patch", event::PROJECTION, projection.clone())));
    let (mut theirs, mut ready) = (condition("ProviderClusterReady", "True", "Ready"), condition("Ready", "True", "Ready"));
    for condition in [&mut theirs, &mut ready] {
        condition["lastTransitionTime"] = "2026-01-01T00:01:00Z".into();
    }
    tenant["status"] = json!({"conditions": [scheduled, projected, theirs, ready], "ready": true, "observedGeneration": 2});
    life.push(("ready", status(Principal::Status, &tenant)));
    tenant["metadata"]["deletionTimestamp"] = "2026-01-01T00:02:00Z".into();
    life.push(("end", event(Principal::Tenant, "delete", event::TENANT, tenant)));
    let mut removal = event(Principal::Scheduler, "delete", event::PROJECTION, None);
    (removal.gone, removal.body) = (true, json!({"preconditions": {"uid": "p-1"}}));
    life.push(("removal", removal));
    let mut release = event(Principal::Scheduler, "update", event::TENANT, None);
    (release.gone, release.body) = (true, json!({"metadata": {"uid": "t-1", "resourceVersion": "9"}}));
    life.push(("release", release));
    Life(life)
}

fn after<'a>(life: &'a mut Life, name: &str) -> &'a mut Value {
    life.at(name).after.as_mut().unwrap()
}

#[test]
fn a_good_life_breaks_no_rule_and_rests_at_every_pause() {
    let mut checker = Checker::default();
    assert_eq!(rules(&mut checker, &life()), [] as [&str; 0]);
    assert_eq!(checker.state().all(event::TENANT).count(), 0);
    for pause in ["provider", "pending", "ready", "release"] {
        let found = life().until(pause).at_rest();
        assert!(found.is_empty(), "{pause}: {}", found[0]);
    }
    let spent = checker.spent(WORKSPACE, "default", "demo");
    assert_eq!((spent.writes, spent.reads), (7, 0));
}

type Spoil = fn(&mut Life);

/// A rule, why it is broken, and what breaks it. Rules that break besides are no matter.
const BAD: &[(&str, &str, Spoil)] = &[
    ("K1", "a pin is moved", |life| {
        let mut moved = life.at("pin").clone();
        moved.after.as_mut().unwrap()["spec"]["providerRef"]["name"] = "hetzner".into();
        life.insert("projection", "move", moved);
    }),
    ("K1", "a pin is lost", |life| {
        let mut lost = life.at("pin").clone();
        lost.after.as_mut().unwrap()["spec"].as_object_mut().unwrap().remove("providerRef");
        life.insert("projection", "lose", lost);
    }),
    ("K2", "a projection is made before the finalizer", |life| life.without("pin")),
    ("K2", "a projection is made for another provider", |life| after(life, "projection")["spec"]["providerRef"]["name"] = "x".into()),
    ("K2", "a projection is made after the scheduler has let go", |life| {
        let mut let_go = life.at("pin").clone();
        let_go.after.as_mut().unwrap()["metadata"]["finalizers"] = json!([]);
        life.insert("pin", "let go", let_go);
    }),
    ("K3", "a pin that no rule gives", |life| after(life, "pin")["spec"]["providerRef"]["name"] = "aws".into()),
    ("K3", "a larger type than is needed", |life| after(life, "projection")["spec"]["nodePools"][0]["type"] = "m-8-32".into()),
    ("K5", "a pool is missing", |life| after(life, "projection")["spec"]["nodePools"] = json!([])),
    ("K5", "other replicas", |life| after(life, "projection")["spec"]["nodePools"][0]["replicas"] = 4.into()),
    ("K5", "another region", |life| after(life, "projection")["spec"]["region"] = "eu-nl".into()),
    ("K7", "a live pool is moved", |life| {
        let mut moved = life.at("projection").clone();
        moved.verb = "update".into();
        moved.after.as_mut().unwrap()["spec"]["nodePools"][0]["type"] = "m-8-32".into();
        life.insert("scheduled", "move", moved);
    }),
    ("K8", "a secret is listed", |life| life.insert("order", "peek", listed("secrets"))),
    ("K9", "the finalizer goes though the projection is there", |life| life.without("removal")),
    ("K9", "nobody asked the server", |life| {
        // What the cache shows as gone may be there.
        let removal = life.at("removal");
        removal.principal = Principal::Provider;
    }),
    ("K9", "the deletion was refused", |life| {
        let removal = life.at("removal");
        (removal.code, removal.gone) = (403, false);
        life.insert("removal", "gone", Event { gone: true, ..event(Principal::Other, "", event::PROJECTION, None) });
    }),
    ("K9", "the object was not being deleted", |life| life.without("end")),
    ("K10", "the scheduler says Ready", |life| life.at("pending").principal = Principal::Scheduler),
    ("K10", "the status reconciler says Scheduled", |life| life.at("scheduled").principal = Principal::Status),
    ("K10", "the scheduler takes over what it repeats", |life| {
        life.at("pending").principal = Principal::Other;
        let ready = condition("Ready", "False", "Pending");
        life.at("scheduled").body["status"]["conditions"].as_array_mut().unwrap().push(ready);
    }),
    ("K10", "the scheduler writes status.ready", |life| after(life, "scheduled")["status"]["ready"] = true.into()),
    ("K11", "a generation is ahead", |life| after(life, "scheduled")["status"]["conditions"][0]["observedGeneration"] = 3.into()),
    ("K11", "a generation falls", |life| after(life, "ready")["status"]["observedGeneration"] = 1.into()),
    ("K11", "a generation is missing", |life| after(life, "scheduled")["status"]["conditions"][1]["observedGeneration"] = Value::Null),
    ("K13", "a time is new, the status old", |life| {
        after(life, "pending")["status"]["conditions"][3]["status"] = "True".into();
    }),
    ("K13", "a status is new, the time old", |life| {
        life.at("ready").at = "2026-01-01T00:05:00Z".parse().unwrap();
        after(life, "ready")["status"]["conditions"][3]["lastTransitionTime"] = "2026-01-01T00:00:00Z".into();
    }),
    ("K14", "a reason of another condition", |life| after(life, "scheduled")["status"]["conditions"][0]["reason"] = "InSync".into()),
    ("K14", "a condition is there twice", |life| {
        let conditions = &mut after(life, "scheduled")["status"]["conditions"];
        conditions[1] = conditions[0].clone();
    }),
    ("K14", "a message is too long", |life| after(life, "pending")["status"]["conditions"][3]["message"] = "x".repeat(1025).into()),
    ("K14b", "a reason that does not hold", |life| {
        life.at("scheduled").at = "2026-01-01T01:00:00Z".parse().unwrap();
        after(life, "scheduled")["status"]["conditions"][0] = condition("Scheduled", "False", "OfferingNotFound");
    }),
    ("K16", "a projection is deleted though its cluster stays", |life| life.without("end")),
    ("R1", "a body of another workspace", |life| {
        life.at("pin").body["metadata"]["annotations"] = json!({"kcp.io/cluster": "2def"});
    }),
    ("R1", "an owner of another workspace", |life| {
        let mut other = life.at("order").clone();
        other.key.workspace = "2def".into();
        other.after.as_mut().unwrap()["metadata"]["uid"] = "t-2".into();
        life.insert("order", "elsewhere", other);
        life.at("projection").body["metadata"]["ownerReferences"][0]["uid"] = "t-2".into();
    }),
    ("R4", "a deletion by name", |life| life.at("removal").body = Value::Null),
    ("R4", "a status without an incarnation", |life| {
        life.at("scheduled").body["metadata"].as_object_mut().unwrap().remove("uid");
    }),
    ("R4", "a replacement without a version", |life| {
        life.at("pin").body["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    }),
    ("R5", "a workspace by its path", |life| life.at("pin").path = "/services/apiexport/p/e/clusters/root:acme/apis".into()),
    ("R11", "projections were not listed", |life| life.without("projections are listed")),
    ("R13", "a status is tried again over a state that is no more", |life| {
        let mut refused = life.at("scheduled").clone();
        (refused.code, refused.after) = (409, None);
        life.insert("projection", "refused", refused.clone());
        life.insert("projection", "refused again", refused);
    }),
    ("R12", "a projection is made anew each time that it is taken away", |life| {
        let made = life.at("projection").clone();
        for _ in 0..20 {
            life.insert("projection", "again", made.clone());
        }
    }),
];

#[test]
fn every_invariant_is_found_broken() {
    for (rule, why, spoil) in BAD {
        let mut life = life();
        spoil(&mut life);
        let found = rules(&mut Checker::default(), &life);
        assert!(found.contains(rule), "{rule}: {why}: found {found:?}");
    }
    let shown: BTreeSet<&str> = BAD.iter().map(|(rule, ..)| *rule).collect();
    let all: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(shown, all, "each rule is shown to fire");
}

#[test]
fn what_is_not_at_rest_is_found() {
    let cases: &[(&str, &str, &str, Spoil)] = &[
        ("R10", "a change that nobody looked at", "ready", |life| after(life, "ready")["metadata"]["generation"] = 3.into()),
        ("R10", "an order that nobody looked at", "order", |_| {}),
        ("K15", "it could be had and is refused", "pending", |life| {
            life.without("projection");
            after(life, "scheduled")["status"]["conditions"][0] = condition("Scheduled", "False", "NotEntitled");
            let refused = condition("Scheduled", "False", "OfferingNotFound");
            after(life, "pending")["status"]["conditions"][0] = refused;
            life.at("pending").principal = Principal::Tenant;
        }),
        ("K17", "the provider reports ready and nobody says so", "report", |_| {}),
        ("K17", "a phase is not named", "pending", |life| {
            after(life, "pending")["status"]["conditions"][3]["message"] = "waiting".into();
        }),
        ("K9", "a projection without the finalizer", "ready", |life| after(life, "ready")["metadata"]["finalizers"] = json!([])),
        ("K16", "a projection whose cluster is gone", "end", |life| {
            (life.at("end").after, life.at("end").gone) = (None, true);
        }),
    ];
    for (rule, why, until, spoil) in cases {
        let mut life = life();
        spoil(&mut life);
        let found: Vec<_> = life.until(until).at_rest().iter().map(|violation| violation.rule).collect();
        assert!(found.contains(rule), "{rule}: {why}: found {found:?}");
    }
}

#[test]
fn a_violation_names_the_rule_the_object_both_states_and_the_request() {
    let mut life = life();
    after(&mut life, "scheduled")["status"]["conditions"][0]["observedGeneration"] = 3.into();
    let mut checker = Checker::default();
    let found: Vec<_> = life.0.iter().flat_map(|(_, event)| checker.observe(event)).collect();
    let text = found[0].to_string();
    for part in
        ["K11 (an observedGeneration never falls", "Scheduled says 3", "default/demo in 1abc", "patch status", "before: {", "after: {"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn a_write_that_was_given_up_may_have_been_done() {
    for (code, may) in [(0, true), (504, true), (409, false)] {
        let mut life = life();
        let pin = life.at("pin");
        (pin.code, pin.after) = (code, None);
        let found = rules(&mut Checker::default(), &life);
        assert_eq!(found.contains(&"K2"), !may, "{code}: {found:?}");
    }
}

#[test]
fn a_decision_may_follow_from_what_was_there_lately_and_not_from_what_was_there_long_ago() {
    let mut life = life();
    // The type goes just before the projection is made: the reconciler had read it.
    let mut removed = life.at("pin").clone();
    (removed.principal, removed.gone, removed.after, removed.verb) = (Principal::Other, true, None, "delete".into());
    removed.key = Key::new(PROVIDER_WORKSPACE, event::TYPE, "", "m-4-16");
    life.insert("pin", "the type goes", removed);
    assert_eq!(rules(&mut Checker::default(), &life), [] as [&str; 0]);
    life.at("projection").at = "2026-01-01T01:00:00Z".parse().unwrap();
    assert!(rules(&mut Checker::default(), &life).contains(&"K3"));
}
