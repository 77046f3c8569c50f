//! What the queue promises about single pieces of work, as statements.

use super::*;
use crate::api::names::{ObjectKey, ObjectName};

const MS: Duration = Duration::from_millis(1);
const ZERO: Duration = Duration::ZERO;
const LATE: Duration = Duration::from_secs(100_000);

fn work(workspace: &str, name: &str) -> Work {
    Work { actor: 0, key: ObjectKey::new(LogicalCluster::new(workspace), ObjectName::namespaced("default", name)) }
}

fn queue(workers: usize) -> Queue {
    Queue::new(Settings::new(workers))
}

/// Hands out one by one, each done before the next, as `workspace/name`.
fn drain(queue: &mut Queue, now: Duration) -> Vec<String> {
    std::iter::from_fn(|| {
        let turn = queue.next(now)?;
        queue.done(now, 1.0, &turn.work, Outcome::Settled);
        Some(format!("{}/{}", turn.work.key.workspace, turn.work.key.name.name))
    })
    .collect()
}

/// Runs the work that is next and ends it so.
fn run(queue: &mut Queue, now: Duration, outcome: Outcome) -> Option<Duration> {
    let turn = queue.next(now).expect("work is ready");
    queue.done(now, 1.0, &turn.work, outcome)
}

#[test]
fn work_added_twice_is_handed_out_once() {
    let mut queue = queue(1);
    queue.add(ZERO, &work("a", "1"), Class::Fresh);
    queue.add(ZERO, &work("a", "1"), Class::Fresh);
    queue.add(ZERO, &work("a", "1"), Class::Resync);
    assert_eq!(drain(&mut queue, ZERO), ["a/1"]);
}

#[test]
fn the_same_object_is_separate_work_for_each_reconciler() {
    let mut queue = queue(8);
    queue.add(ZERO, &work("a", "1"), Class::Fresh);
    queue.add(ZERO, &Work { actor: 1, ..work("a", "1") }, Class::Fresh);
    assert_eq!(drain(&mut queue, ZERO).len(), 2);
}

#[test]
fn the_same_name_in_two_workspaces_is_separate_work() {
    let mut queue = queue(8);
    queue.add(ZERO, &work("a", "1"), Class::Fresh);
    queue.add(ZERO, &work("b", "1"), Class::Fresh);
    assert_eq!(drain(&mut queue, ZERO), ["a/1", "b/1"]);
}

#[test]
fn work_in_flight_is_not_handed_out_again_until_it_is_done() {
    let mut queue = queue(8);
    queue.add(ZERO, &work("a", "1"), Class::Resync);
    let turn = queue.next(ZERO).expect("ready");
    queue.add(ZERO, &work("a", "1"), Class::Fresh);
    queue.add_after(ZERO, &work("a", "1"), MS);
    assert_eq!(queue.next(LATE), None);
    queue.done(LATE, 1.0, &turn.work, Outcome::Settled);
    assert_eq!(queue.next(LATE).map(|turn| (turn.work, turn.class)), Some((work("a", "1"), Class::Fresh)));
    assert_eq!(queue.next(LATE), None, "the delay was moot");
}

#[test]
fn a_change_during_a_run_makes_work_ready_again_in_the_most_urgent_class() {
    for (added, expected) in [
        (vec![Class::Resync], Class::Resync),
        (vec![Class::Resync, Class::Fresh], Class::Fresh),
        (vec![Class::Fresh, Class::Resync], Class::Fresh),
    ] {
        for outcome in [Outcome::Settled, Outcome::After(LATE), Outcome::Backoff] {
            let mut queue = queue(1);
            queue.add(ZERO, &work("a", "1"), Class::Fresh);
            let turn = queue.next(ZERO).expect("ready");
            for class in &added {
                queue.add(ZERO, &work("a", "1"), *class);
            }
            assert_eq!(queue.done(ZERO, 1.0, &turn.work, outcome), None, "{added:?} {outcome:?}");
            assert_eq!(queue.next(ZERO).map(|turn| turn.class), Some(expected), "{added:?} {outcome:?}");
        }
    }
}

#[test]
fn a_workspace_is_served_in_the_order_of_arrival() {
    let mut queue = queue(1);
    for name in ["3", "1", "2", "1"] {
        queue.add(ZERO, &work("a", name), Class::Fresh);
    }
    assert_eq!(drain(&mut queue, ZERO), ["a/3", "a/1", "a/2"]);
}

#[test]
fn workspaces_take_turns_however_much_one_has_queued() {
    let mut queue = queue(1);
    for name in ["1", "2", "3"] {
        queue.add(ZERO, &work("hog", name), Class::Fresh);
    }
    queue.add(ZERO, &work("b", "1"), Class::Fresh);
    queue.add(ZERO, &work("a", "1"), Class::Fresh);
    assert_eq!(drain(&mut queue, ZERO), ["hog/1", "b/1", "a/1", "hog/2", "hog/3"]);
}

#[test]
fn a_fresh_change_lifts_waiting_work_out_of_the_resync_class() {
    let mut queue = queue(1);
    queue.add(ZERO, &work("a", "1"), Class::Resync);
    queue.add(ZERO, &work("a", "2"), Class::Resync);
    queue.add(ZERO, &work("a", "2"), Class::Fresh);
    assert_eq!(drain(&mut queue, ZERO), ["a/2", "a/1"]);
}

#[test]
fn a_workspace_has_no_more_in_flight_than_its_cap_and_keeps_a_place_for_each_class() {
    for (workers, per_workspace, fresh_only, both) in
        [(4, None, 1, 2), (16, None, 3, 4), (100, None, 3, 4), (100, Some(0), 1, 2), (100, Some(9), 8, 9)]
    {
        let settings = Settings::new(workers);
        let settings = per_workspace.map_or(settings, |cap| settings.with_per_workspace(cap));
        for class in Class::ALL {
            let other = if class == Class::Fresh { Class::Resync } else { Class::Fresh };
            let mut queue = Queue::new(settings);
            let started = |queue: &mut Queue, class: Class, prefix: &str| {
                for index in 0..20 {
                    queue.add(ZERO, &work("a", &format!("{prefix}{index}")), class);
                }
                while queue.next(ZERO).is_some() {}
                queue.in_flight()
            };
            assert_eq!(started(&mut queue, class, "x"), fresh_only, "{workers} workers, cap {per_workspace:?}, {class:?} alone");
            assert_eq!(started(&mut queue, other, "y"), both, "{workers} workers, cap {per_workspace:?}, then {other:?}");
        }
    }
}

#[test]
fn no_more_is_in_flight_than_there_are_workers() {
    let mut queue = queue(3);
    for workspace in ["a", "b", "c", "d"] {
        queue.add(ZERO, &work(workspace, "1"), Class::Fresh);
    }
    let first = queue.next(ZERO).expect("ready");
    while queue.next(ZERO).is_some() {}
    assert_eq!(queue.in_flight(), 3);
    queue.done(ZERO, 1.0, &first.work, Outcome::Settled);
    assert!(queue.next(ZERO).is_some());
}

#[test]
fn one_slot_in_five_is_the_resync_class_s_while_both_have_work() {
    let mut queue = queue(1);
    for index in 0..100 {
        queue.add(ZERO, &work("a", &format!("f{index}")), Class::Fresh);
        queue.add(ZERO, &work("b", &format!("r{index}")), Class::Resync);
    }
    let order: String = drain(&mut queue, ZERO).iter().map(|name| &name[..1]).collect();
    assert_eq!(order, "aaaab".repeat(25) + &"b".repeat(75));
}

#[test]
fn a_delay_makes_work_ready_in_the_resync_class_when_it_has_passed() {
    let mut queue = queue(1);
    queue.add_after(MS, &work("a", "1"), 9 * MS);
    assert_eq!(queue.next(9 * MS), None);
    assert_eq!(queue.next_due(), Some(10 * MS));
    assert_eq!(queue.next(12 * MS), Some(Turn { work: work("a", "1"), class: Class::Resync, waited: 2 * MS }));
    assert_eq!(queue.next_due(), None);
}

#[test]
fn the_earliest_delay_counts() {
    for delays in [[5, 9], [9, 5]] {
        let mut queue = queue(1);
        for delay in delays {
            queue.add_after(ZERO, &work("a", "1"), delay * MS);
        }
        assert_eq!(queue.next_due(), Some(5 * MS));
        assert_eq!(drain(&mut queue, LATE), ["a/1"]);
    }
}

#[test]
fn a_delay_is_moot_once_the_work_is_ready() {
    let mut queue = queue(1);
    queue.add_after(ZERO, &work("a", "1"), MS);
    queue.add(ZERO, &work("a", "1"), Class::Fresh);
    queue.add_after(ZERO, &work("a", "1"), MS);
    assert_eq!(queue.next_due(), None);
    assert_eq!(drain(&mut queue, LATE), ["a/1"]);
}

#[test]
fn a_delay_asked_for_during_a_run_outlives_it_if_it_is_the_earlier() {
    for (outcome, expected) in [(Outcome::Settled, 7), (Outcome::After(9 * MS), 7), (Outcome::After(3 * MS), 3), (Outcome::Backoff, 7)] {
        let mut queue = queue(1);
        queue.add(ZERO, &work("a", "1"), Class::Fresh);
        let turn = queue.next(ZERO).expect("ready");
        queue.add_after(ZERO, &turn.work, 7 * MS);
        assert_eq!(queue.done(ZERO, 1.0, &turn.work, outcome), Some(expected * MS), "{outcome:?}");
        assert_eq!(queue.next_due(), Some(expected * MS), "{outcome:?}");
    }
}

#[test]
fn a_recheck_after_no_time_is_now_and_not_never() {
    let mut queue = queue(1);
    queue.add(ZERO, &work("a", "1"), Class::Fresh);
    assert_eq!(run(&mut queue, ZERO, Outcome::After(ZERO)), Some(ZERO));
    assert_eq!(queue.next(ZERO).map(|turn| turn.class), Some(Class::Resync));
}

#[test]
fn a_delay_beyond_all_time_does_not_end_the_process() {
    let mut queue = queue(1);
    queue.add_after(LATE, &work("a", "1"), Duration::MAX);
    assert_eq!(queue.next_due(), Some(Duration::MAX));
}

/// Fails the work at each time its wait is over, and returns the waits in milliseconds.
fn waits(queue: &mut Queue, now: &mut Duration, times: usize, jitter: f64) -> Vec<u128> {
    let fail = |_| {
        let turn = queue.next(*now).expect("its wait is over");
        let wait = queue.done(*now, jitter, &turn.work, Outcome::Backoff).expect("it failed");
        *now += wait;
        wait.as_millis()
    };
    (0..times).map(fail).collect()
}

#[test]
fn failures_wait_exponentially_longer_up_to_five_minutes() {
    let (mut queue, mut now) = (queue(1), ZERO);
    queue.add(now, &work("a", "1"), Class::Fresh);
    let waits = waits(&mut queue, &mut now, 80, 1.0);
    assert_eq!(waits[..5], [250, 500, 1000, 2000, 4000]);
    assert_eq!(waits[10..13], [256_000, 300_000, 300_000]);
    assert_eq!(waits.last(), Some(&300_000), "the level must not run over");
}

#[test]
fn the_jitter_chooses_in_the_upper_half_and_a_wrong_one_does_no_harm() {
    for (jitter, expected) in [(0.0, 125), (0.5, 187), (1.0, 250), (-3.0, 125), (7.0, 250), (f64::NAN, 250), (f64::INFINITY, 250)] {
        let (mut queue, mut now) = (queue(1), ZERO);
        queue.add(now, &work("a", "1"), Class::Fresh);
        assert_eq!(waits(&mut queue, &mut now, 1, jitter), [expected], "{jitter}");
    }
}

#[test]
fn only_waits_that_passed_escalate() {
    let (mut queue, mut now) = (queue(1), ZERO);
    queue.add(now, &work("a", "1"), Class::Fresh);
    waits(&mut queue, &mut now, 2, 1.0);
    now -= MS;
    for _ in 0..50 {
        queue.add(now, &work("a", "1"), Class::Fresh);
        assert_eq!(run(&mut queue, now, Outcome::Backoff), Some(500 * MS), "a change before the wait was over");
    }
    now += 500 * MS;
    assert_eq!(run(&mut queue, now, Outcome::Backoff), Some(1000 * MS), "the wait was over");
}

#[test]
fn a_long_attempt_begun_before_the_wait_was_over_does_not_escalate() {
    let mut queue = queue(1);
    queue.add(ZERO, &work("a", "1"), Class::Fresh);
    run(&mut queue, ZERO, Outcome::Backoff);
    queue.add(MS, &work("a", "1"), Class::Fresh);
    let turn = queue.next(MS).expect("ready");
    assert_eq!(queue.done(LATE, 1.0, &turn.work, Outcome::Backoff), Some(250 * MS));
}

#[test]
fn a_change_during_a_failing_run_is_tried_at_once_and_the_failures_stay_counted() {
    let mut queue = queue(1);
    queue.add(ZERO, &work("a", "1"), Class::Fresh);
    run(&mut queue, ZERO, Outcome::Backoff);
    let turn = queue.next(250 * MS).expect("its wait is over");
    queue.add(250 * MS, &turn.work, Class::Fresh);
    assert_eq!(queue.done(250 * MS, 1.0, &turn.work, Outcome::Backoff), None);
    assert_eq!(run(&mut queue, 250 * MS, Outcome::Backoff), Some(500 * MS), "the second level, reached but not waited for");
}

#[test]
fn success_forgets_the_failures() {
    for success in [Outcome::Settled, Outcome::After(LATE)] {
        let (mut queue, mut now) = (queue(1), ZERO);
        queue.add(now, &work("a", "1"), Class::Fresh);
        waits(&mut queue, &mut now, 5, 1.0);
        run(&mut queue, now, success);
        queue.add(now, &work("a", "1"), Class::Fresh);
        assert_eq!(run(&mut queue, now, Outcome::Backoff), Some(250 * MS), "{success:?}");
    }
}

#[test]
fn settled_work_leaves_nothing_behind() {
    let mut queue = queue(4);
    for name in ["1", "2", "3"] {
        queue.add(ZERO, &work("a", name), Class::Fresh);
    }
    run(&mut queue, ZERO, Outcome::Backoff);
    run(&mut queue, ZERO, Outcome::After(MS));
    queue.block(&work("a", "3"));
    queue.unblock(&work("a", "3"));
    queue.unblock(&work("b", "never blocked"));
    drain(&mut queue, LATE);
    assert_eq!(queue.stats(LATE), Stats::default());
    assert!(queue.workspaces.is_empty() && queue.delayed.is_empty() && queue.rings.iter().all(BTreeSet::is_empty));
}

#[test]
fn blocked_work_delays_nobody_and_is_first_in_its_workspace_after() {
    let mut queue = queue(1);
    for (workspace, name) in [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1")] {
        queue.add(ZERO, &work(workspace, name), Class::Fresh);
    }
    queue.block(&work("a", "1"));
    queue.block(&work("a", "1"));
    assert_eq!(run(&mut queue, ZERO, Outcome::Settled), None);
    assert_eq!(queue.stats(ZERO).blocked, 1);
    queue.unblock(&work("a", "1"));
    assert_eq!(drain(&mut queue, ZERO), ["b/1", "a/1", "a/3"]);
}

#[test]
fn work_blocked_during_its_run_waits_although_it_changed_or_is_due() {
    let mut queue = queue(1);
    queue.add(ZERO, &work("a", "1"), Class::Fresh);
    let turn = queue.next(ZERO).expect("ready");
    queue.block(&turn.work);
    queue.add(ZERO, &turn.work, Class::Fresh);
    queue.done(ZERO, 1.0, &turn.work, Outcome::Settled);
    queue.block(&work("a", "2"));
    queue.add_after(ZERO, &work("a", "2"), MS);
    assert_eq!(queue.next(LATE), None);
    assert_eq!(queue.stats(LATE).blocked, 2);
    queue.unblock(&work("a", "2"));
    queue.unblock(&work("a", "1"));
    assert_eq!(drain(&mut queue, LATE), ["a/1", "a/2"], "the one is fresh, the other a resync");
}

#[test]
fn a_forgotten_workspace_loses_what_waits_is_delayed_blocked_or_failed() {
    let mut queue = queue(16);
    for name in ["fails", "runs", "waits", "blocked"] {
        queue.add(ZERO, &work("a", name), Class::Fresh);
    }
    queue.add(ZERO, &work("b", "1"), Class::Resync);
    queue.add_after(ZERO, &work("a", "delayed"), MS);
    queue.block(&work("a", "blocked"));
    run(&mut queue, ZERO, Outcome::Backoff);
    let running = queue.next(ZERO).expect("ready");
    queue.add(ZERO, &running.work, Class::Fresh);

    assert_eq!(queue.forget(&LogicalCluster::new("a")), 5, "fails, runs again, waits, blocked, delayed");
    assert_eq!(queue.stats(ZERO), Stats { resync: 1, in_flight: 1, workspaces: 2, ..Stats::default() });
    assert_eq!(queue.next_due(), None);

    assert_eq!(queue.done(ZERO, 1.0, &running.work, Outcome::Backoff), None, "its result means nothing");
    assert_eq!(drain(&mut queue, LATE), ["b/1"]);
    queue.add(LATE, &work("a", "fails"), Class::Fresh);
    assert_eq!(run(&mut queue, LATE, Outcome::Backoff), Some(250 * MS), "its failures are forgotten");
}

#[test]
fn a_workspace_that_comes_back_does_not_run_beside_its_old_attempt() {
    let mut queue = queue(16);
    queue.add(ZERO, &work("a", "1"), Class::Fresh);
    let old = queue.next(ZERO).expect("ready");
    queue.forget(&old.work.key.workspace);
    queue.add(ZERO, &old.work, Class::Fresh);
    assert_eq!(queue.next(ZERO), None);
    queue.done(ZERO, 1.0, &old.work, Outcome::Backoff);
    assert_eq!(drain(&mut queue, ZERO), ["a/1"]);
}

#[test]
fn a_result_of_work_that_is_not_in_flight_is_ignored() {
    let mut queue = queue(1);
    queue.done(ZERO, 1.0, &work("a", "1"), Outcome::Backoff);
    queue.add(ZERO, &work("a", "2"), Class::Fresh);
    queue.done(ZERO, 1.0, &work("a", "2"), Outcome::Backoff);
    assert_eq!(queue.stats(ZERO), Stats { fresh: 1, workspaces: 1, oldest_fresh: Some(ZERO), ..Stats::default() });
}

#[test]
fn the_wait_of_work_and_of_the_oldest_is_known() {
    let mut queue = queue(1);
    queue.add(MS, &work("a", "1"), Class::Resync);
    queue.add(3 * MS, &work("a", "1"), Class::Fresh);
    queue.add(4 * MS, &work("b", "1"), Class::Fresh);
    assert_eq!(queue.stats(9 * MS).oldest_fresh, Some(6 * MS));
    assert_eq!(queue.next(9 * MS).map(|turn| turn.waited), Some(6 * MS));
    assert_eq!(queue.stats(9 * MS).oldest_fresh, Some(5 * MS));
}

#[test]
fn a_hundred_thousand_keys_drain_completely() {
    let mut queue = queue(16);
    for index in 0..100_000 {
        let class = if index % 3 == 0 { Class::Fresh } else { Class::Resync };
        queue.add(ZERO, &work(&format!("w{}", index % 1000), &format!("k{index}")), class);
    }
    assert_eq!(drain(&mut queue, ZERO).len(), 100_000);
    assert_eq!(queue.stats(ZERO), Stats::default());
}
