//! Looking again: over inputs listed afresh, or from the cache.

use super::*;
use crate::runtime::raw::Operation;

/// A world in which three objects wait for their next look, one minute after they were called.
fn waiting() -> World {
    let mut world = World::ready(&[Fake::full()]);
    world.pass(secs(1));
    for (at, name) in [(1, "x"), (2, "y"), (3, "z")] {
        world.upsert(&of(S1, THING), raw("a", name, at, json!({})));
        world.end(&work(0, "a", name), Ended { recheck: Some(secs(60)), ..settled() });
    }
    world.refreshes();
    world
}

fn again(world: &mut World) -> Vec<Work> {
    while let Some(work) = world.running.keys().next().cloned() {
        world.end(&work, Ended { recheck: Some(secs(60)), ..settled() });
    }
    world.pass(secs(60))
}

#[test]
fn all_that_wait_cause_one_refresh_per_stream_and_run_after_the_list() {
    let mut world = waiting();
    assert_eq!(world.pass(secs(59)), []);
    assert_eq!(world.refreshes(), Vec::<String>::new());
    assert_eq!(world.pass(secs(1)), []);
    let mut refreshed = world.refreshes();
    refreshed.sort();
    assert_eq!(refreshed, [of(BASE, PART), of(S1, NAME)]);
    let asked = world.now;
    world.pass(secs(1));
    assert_eq!(world.tell(&of(BASE, PART), News::Reset { items: Vec::new(), asked }), []);
    assert_eq!(world.tell(&of(S1, NAME), News::Reset { items: Vec::new(), asked }).len(), 3);
    again(&mut world);
    assert_eq!(world.refreshes().len(), 2, "and once more in the next interval");
}

#[test]
fn a_fresh_list_that_does_not_come_is_waited_for_ten_seconds() {
    let mut world = waiting();
    assert_eq!(world.pass(secs(69)), []);
    assert_eq!(world.pass(secs(1)).len(), 3);
}

#[test]
fn a_list_that_came_meanwhile_counts() {
    let mut world = waiting();
    world.pass(secs(30));
    world.reset(&of(BASE, PART), Vec::new());
    world.reset(&of(S1, NAME), Vec::new());
    assert_eq!(world.pass(secs(30)).len(), 3);
    assert_eq!(world.refreshes(), Vec::<String>::new());
}

#[test]
fn a_change_before_its_time_replaces_the_wait() {
    let mut world = waiting();
    assert_eq!(world.upsert(&of(S1, THING), raw("a", "x", 9, json!({}))), [work(0, "a", "x")]);
    world.drain();
    world.pass(secs(60));
    world.reset(&of(BASE, PART), Vec::new());
    assert_eq!(world.reset(&of(S1, NAME), Vec::new()).len(), 2);
}

#[test]
fn a_change_while_the_list_is_awaited_replaces_the_wait_too() {
    let mut world = waiting();
    world.pass(secs(60));
    assert_eq!(world.upsert(&of(S1, THING), raw("a", "x", 9, json!({}))), [work(0, "a", "x")]);
    world.drain();
    world.reset(&of(BASE, PART), Vec::new());
    assert_eq!(world.reset(&of(S1, NAME), Vec::new()), [work(0, "a", "y"), work(0, "a", "z")]);
}

#[test]
fn what_vanished_while_it_waited_is_forgotten() {
    let mut world = waiting();
    world.pass(secs(60));
    for name in ["x", "y", "z"] {
        world.delete(&of(S1, THING), raw("a", name, 9, json!({})));
    }
    assert_eq!(world.core.wake_at(), None);
}

#[test]
fn an_endless_wait_ends_nothing() {
    let mut world = World::ready(&[Fake::full()]);
    world.upsert(&of(S1, THING), raw("a", "x", 1, json!({})));
    world.end(&work(0, "a", "x"), Ended { recheck: Some(Duration::MAX), ..settled() });
    assert_eq!(world.pass(secs(1000)), []);
}

#[test]
fn a_failed_call_is_tried_again_with_growing_waits_and_not_before() {
    let mut world = World::ready(&[Fake::full()]);
    world.upsert(&of(S1, THING), raw("a", "x", 1, json!({})));
    let mut waits = Vec::new();
    for _ in 0..4 {
        let began = world.now;
        world.end(&work(0, "a", "x"), Ended { outcome: Outcome::Backoff, ..settled() });
        let due = world.core.wake_at().unwrap();
        assert_eq!(world.pass(due.checked_sub(world.now).unwrap()), [work(0, "a", "x")]);
        waits.push(due.checked_sub(began).unwrap());
    }
    assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "{waits:?}");
}

#[test]
fn a_look_that_is_asked_for_while_a_call_runs_comes_after_it_whatever_the_call_plans() {
    let mut world = World::ready(&[Fake::full()]);
    world.pass(secs(1));
    world.upsert(&of(S1, THING), raw("a", "x", 1, json!({})));
    world.upsert(&of(S1, THING), Raw { operation: Operation::Reconcile, ..raw("a", "x", 2, json!({})) });
    world.end(&work(0, "a", "x"), Ended { recheck: Some(secs(3600)), ..settled() });
    assert_eq!(world.pass(secs(10)), [work(0, "a", "x")], "the lists it waits for do not come");
}
