//! Read your writes: a key is not handed out until its streams have shown what we wrote.

use super::*;

fn things() -> String {
    of(S1, THING)
}

/// A world in which `a/x` was called, wrote its status as version 10, and changed under our hands to version 5 meanwhile.
fn wrote_status() -> World {
    let mut world = World::ready(&[Fake::full(), Fake::new("childless")]);
    world.upsert(&things(), raw("a", "x", 1, json!({})));
    world.end(&work(1, "a", "x"), settled());
    world.end(&work(0, "a", "x"), wrote(THING, "x", "u1", Some(10)));
    assert_eq!(world.upsert(&things(), raw("a", "x", 5, json!({}))), [], "for every reconciler of the object");
    world
}

#[test]
fn a_key_waits_until_its_own_write_is_shown() {
    let mut world = wrote_status();
    let mut begun = world.upsert(&things(), raw("a", "x", 10, json!({})));
    begun.sort();
    assert_eq!(begun, [work(0, "a", "x"), work(1, "a", "x")]);
    assert_eq!(world.core.objects.debts(), 0);
}

#[test]
fn a_write_is_waited_for_while_the_call_that_made_it_goes_on() {
    let mut world = World::ready(&[Fake::full(), Fake { children: vec![CHILD], ..Fake::new("reader") }]);
    world.upsert(&things(), raw("a", "x", 1, json!({})));
    world.end(&work(1, "a", "x"), settled());
    for written in wrote(CHILD, "x", "c1", Some(7)).written {
        world.wrote(&work(0, "a", "x"), written);
    }
    // The call's next write is seen before its first one, and before its end.
    assert_eq!(world.upsert(&things(), raw("a", "x", 8, json!({}))), [], "nobody is called over a cache without the child");
    assert_eq!(world.upsert(&of(S1, CHILD), incarnation("a", "x", "c1", 7, json!({}))), [work(1, "a", "x")]);
}

#[test]
fn a_key_waits_ten_seconds_and_not_longer() {
    let mut world = wrote_status();
    assert_eq!(world.pass(secs(9)), []);
    assert_eq!(world.pass(secs(1)).len(), 2);
    assert_eq!((world.core.objects.debts(), world.core.unseen.len()), (0, 0));
}

#[test]
fn a_later_incarnation_ends_the_wait() {
    let mut world = wrote_status();
    assert_eq!(world.upsert(&things(), incarnation("a", "x", "u2", 12, json!({}))).len(), 2);
}

#[test]
fn a_deletion_ends_the_wait_and_a_recreated_object_is_called_at_once() {
    let mut world = wrote_status();
    assert_eq!(world.delete(&things(), raw("a", "x", 11, json!({}))), []);
    assert_eq!(world.core.objects.debts(), 0);
    assert_eq!(world.upsert(&things(), incarnation("a", "x", "u2", 12, json!({}))).len(), 2);
}

#[test]
fn a_list_asked_for_after_the_write_ends_the_wait_and_one_asked_for_before_does_not() {
    let mut world = World::ready(&[Fake::full()]);
    world.upsert(&things(), raw("a", "x", 1, json!({})));
    let before = world.now;
    world.pass(secs(1));
    // The child was made, and deleted by somebody else before any stream showed it.
    world.end(&work(0, "a", "x"), wrote(CHILD, "x", "c1", Some(10)));
    world.upsert(&things(), raw("a", "x", 2, json!({})));
    assert_eq!(world.tell(&of(S1, CHILD), News::Reset { items: Vec::new(), asked: before }), []);
    world.pass(secs(1));
    assert_eq!(world.reset(&of(S1, NAME), Vec::new()), [], "another kind's list says nothing");
    assert_eq!(world.reset(&of(S1, CHILD), Vec::new()), [work(0, "a", "x")]);
}

#[test]
fn the_incarnation_before_our_write_does_not_end_the_wait() {
    let mut world = World::ready(&[Fake::full()]);
    world.upsert(&of(S1, CHILD), incarnation("a", "x", "old", 1, json!({})));
    world.upsert(&things(), raw("a", "x", 2, json!({})));
    // One call deleted the old child and made a new one.
    let Ended { written: mut both, .. } = wrote(CHILD, "x", "old", None);
    both.extend(wrote(CHILD, "x", "new", Some(9)).written);
    world.end(&work(0, "a", "x"), Ended { written: both, ..settled() });
    world.upsert(&things(), raw("a", "x", 3, json!({})));
    assert!(world.running.is_empty(), "the cache still shows the old child");
    assert_eq!(world.delete(&of(S1, CHILD), incarnation("a", "x", "old", 8, json!({}))), [], "and now none");
    assert_eq!(world.upsert(&of(S1, CHILD), incarnation("a", "x", "new", 9, json!({}))), [work(0, "a", "x")]);
}

#[test]
fn a_write_that_is_shown_before_the_call_ends_is_not_waited_for() {
    let mut world = World::ready(&[Fake::new("only")]);
    world.upsert(&things(), raw("a", "x", 1, json!({})));
    world.upsert(&things(), raw("a", "x", 10, json!({})));
    assert_eq!(world.end(&work(0, "a", "x"), wrote(THING, "x", "u1", Some(10))), [work(0, "a", "x")]);
}

#[test]
fn a_write_to_another_name_holds_up_that_name_and_not_the_writer() {
    let mut world = World::ready(&[Fake::full()]);
    world.upsert(&things(), raw("a", "x", 1, json!({})));
    world.upsert(&things(), raw("a", "y", 2, json!({})));
    world.end(&work(0, "a", "y"), settled());
    world.end(&work(0, "a", "x"), wrote(CHILD, "y", "c", Some(10)));
    assert_eq!(world.upsert(&things(), raw("a", "x", 3, json!({}))), [work(0, "a", "x")]);
    assert_eq!(world.upsert(&things(), raw("a", "y", 4, json!({}))), []);
    assert_eq!(world.upsert(&of(S1, CHILD), incarnation("a", "y", "c", 10, json!({}))), [work(0, "a", "y")]);
    world.drain();
    assert_eq!((world.core.objects.debts(), world.core.unseen.len()), (0, 0));
}

#[test]
fn a_child_that_a_reconciler_does_not_read_does_not_hold_it_up() {
    let mut world = World::ready(&[Fake::full(), Fake::new("childless")]);
    world.upsert(&things(), raw("a", "x", 1, json!({})));
    world.end(&work(1, "a", "x"), settled());
    world.end(&work(0, "a", "x"), wrote(CHILD, "x", "c", Some(10)));
    assert_eq!(world.upsert(&things(), raw("a", "x", 2, json!({}))), [work(1, "a", "x")]);
}

#[test]
fn what_was_raised_while_the_subscriptions_were_out_of_date_is_not_lost() {
    let mut world = World::ready(&[Fake::full()]);
    world.upsert(&things(), raw("a", "x", 1, json!({"parts": ["p"]})));
    world.upsert(&things(), raw("b", "z", 2, json!({"parts": ["q"]})));
    world.end(&work(0, "b", "z"), settled());
    world.end(&work(0, "a", "x"), wrote(THING, "x", "u1", Some(10)));
    // By its own write it listens to q, which no stream has shown yet.
    world.upsert(&of(BASE, PART), raw("", "q", 5, json!({})));
    world.drain();
    assert_eq!(world.pass(secs(10)), [work(0, "a", "x")], "even if the write is never shown");
}

#[test]
fn what_was_seen_to_go_before_its_call_ends_is_not_waited_for() {
    for told in [true, false] {
        let mut world = World::ready(&[Fake::full()]);
        world.upsert(&of(S1, CHILD), incarnation("a", "x", "c1", 1, json!({})));
        world.upsert(&things(), raw("a", "x", 2, json!({})));
        // The call deletes the child, which waits for its finalizers, and goes on to its status.
        let ended = wrote(CHILD, "x", "c1", Some(7));
        if told {
            world.wrote(&work(0, "a", "x"), ended.written[0].clone());
        }
        world.upsert(&of(S1, CHILD), incarnation("a", "x", "c1", 7, json!({})));
        world.delete(&of(S1, CHILD), incarnation("a", "x", "c1", 8, json!({})));
        assert_eq!(world.end(&work(0, "a", "x"), ended), [work(0, "a", "x")]);
    }
}

#[test]
fn a_change_counts_as_ours_while_somebody_is_at_work_on_the_object_and_not_after_that() {
    let mut world = World::ready(&[Fake::full(), Fake::new("other")]);
    world.upsert(&things(), raw("a", "x", 1, json!({})));
    let at_work = |world: &World, workspace| world.core.is_at_work_on(&work(0, workspace, "x").key);
    world.end(&work(0, "a", "x"), settled());
    assert!(at_work(&world, "a") && !at_work(&world, "b"), "the other reconciler is at work");
    world.end(&work(1, "a", "x"), settled());
    assert!(!at_work(&world, "a"));
}
