//! What is counted, sent and given up, without a server.

use super::ledger::{Due, ENTRIES, End, INTERVAL, Ledger, NEW, Standing};
use super::*;
use crate::api::meta::Kind;
use crate::api::names::ObjectName;
use crate::api::reason::Reason;
use crate::api::tenant::KubernetesCluster;
use crate::runtime::clock::Moment;
use std::time::Duration;

const TOLD: End = End::Told { before: 0 };

fn at(seconds: u64) -> Moment {
    let mono = Duration::from_secs(seconds);
    Moment { mono, wall: jiff::Timestamp::UNIX_EPOCH + jiff::SignedDuration::try_from(mono).unwrap() }
}

fn note(workspace: &str, name: &str, message: &str) -> Note {
    let subject =
        Subject { kind: KubernetesCluster::REF, name: ObjectName::namespaced("default", name), uid: format!("{workspace}-{name}") };
    let event = Event::warning(Reason::OfferingNotFound, message);
    Note { endpoint: "https://h/services".into(), workspace: LogicalCluster::new(workspace), actor: "cluster-scheduler", subject, event }
}

/// Everything that may be sent now, one after the other, with the same end.
fn send(ledger: &mut Ledger, seconds: u64, end: End) -> Vec<Due> {
    let mut sent = Vec::new();
    while let Some(due) = ledger.next(at(seconds).mono) {
        ledger.done(at(seconds).mono, &due.key, end);
        sent.push(due);
    }
    sent
}

fn interval() -> u64 {
    INTERVAL.as_secs()
}

#[test]
fn what_happens_again_is_counted_and_sent_once_in_an_interval() {
    let mut ledger = Ledger::default();
    ledger.note(at(0), note("a", "demo", "first"));
    let [made] = <[Due; 1]>::try_from(send(&mut ledger, 0, TOLD)).unwrap();
    assert_eq!((made.standing, made.letter.count), (Standing::New, 1));
    for second in 1..=40 {
        ledger.note(at(second), note("a", "demo", &format!("message {second}")));
        assert!(send(&mut ledger, second, TOLD).is_empty(), "it is held back");
    }
    assert_eq!(ledger.wake_at(), Some(INTERVAL));
    let [patched] = <[Due; 1]>::try_from(send(&mut ledger, interval(), TOLD)).unwrap();
    assert_eq!((patched.standing, patched.letter.count, &*patched.letter.message), (Standing::Known, 41, "message 40"));
    assert_eq!((&*patched.letter.first, &*patched.letter.last), ("1970-01-01T00:00:00Z", "1970-01-01T00:00:40Z"));
    assert_eq!(ledger.wake_at(), None, "nothing is left to be said");
}

#[test]
fn what_happens_while_it_is_on_its_way_is_not_lost() {
    let mut ledger = Ledger::default();
    ledger.note(at(0), note("a", "demo", "first"));
    let due = ledger.next(at(0).mono).unwrap();
    ledger.note(at(1), note("a", "demo", "second"));
    assert_eq!(ledger.next(at(1).mono), None, "it is on its way");
    ledger.done(at(2).mono, &due.key, End::Told { before: 7 });
    let [patched] = <[Due; 1]>::try_from(send(&mut ledger, 2 + interval(), TOLD)).unwrap();
    assert_eq!((patched.letter.count, &*patched.letter.message), (9, "second"), "with what an earlier process had counted");
}

#[test]
fn what_is_not_taken_is_tried_once_more_and_given_up_until_it_happens_again() {
    for end in [End::Refused, End::Failed] {
        let mut ledger = Ledger::default();
        ledger.note(at(0), note("a", "demo", "none"));
        assert_eq!(send(&mut ledger, 0, end).len(), 1);
        assert_eq!(send(&mut ledger, interval() - 1, end).len(), 0);
        let [again] = <[Due; 1]>::try_from(send(&mut ledger, interval(), end)).unwrap();
        assert_eq!(again.standing, if end == End::Failed { Standing::Asked } else { Standing::New });
        assert_eq!(ledger.wake_at(), None);
        ledger.note(at(3 * interval()), note("a", "demo", "none"));
        assert_eq!(send(&mut ledger, 3 * interval(), TOLD)[0].letter.count, 2);
    }
}

#[test]
fn a_workspace_that_refuses_is_asked_once_in_an_interval_and_others_are_not_held_up() {
    let mut ledger = Ledger::default();
    let mut asked = Vec::new();
    for second in 0..3 * interval() {
        if second < interval() && second % 10 == 0 {
            ledger.note(at(second), note("shut", &format!("demo-{second}"), "none"));
            ledger.note(at(second), note("open", &format!("demo-{second}"), "none"));
        }
        while let Some(due) = ledger.next(at(second).mono) {
            let refuses = due.key.workspace().as_str() == "shut";
            let news = ledger.done(at(second).mono, &due.key, if refuses { End::Refused } else { TOLD });
            asked.push((refuses, second, news));
        }
    }
    assert_eq!(asked.iter().filter(|(refuses, ..)| !refuses).count(), 30);
    let refused: Vec<(u64, bool)> = asked.iter().filter(|(refuses, ..)| *refuses).map(|(_, second, news)| (*second, *news)).collect();
    assert_eq!(refused, [(0, true), (interval(), false), (2 * interval(), false)][..refused.len()], "and it is logged once");
    assert!(refused.len() >= 2);
    assert_eq!(ledger.wake_at(), None, "what it did not take is given up");
}

#[test]
fn what_is_told_beside_a_hidden_event_is_told_once() {
    let mut ledger = Ledger::default();
    for (second, end) in [(0, TOLD), (1, End::Hidden), (2, End::Hidden), (3, End::Hidden)] {
        let now = second * interval();
        for again in 0..=second {
            ledger.note(at(now + again), note("a", "demo", "none"));
        }
        let [due] = <[Due; 1]>::try_from(send(&mut ledger, now + second, end)).unwrap();
        assert_eq!((due.letter.untold, &*due.letter.since), (second + 1, &*at(now).stamp()));
        assert_eq!(due.standing == Standing::Hidden, second > 1);
    }
}

#[test]
fn an_event_that_somebody_changes_is_tried_again_and_says_nothing_of_its_workspace() {
    let mut ledger = Ledger::default();
    ledger.note(at(0), note("a", "changed", "none"));
    let due = ledger.next(at(0).mono).unwrap();
    assert!(!ledger.done(at(0).mono, &due.key, End::Missed), "that is nobody's refusal");
    ledger.note(at(1), note("a", "other", "none"));
    assert_eq!(send(&mut ledger, 1, TOLD).len(), 1);
    assert_eq!(send(&mut ledger, interval(), TOLD).len(), 1);
}

#[test]
fn one_workspace_has_one_event_on_its_way() {
    let mut ledger = Ledger::default();
    for (workspace, name) in [("a", "one"), ("a", "two"), ("b", "one")] {
        ledger.note(at(0), note(workspace, name, "none"));
    }
    let first = ledger.next(at(0).mono).unwrap();
    let second = ledger.next(at(0).mono).unwrap();
    assert_eq!([&first, &second].map(|due| due.key.workspace().as_str()), ["a", "b"]);
    assert_eq!((ledger.next(at(0).mono), ledger.wake_at()), (None, None));
    ledger.done(at(0).mono, &first.key, TOLD);
    assert_eq!(ledger.next(at(0).mono).unwrap().letter.subject.name.name.as_ref(), "two");
}

#[test]
fn a_flood_of_one_workspace_is_bounded_and_crowds_nobody_out() {
    let mut ledger = Ledger::default();
    let flood = |ledger: &mut Ledger, second| -> usize {
        (0..10_000).map(|object| ledger.note(at(second), note("greedy", &format!("demo-{second}-{object}"), "none"))).sum()
    };
    ledger.note(at(0), note("modest", "demo", "none"));
    let new = usize::try_from(NEW).unwrap();
    assert_eq!(flood(&mut ledger, 0), 10_000 - new);
    assert_eq!(ledger.len(), 1 + new);
    assert_eq!(send(&mut ledger, 0, TOLD)[0].key.workspace().as_str(), "modest", "who came first is first");
    assert_eq!(flood(&mut ledger, interval()), 10_000 - new, "as many in the next interval");
}

#[test]
fn the_events_that_are_known_are_bounded_and_the_oldest_goes() {
    let mut ledger = Ledger::default();
    ledger.note(at(0), note("w0", "old", "none"));
    assert_eq!(send(&mut ledger, 0, TOLD).len(), 1);
    let dropped: usize = (0..2 * ENTRIES).map(|tenant| ledger.note(at(1), note(&format!("w{tenant}"), "demo", "none"))).sum();
    assert_eq!((ledger.len(), dropped), (ENTRIES, ENTRIES), "all but the one that was sent were unsent");
    assert_eq!(send(&mut ledger, 1, TOLD).len(), ENTRIES);
    ledger.note(at(2), note("w0", "old", "none"));
    assert_eq!(send(&mut ledger, 2, TOLD)[0].standing, Standing::New, "it is found on the server by its name");
}

#[test]
fn a_recorder_whose_queue_is_full_drops_and_counts() {
    let (slips, mut inbox) = mpsc::channel(1);
    let recorder = Recorder { slips: Some(slips), ..Recorder::default() };
    for message in ["taken", "dropped", "dropped"] {
        let Note { workspace, actor, subject, event, .. } = note("a", "demo", message);
        recorder.record(&workspace, actor, subject, event);
    }
    let Ok(Slip::Note(taken)) = inbox.try_recv() else { panic!("the first one is taken") };
    assert_eq!(taken.event.message(), "taken");
    assert!(recorder.metrics.text().contains("kcp_provider_events_total{outcome=\"dropped\"} 2"), "{}", recorder.metrics.text());
}

#[test]
fn nothing_is_kept_of_a_workspace_that_has_unbound() {
    let mut ledger = Ledger::default();
    for name in ["x", "y", "z"] {
        ledger.note(at(0), note("a", name, "first"));
    }
    ledger.note(at(0), note("b", "demo", "first"));
    let due = ledger.next(at(0).mono).unwrap();
    ledger.done(at(0).mono, &due.key, End::Refused);
    let under_way = ledger.next(at(interval()).mono).unwrap();
    for workspace in ["a", "b"] {
        ledger.forget(&LogicalCluster::new(workspace));
    }
    assert!(!ledger.done(at(interval()).mono, &under_way.key, End::Failed), "it says nothing to anybody");
    assert!(ledger.is_empty(), "{}", ledger.len());
    ledger.note(at(interval()), note("a", "x", "again"));
    assert_eq!(send(&mut ledger, interval(), TOLD).len(), 1, "who binds again is told again");
}
