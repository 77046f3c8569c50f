//! What the server knows and no stream has shown: writes that are refused, and children that do not stay.

use super::*;

fn things() -> String {
    of(S1, THING)
}

fn children() -> String {
    of(S1, CHILD)
}

/// The end of a call whose write to this state was refused.
fn refused(kind: KindRef, version: Option<u64>) -> Ended {
    let refused = Refused { kind, name: ObjectName::namespaced("default", "x"), uid: "u1".into(), version };
    Ended { outcome: Outcome::Backoff, refused: vec![refused], ..settled() }
}

fn full() -> Work {
    work(0, "a", "x")
}

/// A world in which `a/x`, at version 3 with a child at 4, has a call under way.
fn under_way() -> World {
    let mut world = World::ready(&[Fake::full()]);
    world.upsert(&children(), raw("a", "x", 4, json!({})));
    assert_eq!(world.upsert(&things(), raw("a", "x", 3, json!({}))), [full()]);
    world
}

/// The same, whose status was refused since the object is another one by now.
fn out_of_date() -> World {
    let mut world = under_way();
    assert_eq!(world.end(&full(), refused(THING, Some(3))), []);
    world
}

#[test]
fn a_key_whose_write_was_refused_waits_until_a_later_state_is_shown_whatever_else_changes() {
    let mut world = out_of_date();
    assert_eq!(world.delete(&children(), raw("a", "x", 7, json!({}))), [], "the child tells nothing of the object");
    assert_eq!(world.pass(secs(60)), [], "its backoff is over");
    assert_eq!(world.upsert(&things(), raw("a", "x", 8, json!({}))), [full()]);
    world.drain();
    assert_eq!(world.core.objects.debts(), 0);
}

#[test]
fn an_incarnation_that_is_gone_ends_the_wait_and_the_next_one_is_called() {
    let mut world = out_of_date();
    assert_eq!(world.delete(&things(), raw("a", "x", 6, json!({}))), []);
    assert_eq!(world.upsert(&things(), incarnation("a", "x", "u2", 7, json!({}))), [full()]);
    assert_eq!(world.core.objects.debts(), 0);
}

#[test]
fn a_stream_that_lags_is_listed_anew_after_two_seconds_once_and_its_list_ends_the_wait() {
    let mut world = out_of_date();
    assert_eq!(world.refreshes(), [""; 0]);
    world.pass(secs(2));
    assert_eq!(world.refreshes(), [things()], "that of the object alone");
    world.pass(secs(60));
    assert_eq!(world.refreshes(), [""; 0]);
    assert_eq!(world.reset(&things(), vec![raw("a", "x", 3, json!({}))]), [full()], "the server was wrong: nothing has changed");
    assert_eq!(world.core.objects.debts(), 0);
}

#[test]
fn a_stream_is_listed_for_what_it_does_not_show_twice_a_minute_at_most_and_forgets_nobody() {
    let mut world = World::ready(&[Fake::full()]);
    let names = ["x", "y"];
    for name in names {
        world.upsert(&things(), raw("a", name, 3, json!({})));
    }
    world.end(&full(), refused(THING, Some(3)));
    world.pass(secs(2));
    assert_eq!(world.refreshes(), [things()]);
    let mut other = refused(THING, Some(3));
    other.refused[0].name = ObjectName::namespaced("default", "y");
    world.pass(secs(1));
    world.end(&work(0, "a", "y"), other);
    world.pass(secs(28));
    assert_eq!(world.refreshes(), [""; 0], "the other one's turn would be now");
    world.pass(secs(1));
    assert_eq!(world.refreshes(), [things()]);
    assert_eq!(world.reset(&things(), names.map(|name| raw("a", name, 3, json!({}))).into()).len(), 2);
}

#[test]
fn a_server_that_refuses_and_never_shows_why_is_asked_again_after_five_minutes() {
    let mut world = out_of_date();
    assert_eq!(world.pass(secs(299)), []);
    assert_eq!(world.pass(secs(1)), [full()]);
}

#[test]
fn what_was_shown_before_the_refusal_came_is_not_waited_for() {
    let mut world = under_way();
    world.upsert(&things(), raw("a", "x", 5, json!({})));
    assert_eq!(world.end(&full(), refused(THING, Some(3))), [full()]);
    assert_eq!(world.core.objects.debts(), 0);
}

#[test]
fn a_refusal_to_our_own_latest_state_waits_for_a_later_one() {
    let mut world = under_way();
    world.upsert(&things(), raw("a", "x", 5, json!({})));
    // The call wrote version 6 and was refused its next write, which named that.
    let Ended { written, .. } = wrote(THING, "x", "u1", Some(6));
    world.end(&full(), Ended { written, ..refused(THING, Some(6)) });
    assert_eq!(world.upsert(&things(), raw("a", "x", 6, json!({}))), []);
    assert_eq!(world.upsert(&things(), raw("a", "x", 7, json!({}))), [full()]);
}

#[test]
fn a_child_that_is_not_as_it_was_read_holds_its_object_up_as_well() {
    let mut world = under_way();
    world.end(&full(), refused(CHILD, None));
    assert_eq!(world.upsert(&things(), raw("a", "x", 8, json!({}))), []);
    assert_eq!(world.delete(&children(), raw("a", "x", 9, json!({}))), [full()]);
}

/// The child that the call under way has made is shown, and taken away by somebody else.
fn comes_and_goes(world: &mut World, at: u64) -> Vec<Work> {
    for written in wrote(CHILD, "x", "c", Some(at)).written {
        world.wrote(&full(), written);
    }
    world.upsert(&children(), incarnation("a", "x", "c", at, json!({})));
    world.end(&full(), settled());
    world.drain();
    world.delete(&children(), incarnation("a", "x", "c", at + 1, json!({})))
}

#[test]
fn a_child_that_is_taken_away_again_and_again_is_made_anew_at_once_then_ever_later() {
    let mut world = under_way();
    assert_eq!(comes_and_goes(&mut world, 10), [full()], "the first time");
    for (turn, wait) in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 30), (7, 30)] {
        assert_eq!(comes_and_goes(&mut world, 10 + 10 * turn), [], "turn {turn}");
        assert_eq!(world.upsert(&things(), raw("a", "x", 12 + 10 * turn, json!({}))), [], "our own status is no reason either");
        assert_eq!(world.pass(Duration::from_millis(wait * 1000 - 1)), [], "turn {turn}");
        assert_eq!(world.pass(Duration::from_millis(1)), [full()], "turn {turn}");
    }
    world.end(&full(), settled());
    world.pass(Duration::from_mins(10));
    world.upsert(&things(), raw("a", "x", 100, json!({})));
    assert_eq!(comes_and_goes(&mut world, 110), [full()], "after ten minutes without a loss");
}

#[test]
fn who_takes_a_child_away_while_the_call_that_made_it_goes_on_is_waited_for_all_the_same() {
    let mut world = under_way();
    let mut begun = Vec::new();
    for at in [10, 20, 30, 40] {
        for written in wrote(CHILD, "x", "c", Some(at)).written {
            world.wrote(&full(), written);
        }
        world.upsert(&children(), incarnation("a", "x", "c", at, json!({})));
        world.delete(&children(), incarnation("a", "x", "c", at + 1, json!({})));
        begun = world.end(&full(), settled());
        if begun.is_empty() {
            begun = world.pass(secs(4));
            assert_eq!(begun, [full()], "it waited");
        }
    }
    assert_eq!(begun, [full()]);
    assert!(world.now >= secs(8), "three waits: {:?}", world.now);
}

#[test]
fn who_makes_the_child_instead_of_us_ends_the_wait() {
    let mut world = under_way();
    comes_and_goes(&mut world, 10);
    assert_eq!(comes_and_goes(&mut world, 20), []);
    assert_eq!(world.upsert(&children(), incarnation("a", "x", "theirs", 22, json!({}))), [full()]);
}

#[test]
fn an_object_that_is_to_go_does_not_wait_for_a_fight_over_its_child() {
    let mut world = under_way();
    comes_and_goes(&mut world, 10);
    assert_eq!(comes_and_goes(&mut world, 20), []);
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert_eq!(world.upsert(&things(), raw("a", "x", 22, going)), [full()]);
}

#[test]
fn another_incarnation_and_who_only_reads_the_child_do_not_wait_for_a_fight() {
    let mut world = World::ready(&[Fake::full(), Fake { children: vec![CHILD], ..Fake::new("reader") }]);
    world.upsert(&things(), raw("a", "x", 3, json!({})));
    comes_and_goes(&mut world, 10);
    world.drain();
    world.upsert(&things(), raw("a", "x", 19, json!({})));
    assert_eq!(comes_and_goes(&mut world, 20), [work(1, "a", "x")]);
    assert_eq!(world.upsert(&things(), incarnation("a", "x", "u2", 22, json!({}))), [full()]);
}

#[test]
fn what_we_delete_ourselves_takes_nothing_off_what_others_took_away() {
    let mut world = under_way();
    comes_and_goes(&mut world, 10);
    assert_eq!(comes_and_goes(&mut world, 20), []);
    world.upsert(&children(), incarnation("a", "x", "own", 30, json!({})));
    // Its end is seen before the answer, which is told twice: at once, and with the end of the call.
    world.delete(&children(), incarnation("a", "x", "own", 31, json!({})));
    let ended = wrote(CHILD, "x", "own", None);
    world.wrote(&full(), ended.written[0].clone());
    world.end(&full(), ended);
    assert_eq!(world.core.losses.count(&full()), 2);
}

#[test]
fn a_child_that_we_delete_ourselves_is_no_loss() {
    type Way = fn(&mut World, Written, Raw);
    let ways: [(&str, Way); 4] = [
        ("the answer comes first", |world, written, child| {
            world.wrote(&full(), written);
            world.delete(&children(), child);
        }),
        ("its end is seen first", |world, written, child| {
            world.delete(&children(), child);
            world.wrote(&full(), written);
        }),
        ("others let go of it later", |world, written, child| {
            world.wrote(&full(), Written { version: child.version(), ..written });
            world.delete(&children(), child);
        }),
        ("another one is made in the same call", |world, written, child| {
            let next = child.version().unwrap() + 2;
            world.wrote(&full(), written);
            for made in wrote(CHILD, "x", "next", Some(next)).written {
                world.wrote(&full(), made);
            }
            world.delete(&children(), child);
            world.upsert(&children(), incarnation("a", "x", "next", next, json!({})));
        }),
    ];
    for (way, delete) in ways {
        let mut world = under_way();
        for at in [20, 30, 40, 50] {
            for made in wrote(CHILD, "x", "c", Some(at)).written {
                world.wrote(&full(), made);
            }
            world.upsert(&children(), incarnation("a", "x", "c", at, json!({})));
            let written = wrote(CHILD, "x", "c", None).written.remove(0);
            delete(&mut world, written, incarnation("a", "x", "c", at, json!({})));
            assert_eq!(world.end(&full(), settled()), [full()], "{way}, {at}");
            assert_eq!(world.core.losses.count(&full()), 0, "{way}, {at}");
        }
    }
}
