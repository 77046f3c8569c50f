//! When the first call may begin, and what it sees of inputs that cannot be read.

use super::*;

/// A world with one object behind the first endpoint, in which the named streams have not answered.
fn unanswered(silent: &[&str]) -> World {
    let mut world = World::new(&[Fake { config: true, ..Fake::full() }]);
    world.slice(&[S1]);
    for url in world.streams.keys().cloned().collect::<Vec<_>>() {
        if url != of(BASE, ENDPOINT_SLICE) && !silent.contains(&url.as_str()) {
            let items = if url == of(S1, THING) { vec![raw("a", "x", 1, json!({}))] } else { Vec::new() };
            world.reset(&url, items);
        }
    }
    world
}

fn inputs() -> Vec<String> {
    vec![of(S1, CHILD), of(S1, NAME), of(BASE, PART), of(BASE, CONFIG)]
}

#[test]
fn no_call_begins_before_every_input_has_synced_once() {
    for silent in inputs() {
        let mut world = unanswered(&[&silent]);
        assert!(world.running.is_empty(), "{silent} has not answered yet");
        world.pass(secs(9));
        assert!(world.running.is_empty(), "{silent} has not answered yet");
        assert_eq!(world.reset(&silent, Vec::new()), [work(0, "a", "x")]);
        let seen = &world.running[&work(0, "a", "x")].seen;
        assert!(seen.names[&NAME].trouble.as_ref().is_none_or(|trouble| !trouble.hard));
    }
}

#[test]
fn after_ten_seconds_the_call_begins_and_the_silent_input_answers_unavailable() {
    let silent = of(S1, NAME);
    let mut world = unanswered(&[&silent]);
    assert_eq!(world.core.wake_at(), Some(secs(10)), "it wakes by itself");
    assert_eq!(world.pass(secs(10)), [work(0, "a", "x")]);
    let seen = &world.running[&work(0, "a", "x")].seen;
    assert!(seen.names[&NAME].trouble.as_ref().unwrap().hard);
}

#[test]
fn the_wait_ends_with_the_silent_stream_though_another_was_opened_later() {
    let mut world = World::new(&[Fake::full()]);
    world.pass(secs(6));
    world.slice(&[S1]);
    for url in [of(S1, CHILD), of(S1, NAME)] {
        world.reset(&url, Vec::new());
    }
    world.reset(&of(S1, THING), vec![raw("a", "x", 1, json!({}))]);
    assert_eq!(world.core.wake_at(), Some(secs(10)), "the platform's stream is silent since 0 s");
    assert_eq!(world.pass(secs(4)), [work(0, "a", "x")]);
}

#[test]
fn an_input_that_may_not_be_read_is_not_waited_for() {
    let refused = of(S1, NAME);
    let mut world = unanswered(&[&refused]);
    let begun = world.health(&refused, Health::Forbidden { what: "no rule".into() });
    assert_eq!(begun, [work(0, "a", "x")]);
    let trouble = world.running[&work(0, "a", "x")].seen.names[&NAME].trouble.clone().unwrap();
    assert!(trouble.hard && trouble.what.contains("no rule"), "{trouble:?}");
}

#[test]
fn a_tenants_kind_that_is_not_served_is_empty_but_a_platform_kind_is_unavailable() {
    let mut world = unanswered(&[&of(S1, CHILD), &of(BASE, PART)]);
    world.health(&of(S1, CHILD), Health::SyncedEmpty);
    assert_eq!(world.health(&of(BASE, PART), Health::SyncedEmpty), [work(0, "a", "x")]);
    let seen = &world.running[&work(0, "a", "x")].seen;
    assert_eq!(seen.children[&CHILD].trouble, None);
    assert!(seen.views[&TypeId::of::<Parts>()].trouble.as_ref().unwrap().hard);
}

#[test]
fn a_stream_that_is_broken_before_its_first_list_answers_unavailable_since_it_broke() {
    let silent = of(BASE, PART);
    let mut world = unanswered(&[&silent]);
    world.pass(secs(3));
    world.health(&silent, Health::Broken { what: "connection refused".into() });
    assert!(world.running.is_empty(), "it may still answer");
    assert_eq!(world.pass(secs(7)), [work(0, "a", "x")]);
    let trouble = world.running[&work(0, "a", "x")].seen.views[&TypeId::of::<Parts>()].trouble.clone().unwrap();
    assert!(trouble.hard && trouble.lasted == secs(7), "{trouble:?}");
}

#[test]
fn staleness_counts_from_the_break_and_anew_from_a_list_that_succeeds_meanwhile() {
    let parts = of(BASE, PART);
    let mut world = World::ready(&[Fake::full()]);
    world.health(&parts, Health::Live);
    world.pass(secs(100));
    world.health(&parts, Health::Broken { what: "closed".into() });
    world.pass(secs(20));
    world.health(&parts, Health::Broken { what: "closed again".into() });
    let lasted = |world: &mut World, version| {
        world.upsert(&of(S1, THING), raw("a", "x", version, json!({})));
        let seen = world.running[&work(0, "a", "x")].seen.clone();
        world.drain();
        seen.views[&TypeId::of::<Parts>()].trouble.clone().map(|trouble| (trouble.hard, trouble.lasted))
    };
    assert_eq!(lasted(&mut world, 1), Some((false, secs(20))), "another reason is no other break, and silence before it was none");
    world.reset(&parts, Vec::new());
    world.pass(secs(5));
    assert_eq!(lasted(&mut world, 2), Some((false, secs(5))), "what was listed 5 s ago is 5 s old");
    world.health(&parts, Health::Live);
    assert_eq!(lasted(&mut world, 3), None);
}

#[test]
fn a_recovered_input_wakes_the_starved_and_nobody_else() {
    let parts = of(BASE, PART);
    let mut world = World::ready(&[Fake::full()]);
    world.health(&parts, Health::Live);
    world.upsert(&of(S1, THING), raw("a", "x", 1, json!({})));
    world.upsert(&of(S1, THING), raw("a", "y", 2, json!({})));
    world.health(&parts, Health::Broken { what: "closed".into() });
    world.end(&work(0, "a", "x"), Ended { starved: true, ..settled() });
    world.end(&work(0, "a", "y"), settled());
    assert!(world.running.is_empty());
    assert_eq!(world.health(&parts, Health::Live), [work(0, "a", "x")]);
    world.drain();
    world.health(&parts, Health::Broken { what: "closed".into() });
    assert_eq!(world.health(&parts, Health::Live), [], "it was told already");
}

#[test]
fn an_input_that_recovers_while_a_call_misses_it_wakes_that_call_once() {
    let parts = of(BASE, PART);
    let mut world = World::ready(&[Fake::full()]);
    world.health(&parts, Health::Live);
    world.health(&parts, Health::Broken { what: "closed".into() });
    let x = work(0, "a", "x");
    world.upsert(&of(S1, THING), raw("a", "x", 1, json!({})));
    assert_eq!(world.health(&parts, Health::Live), [], "the call goes on");
    assert_eq!(
        world.end(&x, Ended { starved: true, ..settled() }),
        std::slice::from_ref(&x),
        "it began before the input was readable again"
    );
    assert_eq!(world.end(&x, Ended { starved: true, ..settled() }), [], "it began after that, and waits for the next time");
    world.health(&parts, Health::Broken { what: "closed".into() });
    assert_eq!(world.health(&parts, Health::Live), [x]);
}
