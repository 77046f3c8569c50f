//! What a line of an audit log says, and in which order lines are told.

use serde_json::{Value, json};

use crate::audit::{self, Mark, Shown, Told};
use crate::checker::{Event, Key, Principal};

/// A line as kcp writes it: a request of the manager that came and was answered in these seconds.
fn line(seconds: [u64; 2], verb: &str, name: &str, answer: &Value) -> Value {
    let at = |second| format!("2026-01-01T00:00:{second:02}.000000Z");
    json!({"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "stage": "ResponseComplete", "verb": verb,
        "requestURI": format!("/apis/kubernetes.edge-connect.eu/v1alpha1/namespaces/default/kubernetesclusters/{name}?fieldManager=kcm"),
        "user": {"username": "kcm", "extra": {"authentication.kubernetes.io/cluster-name": ["provider"]}},
        "objectRef": {"resource": "kubernetesclusters", "namespace": "default", "name": name, "apiGroup": "kubernetes.edge-connect.eu"},
        "responseStatus": {"code": 200}, "responseObject": answer,
        "requestReceivedTimestamp": at(seconds[0]), "stageTimestamp": at(seconds[1])})
}

fn object(name: &str, version: u64) -> Value {
    json!({"metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
        "annotations": {"kcp.io/cluster": "tenant"}}})
}

fn told(lines: &[Value], marks: &[Mark]) -> Vec<Told> {
    let log = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n";
    audit::events(&log, marks, &Shown::new(), |_, _| Principal::Scheduler).unwrap()
}

fn events(lines: &[Value]) -> Vec<Event> {
    told(lines, &[]).into_iter().filter_map(|told| if let Told::Request(event, _) = told { Some(*event) } else { None }).collect()
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.key.name.as_str()).collect()
}

#[test]
fn writes_are_told_in_the_order_of_their_versions_and_everything_else_after_what_was_answered_before_it() {
    let gone = json!({"kind": "Status"});
    let lines = [
        // Answered late, but committed first.
        line([1, 4], "update", "first", &object("first", 10)),
        line([2, 3], "update", "second", &object("second", 11)),
        line([5, 6], "delete", "third", &gone),
        line([7, 8], "update", "fourth", &object("fourth", 12)),
    ];
    assert_eq!(names(&events(&lines)), ["first", "second", "third", "fourth"]);
    let backwards: Vec<Value> = lines.iter().rev().cloned().collect();
    assert_eq!(names(&events(&backwards)), ["first", "second", "third", "fourth"]);
    let at = "2026-01-01T00:00:06.5Z".parse().unwrap();
    let marks = told(&lines, &[Mark::At(at), Mark::Version(10)]);
    assert!(matches!(marks[..], [_, Told::Mark(1), _, _, Told::Mark(0), _]), "{marks:?}");
}

#[test]
fn what_a_virtual_workspace_asks_for_somebody_is_told_once() {
    let outer = line([1, 4], "patch", "a", &object("a", 10));
    let mut inner = line([2, 3], "update", "a", &object("a", 10));
    inner["objectRef"]["resource"] = "kubernetesclusters:4d7b".into();
    inner["user"] = json!({"username": "system:apiserver"});
    assert_eq!(events(&[inner.clone(), outer])[0].verb, "patch");
    // Who asked was killed, so that nobody heard that it was done.
    let mut given_up = line([1, 4], "patch", "a", &json!({"kind": "Status"}));
    given_up["responseStatus"]["code"] = 500.into();
    let done = &events(&[inner.clone(), given_up])[..];
    assert_eq!((done.len(), done[0].verb.as_str(), done[0].code, done[0].after.is_some()), (1, "patch", 200, true));
    // The same as an API server writes it of a connection that is gone: with the code of a success, and without an answer.
    let mut gone = line([1, 4], "patch", "a", &Value::Null);
    gone["responseStatus"]["message"] = "Connection closed early".into();
    let done = &events(&[inner.clone(), gone.clone()])[..];
    assert_eq!((done.len(), done[0].verb.as_str(), done[0].code, done[0].after.is_some()), (1, "patch", 200, true));
    // On a busy machine it was given up before the server behind was asked.
    gone["stageTimestamp"] = gone["requestReceivedTimestamp"].clone();
    let done = &events(&[inner.clone(), gone.clone()])[..];
    assert_eq!((done.len(), done[0].verb.as_str(), done[0].code, done[0].after.is_some()), (1, "patch", 200, true));
    assert_eq!(events(&[gone])[0].code, 0, "nobody knows what became of it");
    let alone = events(&[inner]);
    assert_eq!((alone.len(), alone[0].key.kind.as_str()), (1, "kubernetesclusters.kubernetes.edge-connect.eu"));
}

#[test]
fn a_write_that_was_cut_off_in_the_middle_is_told_where_what_came_later_shows_that_it_was_done() {
    let with = |version: u64, conditions: &[&str]| {
        let mut object = object("a", version);
        object["status"]["conditions"] = conditions.iter().map(|type_| json!({"type": type_})).collect();
        object
    };
    let patch = |seconds, manager: &str, base: u64, conditions: &[&str], answer: &Value| {
        let mut patch = line(seconds, "patch", "a", answer);
        patch["requestURI"] =
            format!("/apis/kubernetes.edge-connect.eu/v1alpha1/namespaces/default/kubernetesclusters/a/status?fieldManager={manager}")
                .into();
        patch["objectRef"]["subresource"] = "status".into();
        patch["requestObject"] = with(base, conditions);
        patch
    };
    let refused = json!({"kind": "Status", "reason": "Timeout"});
    let created = line([1, 2], "create", "a", &object("a", 10));
    let mut outer = patch([3, 6], "scheduler", 10, &["Scheduled"], &refused);
    outer["responseStatus"]["code"] = 504.into();
    let mut inner = outer.clone();
    inner["verb"] = "update".into();
    inner["requestReceivedTimestamp"] = "2026-01-01T00:00:04.000000Z".into();
    inner["objectRef"]["resource"] = "kubernetesclusters:4d7b".into();
    let versions = |lines: &[Value], shown: &Shown| {
        let log = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n";
        let told = audit::events(&log, &[], shown, |_, _| Principal::Scheduler).unwrap();
        let events = told.into_iter().filter_map(|told| if let Told::Request(event, _) = told { Some(*event) } else { None });
        let version = |event: Event| Some(event.after?["metadata"]["resourceVersion"].as_str()?.to_owned() + " by " + &event.manager);
        events.filter_map(version).collect::<Vec<String>>()
    };
    let none = Shown::new();
    let cut = [created, outer, inner];
    assert_eq!(versions(&cut, &none), ["10 by kcm"], "nobody knows");

    let and = |later: &Value| cut.iter().chain([later]).cloned().collect::<Vec<Value>>();
    let named = patch([7, 8], "status", 12, &["Ready"], &with(15, &["Scheduled", "Ready"]));
    assert_eq!(versions(&and(&named), &none), ["10 by kcm", "12 by scheduler", "15 by status"], "the next write names what it made");
    let passed_over = patch([7, 8], "status", 10, &["Ready"], &with(15, &["Ready"]));
    assert_eq!(versions(&and(&passed_over), &none), ["10 by kcm", "15 by status"], "the next write was to what was there before");

    let mut unnamed = line([7, 8], "patch", "a", &with(15, &["Scheduled"]));
    unnamed["requestObject"] = json!({"spec": {}});
    assert_eq!(versions(&and(&unnamed), &none), ["10 by kcm", "14 by scheduler", "15 by kcm"], "it is in what was made of it");
    unnamed["responseObject"] = with(15, &[]);
    assert_eq!(versions(&and(&unnamed), &none), ["10 by kcm", "15 by kcm"], "it is not in what was made of it");

    let [created, mut outer, mut inner] = cut.clone();
    for line in [&mut outer, &mut inner] {
        line["objectRef"]["subresource"] = "".into();
        line["requestObject"] = object("a", 10);
        line["requestObject"]["spec"]["providerRef"] = "otc".into();
        line["requestObject"]["metadata"]["generation"] = 1.into();
    }
    let pinned = events(&[created, outer, inner, named]).swap_remove(1).after.unwrap();
    assert_eq!((&pinned["spec"]["providerRef"], &pinned["metadata"]["generation"]), (&json!("otc"), &json!(2)));

    let key = |name: &str| Key::new("tenant", "kubernetesclusters.kubernetes.edge-connect.eu", "default", name);
    let shown = |name: &str, version| Shown::from([((format!("uid-{name}"), version), (key(name), object(name, version)))]);
    let seen = shown("a", 12);
    assert_eq!(versions(&cut, &seen), ["10 by kcm", "12 by scheduler"], "somebody saw it");

    let mut create = line([1, 2], "create", "", &refused);
    create["objectRef"]["name"] = "".into();
    create["responseStatus"]["code"] = 504.into();
    create["requestObject"] = json!({"metadata": {"name": "b", "namespace": "default"}});
    create["annotations"] = json!({"tenancy.kcp.io/workspace": "tenant"});
    assert_eq!(versions(std::slice::from_ref(&create), &none), [""; 0]);
    assert_eq!(versions(std::slice::from_ref(&create), &shown("b", 9)), ["9 by kcm"], "somebody saw what it made");
    assert_eq!(versions(&[create], &shown("c", 9)), [""; 0], "what somebody saw is another one");
}

#[test]
fn an_object_is_gone_with_its_deletion_or_with_its_last_finalizer() {
    let mut held = object("a", 10);
    held["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    held["metadata"]["finalizers"] = json!(["x"]);
    let mut released = held.clone();
    released["metadata"]["finalizers"] = json!([]);
    let plain = object("a", 10);
    for (verb, answer, is_gone) in [
        ("delete", &held, false),
        ("delete", &json!({"kind": "Status", "details": {"uid": "uid-a"}}), true),
        ("delete", &plain, true),
        ("patch", &released, true),
        ("patch", &plain, false),
    ] {
        let event = &events(&[line([1, 2], verb, "a", answer)])[0];
        assert_eq!((event.gone, event.after.is_some()), (is_gone, !is_gone), "{verb} {answer}");
    }
    let mut all = line([1, 2], "deletecollection", "", &json!({"items": [held, plain]}));
    all["objectRef"]["name"] = "".into();
    let each: Vec<bool> = events(&[all]).iter().map(|event| event.gone).collect();
    assert_eq!(each, [false, true]);
}

#[test]
fn nothing_is_told_of_an_incarnation_after_its_end() {
    let ended = json!({"kind": "Status", "details": {"uid": "uid-a"}});
    // The write came after the deletion did, and before it was done.
    let lines =
        [line([1, 2], "update", "a", &object("a", 10)), line([3, 6], "delete", "a", &ended), line([4, 5], "patch", "a", &object("a", 11))];
    let verbs: Vec<String> = events(&lines).into_iter().map(|event| event.verb).collect();
    assert_eq!(verbs, ["update", "patch", "delete"]);
}

#[test]
fn the_workspace_of_a_request_is_that_of_its_object_by_what_is_known_of_it() {
    let missing = json!({"kind": "Status"});
    let mut by_uid = line([3, 4], "delete", "renamed", &missing);
    by_uid["requestObject"] = json!({"preconditions": {"uid": "uid-a"}});
    let lines =
        [line([1, 2], "update", "a", &object("a", 10)), by_uid, line([5, 6], "get", "a", &missing), line([7, 8], "get", "b", &missing)];
    let workspaces: Vec<String> = events(&lines).into_iter().map(|event| event.key.workspace).collect();
    assert_eq!(workspaces, ["tenant", "tenant", "tenant", ""]);
    assert!(matches!(&told(&lines, &[])[0], Told::Request(_, home) if home == "provider"));
}

#[test]
fn a_line_that_has_no_end_was_being_written_and_anything_else_is_refused() {
    let whole = format!("{}\n", line([1, 2], "update", "a", &object("a", 10)));
    let who = |_: &str, _: &str| Principal::Scheduler;
    assert_eq!(audit::events(&format!("{whole}{{\"kind\": \"Ev"), &[], &Shown::new(), who).unwrap().len(), 1);
    assert!(audit::events(&format!("no audit\n{whole}"), &[], &Shown::new(), who).unwrap_err().starts_with("no audit event"));
    let mut dry = line([1, 2], "update", "a", &object("a", 10));
    dry["requestURI"] = "/apis/x?dryRun=All".into();
    assert_eq!(events(&[dry]).len(), 0, "nothing was written");
}
