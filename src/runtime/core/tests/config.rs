//! The configuration: what is in force, whom a change concerns, and what is said of it.

use super::*;

fn configured() -> World {
    World::ready(&[Fake { config: true, ..Fake::new("configured") }])
}

fn config(version: u64, generation: u64, spec: Value) -> Raw {
    raw("", "config", version, json!({"metadata": {"generation": generation}, "spec": spec}))
}

fn text(world: &mut World, version: u64) -> Result<String, String> {
    world.upsert(&of(S1, THING), raw("a", "x", version, json!({})));
    let found = world.running[&work(0, "a", "x")].config.clone();
    world.drain();
    found.map(|config| config.value.downcast_ref::<String>().unwrap().clone())
}

#[test]
fn a_valid_change_is_in_force_at_once_and_everybody_looks_again() {
    let mut world = configured();
    assert_eq!(text(&mut world, 1), Ok("default".into()));
    assert_eq!(world.upsert(&of(BASE, CONFIG), config(1, 1, json!({"text": "one"}))), [work(0, "a", "x")]);
    world.drain();
    assert_eq!(text(&mut world, 2), Ok("one".into()));
    assert_eq!(world.judged, [Vec::new()]);
    assert_eq!(world.delete(&of(BASE, CONFIG), config(2, 1, json!({}))), [work(0, "a", "x")]);
    world.drain();
    assert_eq!(text(&mut world, 3), Ok("default".into()), "without an object the defaults are in force");
}

#[test]
fn an_invalid_change_keeps_the_last_good_one_and_is_judged() {
    let mut world = configured();
    world.upsert(&of(BASE, CONFIG), config(1, 1, json!({"text": "one"})));
    world.judged.clear();
    assert_eq!(world.upsert(&of(BASE, CONFIG), config(2, 2, json!({}))), []);
    assert_eq!(world.judged, [vec![FieldError::new("spec.text", "is missing")]]);
    assert_eq!(text(&mut world, 1), Ok("one".into()));
    world.upsert(&of(BASE, CONFIG), config(3, 2, json!({})));
    assert_eq!(world.judged.len(), 2, "an invalid one stays judged, whatever happens to its status");
    assert_eq!(text(&mut world, 2), Ok("one".into()));
    world.upsert(&of(BASE, CONFIG), config(4, 3, json!({"text": "two"})));
    assert_eq!(text(&mut world, 3), Ok("two".into()));
}

#[test]
fn our_own_verdict_and_a_relist_wake_nobody() {
    let mut world = configured();
    text(&mut world, 1).unwrap();
    world.upsert(&of(BASE, CONFIG), config(1, 1, json!({"text": "one"})));
    world.drain();
    let judged = config(2, 1, json!({"text": "one"}));
    assert_eq!(world.upsert(&of(BASE, CONFIG), judged.clone()), [], "only the status changed");
    assert_eq!(world.reset(&of(BASE, CONFIG), vec![judged]), []);
}

#[test]
fn defaults_that_are_listed_again_wake_nobody() {
    let mut world = configured();
    text(&mut world, 1).unwrap();
    assert_eq!(world.reset(&of(BASE, CONFIG), Vec::new()), []);
    world.health(&of(BASE, CONFIG), Health::Live);
    assert_eq!(world.health(&of(BASE, CONFIG), Health::NotServed), []);
}

#[test]
fn a_kind_that_is_not_served_means_the_defaults_and_a_refused_one_is_said_to_the_objects() {
    let mut world = World::new(&[Fake { config: true, ..Fake::new("configured") }]);
    world.slice(&[S1]);
    world.reset(&of(S1, THING), vec![raw("a", "x", 1, json!({}))]);
    assert_eq!(world.health(&of(BASE, CONFIG), Health::Forbidden { what: "no rule".into() }), [work(0, "a", "x")]);
    let waiting = world.running[&work(0, "a", "x")].config.as_ref().err().cloned().unwrap();
    assert!(waiting.contains("no rule"), "{waiting}");
    world.end(&work(0, "a", "x"), Ended { starved: true, ..settled() });
    assert_eq!(world.health(&of(BASE, CONFIG), Health::SyncedEmpty), [work(0, "a", "x")]);
    assert!(world.running[&work(0, "a", "x")].config.is_ok());
}

#[test]
fn a_change_with_topics_wakes_who_listens() {
    let mut world = World::ready(&[Fake { config: true, config_topics: true, ..Fake::new("configured") }]);
    world.upsert(&of(S1, THING), raw("a", "x", 1, json!({"config": ["config"]})));
    world.upsert(&of(S1, THING), raw("a", "y", 2, json!({})));
    world.drain();
    assert_eq!(world.upsert(&of(BASE, CONFIG), config(1, 1, json!({"text": "one"}))), [work(0, "a", "x")]);
}

#[test]
fn a_converged_object_is_looked_at_each_poll_interval_however_often_it_was_called() {
    let mut world = configured();
    world.upsert(&of(BASE, CONFIG), config(1, 1, json!({"text": "one", "poll": 100})));
    for version in 1..10 {
        text(&mut world, version).unwrap();
    }
    assert_eq!(world.pass(secs(89)), []);
    assert_eq!(world.pass(secs(21)), [work(0, "a", "x")], "within a tenth of the interval, and once");
    assert_eq!(world.refreshes(), Vec::<String>::new(), "from the cache");
}

#[test]
fn whose_turn_is_planned_for_a_change_while_its_call_runs_keeps_it() {
    let mut world = configured();
    world.upsert(&of(S1, THING), raw("a", "x", 1, json!({})));
    world.drain();
    world.upsert(&of(S1, THING), raw("a", "y", 2, json!({})));
    assert_eq!(world.upsert(&of(BASE, CONFIG), config(1, 1, json!({"text": "one"}))), [work(0, "a", "x")]);
    world.end(&work(0, "a", "y"), Ended { recheck: Some(secs(300)), ..settled() });
    assert_eq!(world.pass(secs(1)), [work(0, "a", "y")], "it ran under the one before");
}
