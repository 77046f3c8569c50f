//! Whom a change wakes, and whom it does not.

use super::*;

fn things() -> String {
    of(S1, THING)
}

#[test]
fn the_same_name_in_two_workspaces_is_two_works() {
    let mut world = World::ready(&[Fake::full()]);
    assert_eq!(world.upsert(&things(), raw("a", "x", 1, json!({}))), [work(0, "a", "x")]);
    assert_eq!(world.upsert(&things(), raw("b", "x", 2, json!({}))), [work(0, "b", "x")]);
    world.delete(&things(), raw("a", "x", 3, json!({})));
    assert_eq!(world.core.objects.len(THING), 1, "a deletion in one workspace leaves the other's object");
    let child = raw("b", "x", 4, json!({}));
    world.drain();
    world.upsert(&of(S1, CHILD), child);
    let seen = &world.running[&work(0, "b", "x")].seen;
    assert!(seen.children[&CHILD].value.is_some());
}

#[test]
fn a_platform_change_wakes_exactly_who_listens() {
    let mut world = World::ready(&[Fake::full()]);
    world.upsert(&things(), raw("a", "x", 1, json!({"parts": ["p"]})));
    world.upsert(&things(), raw("b", "x", 2, json!({"parts": ["p", "q"]})));
    world.upsert(&things(), raw("b", "y", 3, json!({"parts": ["q"], "names": ["p"]})));
    world.drain();
    let mut begun = world.upsert(&of(BASE, PART), raw("", "p", 9, json!({})));
    begun.sort();
    assert_eq!(begun, [work(0, "a", "x"), work(0, "b", "x")]);
    world.drain();
    assert_eq!(world.upsert(&of(BASE, PART), raw("", "p", 9, json!({}))), [], "nothing changed");
    assert_eq!(world.reset(&of(BASE, PART), vec![raw("", "p", 9, json!({}))]), [], "nothing changed");
    assert_eq!(world.reset(&of(BASE, PART), Vec::new()).len(), 2, "a complete list without it: it is gone");
}

#[test]
fn a_name_change_wakes_in_its_workspace_only() {
    let mut world = World::ready(&[Fake::full()]);
    for (at, workspace) in [(1, "a"), (2, "b")] {
        world.upsert(&things(), raw(workspace, "x", at, json!({"names": ["otc"]})));
    }
    world.upsert(&things(), raw("a", "y", 3, json!({"names": ["other"]})));
    world.drain();
    assert_eq!(world.upsert(&of(S1, NAME), raw("a", "otc", 4, json!({}))), [work(0, "a", "x")]);
    assert_eq!(*world.running[&work(0, "a", "x")].seen.names[&NAME].value, BTreeSet::from(["otc".to_owned()]));
    world.drain();
    assert_eq!(world.upsert(&of(S1, NAME), raw("a", "otc", 5, json!({}))), [], "it was there already");
    assert_eq!(world.delete(&of(S1, NAME), raw("a", "otc", 6, json!({}))), [work(0, "a", "x")]);
}

#[test]
fn a_childs_events_wake_its_owner_deletion_too() {
    let mut world = World::ready(&[Fake::full(), Fake::new("childless")]);
    world.upsert(&things(), raw("a", "x", 1, json!({})));
    world.drain();
    assert_eq!(world.upsert(&of(S1, CHILD), raw("a", "x", 2, json!({}))), [work(0, "a", "x")]);
    world.drain();
    assert_eq!(world.delete(&of(S1, CHILD), raw("a", "x", 3, json!({}))), [work(0, "a", "x")]);
    world.drain();
    assert_eq!(world.upsert(&of(S1, CHILD), raw("a", "z", 4, json!({}))), [], "nobody's child");
}

#[test]
fn a_relist_removes_what_it_lacks_without_a_call_and_queues_nothing_that_is_unchanged() {
    let mut world = World::ready(&[Fake::full()]);
    let (x, y) = (raw("a", "x", 1, json!({})), raw("a", "y", 2, json!({})));
    world.reset(&things(), vec![x.clone(), y.clone()]);
    world.drain();
    assert_eq!(world.reset(&things(), vec![x.clone(), y]), []);
    assert_eq!(world.reset(&things(), vec![x]), []);
    assert_eq!(world.core.objects.len(THING), 1);
}

#[test]
fn a_watch_event_older_than_the_cache_is_ignored_and_a_list_is_not() {
    let mut world = World::ready(&[Fake::full()]);
    world.upsert(&things(), raw("a", "x", 5, json!({})));
    world.drain();
    assert_eq!(world.upsert(&things(), raw("a", "x", 4, json!({}))), []);
    let restored = raw("a", "x", 3, json!({"restored": true}));
    assert_eq!(world.reset(&things(), vec![restored.clone()]), [work(0, "a", "x")], "a server restored from a backup counts anew");
    assert_eq!(*world.running[&work(0, "a", "x")].raw, restored);
}

#[test]
fn a_stream_that_fails_removes_nothing() {
    let mut world = World::ready(&[Fake::full()]);
    for health in [Health::NotServed, Health::Forbidden { what: String::new() }, Health::Broken { what: String::new() }] {
        world.upsert(&things(), raw("a", "x", 1, json!({})));
        world.upsert(&of(S1, NAME), raw("a", "n", 1, json!({})));
        world.drain();
        assert_eq!(world.health(&things(), health.clone()), []);
        world.health(&of(S1, NAME), health);
        assert_eq!(world.core.objects.len(THING), 1);
        assert_eq!(world.core.names[&NAME].get(&LogicalCluster::new("a")).len(), 1);
    }
}

#[test]
fn a_change_during_a_call_runs_again_after_it() {
    let mut world = World::ready(&[Fake::full()]);
    world.upsert(&things(), raw("a", "x", 1, json!({})));
    assert_eq!(world.upsert(&things(), raw("a", "x", 2, json!({}))), [], "one at a time");
    assert_eq!(world.end(&work(0, "a", "x"), settled()), [work(0, "a", "x")]);
    assert_eq!(&*world.running[&work(0, "a", "x")].raw.resource_version, "2");
}

#[test]
fn an_object_that_became_another_controllers_while_it_waited_is_not_handed_out() {
    let mut world = World::ready(&[Fake::full(), Fake::new("other")]);
    world.upsert(&things(), raw("a", "x", 1, json!({})));
    world.upsert(&things(), raw("a", "x", 2, json!({})));
    world.upsert(&things(), raw("a", "x", 3, json!({"notFor": "full"})));
    assert_eq!(world.end(&work(0, "a", "x"), settled()), []);
    world.drain();
    world.upsert(&things(), raw("a", "x", 4, json!({"notFor": "full"})));
    assert_eq!(world.drain(), [work(1, "a", "x")]);
    assert_eq!(world.upsert(&things(), raw("a", "x", 5, json!({}))).len(), 2, "and comes back");
}

#[test]
fn an_object_that_vanished_while_its_call_ran_leaves_nothing_behind() {
    let mut world = World::ready(&[Fake::full()]);
    world.upsert(&things(), raw("a", "x", 1, json!({})));
    world.delete(&things(), raw("a", "x", 2, json!({})));
    world.end(&work(0, "a", "x"), Ended { starved: true, recheck: Some(secs(60)), ..settled() });
    assert!(world.core.starved.is_empty() && world.core.rechecks.next().is_none());
    assert_eq!(world.core.wake_at(), None);
}

#[test]
fn an_object_without_a_workspace_is_nobodys() {
    let mut world = World::ready(&[Fake::full()]);
    assert_eq!(world.upsert(&things(), raw("", "x", 1, json!({}))), []);
    assert_eq!(world.core.objects.len(THING), 0);
}

#[test]
fn what_a_list_brings_goes_to_one_reconciler_after_the_other() {
    let mut world = World::ready(&[Fake::new("first"), Fake::new("second")]);
    let mut order = world.reset(&things(), ["x", "y", "z"].map(|name| raw("a", name, 1, json!({}))).to_vec());
    while let Some(next) = order.iter().find(|work| world.running.contains_key(*work)).cloned() {
        order.extend(world.end(&next, settled()));
    }
    let expected: Vec<Work> = [0, 1].into_iter().flat_map(|actor| ["x", "y", "z"].map(|name| work(actor, "a", name))).collect();
    assert_eq!(order, expected);
}
