//! The rules one by one.

use super::*;

fn failed(failure: Failure) -> Answer<u32> {
    Answer::Failed(failure)
}

#[test]
fn a_list_of_several_pages_is_one_reset_from_the_first_pages_version() {
    let mut drive = Drive::listing();
    assert_eq!(drive.answer(page(&[1, 2], "10", "next")), [Output::List { attempt: 2, cont: Some("next".into()), limit: 500 }]);
    assert_eq!(drive.answer(page(&[3], "12", "")), [reset(&[1, 2, 3]), watch(3, "10")]);
    assert!(drive.machine.is_synced());
}

#[test]
fn a_page_that_fails_leaves_nothing_of_the_pages_before_it() {
    let mut drive = Drive::listing();
    drive.answer(page(&[1, 2], "10", "next"));
    assert_eq!(drive.answer(failed(server(503))), [broken("LIST: answered 503: etcd")]);
    assert!(!drive.machine.is_synced());
    assert_eq!(drive.after(250 * MS), [list(3)]);
    assert_eq!(drive.answer(complete(&[7])), [reset(&[7]), watch(4, "10")]);
}

#[test]
fn a_throttled_page_is_asked_for_again_without_losing_those_before_it() {
    let mut drive = Drive::listing();
    drive.answer(page(&[1], "10", "next"));
    assert_eq!(drive.answer(failed(Failure::Throttled { after: Some(3 * SECOND) })), []);
    assert_eq!(drive.after(3 * SECOND), [Output::List { attempt: 3, cont: Some("next".into()), limit: 500 }]);
    assert_eq!(drive.answer(complete(&[2])), [reset(&[1, 2]), watch(4, "10")]);
}

#[test]
fn an_expired_continue_token_starts_the_list_once_at_once_and_then_after_a_wait() {
    let mut drive = Drive::listing();
    drive.answer(page(&[1], "10", "next"));
    assert_eq!(drive.answer(failed(Failure::Gone)), [list(3)]);
    drive.answer(page(&[1], "11", "next"));
    let what = "LIST: the resourceVersion or continue token expired";
    assert_eq!(drive.answer(failed(Failure::Gone)), [broken(what)]);
    assert_eq!(drive.after(500 * MS), [list(5)]);
}

#[test]
fn a_list_that_never_ends_is_given_up() {
    let mut drive = Drive::listing();
    for number in 1..400 {
        assert_eq!(drive.answer(page(&[], "10", &format!("{number}"))).len(), 1, "page {number}");
    }
    assert_eq!(drive.answer(page(&[], "10", "400")), [broken("LIST: more than 400 pages of 500")]);
    let mut drive = Drive::listing();
    drive.answer(page(&[1], "10", "same"));
    assert_eq!(drive.answer(page(&[1], "10", "same")), [broken("LIST: page 2 has the continue token of the page before")]);
}

#[test]
fn a_list_without_an_answer_is_aborted_at_its_deadline() {
    let mut drive = Drive::listing();
    assert_eq!(drive.after(60 * SECOND), [Output::Abort, broken("LIST: no page within 60s")]);
    assert_eq!(drive.after(250 * MS), [list(2)]);
    let late = Input::Answer { attempt: 1, answer: complete(&[9]) };
    assert_eq!(drive.step(late), [], "the late page of the aborted request is nobody's");
    assert_eq!(drive.answer(complete(&[1])), [reset(&[1]), watch(3, "10")]);
}

#[test]
fn a_watch_without_headers_is_aborted_and_tried_again_from_where_it_was() {
    let mut drive = Drive::opening();
    assert_eq!(drive.after(30 * SECOND), [Output::Abort, broken("WATCH: no headers within 30s")]);
    assert_eq!(drive.after(250 * MS), [watch(3, "10")]);
}

#[test]
fn a_silent_watch_is_aborted_and_listed_anew_and_every_frame_puts_that_off() {
    let mut drive = Drive::live();
    drive.now += 170 * SECOND;
    assert_eq!(drive.frame(Frame::Bookmark("11".into())), [Output::Progress("11".into())]);
    drive.now += 170 * SECOND;
    assert_eq!(drive.frame(Frame::Upsert(5, "12".into())), [Output::Upsert(5)]);
    assert_eq!(drive.after(180 * SECOND), [Output::Abort, broken("WATCH: no frame within 180s")]);
    assert_eq!(drive.after(250 * MS), [list(3)]);
}

#[test]
fn a_clean_close_of_an_old_watch_opens_the_next_at_once_where_it_ended() {
    let mut drive = Drive::live();
    drive.now += 5 * SECOND;
    drive.frame(Frame::Deleted(1, "14".into()));
    assert_eq!(drive.answer(Answer::Ended(Ending::Clean)), [watch(3, "14")]);
    assert_eq!(drive.machine.health(), &Health::Live, "a clean close is no failure");
}

#[test]
fn a_clean_close_of_a_young_watch_waits_for_the_minimum_interval() {
    let mut drive = Drive::live();
    drive.now += 400 * MS;
    assert_eq!(drive.answer(Answer::Ended(Ending::Clean)), []);
    assert_eq!(drive.after(600 * MS), [watch(3, "10")]);
    assert_eq!(drive.answer(failed(Failure::Transport("refused".into()))), [broken("WATCH: refused")], "now it is");
}

#[test]
fn a_broken_connection_is_told_at_once_and_watched_again_not_listed() {
    let mut drive = Drive::live();
    assert_eq!(drive.answer(Answer::Ended(Ending::Broken("reset".into()))), [broken("WATCH: reset")]);
    assert_eq!(drive.after(250 * MS), [watch(3, "10")]);
    assert_eq!(drive.answer(Answer::Opened), [Output::Health(Health::Live)]);
}

#[test]
fn an_expired_version_lists_once_at_once_however_it_is_told() {
    type Case<'a> = (&'a str, fn() -> Drive, Answer<u32>, &'a [Output<u32>]);
    let cases: [Case<'_>; 3] = [
        ("as the status of the watch, as proxies pass it on", Drive::opening, failed(Failure::Gone), &[list(3)]),
        ("as an event, as apiservers do", Drive::live, Answer::Frame(error(410)), &[Output::Abort, list(3)]),
        (
            "as an event older than what was seen: history was restored",
            Drive::live,
            Answer::Frame(Frame::Upsert(1, "9".into())),
            &[Output::Abort, list(3)],
        ),
    ];
    for (why, drive, answer, outputs) in cases {
        let mut drive = drive();
        assert_eq!(drive.answer(answer.clone()), outputs, "{why}");
        drive.answer(complete(&[]));
        let again = drive.answer(answer);
        assert!(matches!(again.last(), Some(Output::Health(Health::Broken { .. }))), "{why}: the second one waits: {again:?}");
        assert_eq!(drive.after(500 * MS), [list(5)], "{why}");
    }
}

#[test]
fn versions_are_compared_as_numbers_and_what_is_none_is_let_through() {
    let mut drive = Drive::live();
    for version in ["10", "100", "100", "", "opaque", "9"] {
        assert_eq!(drive.frame(Frame::Upsert(1, version.into())), [Output::Upsert(1)], "{version}");
    }
    assert_eq!(drive.frame(Frame::Bookmark("8".into())), [Output::Abort, list(3)], "8 < 9");
}

#[test]
fn a_schema_roll_spreads_its_list_over_the_streams_and_leaves_them_live() {
    let mut drive = Drive::live();
    drive.jitter = 0.5;
    assert_eq!(drive.frame(error(500)), [Output::Abort]);
    assert_eq!(drive.machine.health(), &Health::Live);
    assert_eq!(drive.after(SECOND), [list(3)]);
}

#[test]
fn other_error_events_and_unreadable_ones_list_after_a_wait() {
    for (frame, what) in [
        (error(503), "WATCH: error event 503: over"),
        (error(403), "WATCH: error event 403: over"),
        (Frame::Garbled("{".into()), "WATCH: unreadable event: {"),
    ] {
        let mut drive = Drive::live();
        assert_eq!(drive.frame(frame), [Output::Abort, broken(what)]);
        assert_eq!(drive.after(250 * MS), [list(3)], "{what}");
    }
}

#[test]
fn throttling_waits_as_told_and_is_neither_shown_nor_counted() {
    for (after, wait, why) in [
        (Some(7 * SECOND), 7 * SECOND, "as told"),
        (None, SECOND, "no Retry-After"),
        (Some(Duration::ZERO), 500 * MS, "zero must not become a storm"),
        (Some(3600 * SECOND), 60 * SECOND, "an hour is not believed"),
    ] {
        let mut drive = Drive::opening();
        assert_eq!(drive.answer(failed(Failure::Throttled { after })), [], "{why}");
        assert_eq!(drive.after(wait), [watch(3, "10")], "{why}");
        assert_eq!(drive.answer(failed(server(500))).len(), 1);
        assert_eq!(drive.after(250 * MS), [watch(4, "10")], "{why}: the first real failure has the first wait");
    }
}

#[test]
fn throttling_without_end_is_shown_in_the_end() {
    let mut drive = Drive::listing();
    let throttled = || failed(Failure::Throttled { after: Some(30 * SECOND) });
    assert_eq!(drive.answer(throttled()), []);
    drive.after(30 * SECOND);
    assert_eq!(drive.answer(throttled()), []);
    drive.after(30 * SECOND);
    assert_eq!(drive.answer(throttled()), [broken("LIST: throttled (429) for more than 60s")]);
}

#[test]
fn nobody_ends_the_wait_that_the_server_asked_for() {
    let mut drive = Drive::opening();
    drive.answer(failed(Failure::Throttled { after: Some(10 * SECOND) }));
    assert_eq!(drive.step(Input::Nudge), []);
    assert_eq!(drive.step(Input::Refresh), []);
    assert_eq!(drive.after(10 * SECOND), [list(3)], "but then it is the list that was wanted");
}

#[test]
fn what_is_not_served_before_the_first_sync_is_synced_and_empty_and_never_a_reset() {
    for (answer, why) in [
        (failed(Failure::NotServed), "404, kcp to 0.31"),
        (Answer::Page(Page { items: vec![], resource_version: None, cont: None }), "an empty list without version, kcp's main branch"),
        (Answer::Page(Page { items: vec![4], resource_version: Some(String::new()), cont: None }), "no version, no trust in the items"),
    ] {
        let mut drive = Drive::listing();
        assert_eq!(drive.answer(answer), [Output::Health(Health::SyncedEmpty)], "{why}");
        assert!(drive.machine.is_synced(), "{why}");
        assert_eq!(drive.after(30 * SECOND), [list(2)], "{why}");
        assert_eq!(drive.answer(complete(&[1])), [reset(&[1]), watch(3, "10")], "{why}");
        assert_eq!(drive.answer(Answer::Opened), [Output::Health(Health::Live)], "{why}");
    }
}

#[test]
fn what_is_not_served_any_more_keeps_the_cache() {
    for drive in [Drive::opening, || {
        let mut drive = Drive::live();
        drive.now += 9 * SECOND;
        drive.step(Input::Refresh);
        drive
    }] {
        let mut drive = drive();
        assert_eq!(drive.answer(failed(Failure::NotServed)), [Output::Health(Health::NotServed)]);
        assert!(drive.machine.is_synced());
        let next = drive.attempt + 1;
        assert_eq!(drive.after(30 * SECOND), [list(next)], "a list, for the history may have gone with the binding");
        assert_eq!(drive.answer(failed(Failure::NotServed)), [], "told only once");
    }
}

#[test]
fn a_nudge_polls_at_once_and_often_for_a_minute() {
    let mut drive = Drive::listing();
    drive.answer(failed(Failure::NotServed));
    drive.now += 9 * SECOND;
    assert_eq!(drive.step(Input::Nudge), [list(2)]);
    drive.answer(failed(Failure::NotServed));
    for attempt in 3..33 {
        assert_eq!(drive.after(2 * SECOND), [list(attempt)]);
        drive.answer(failed(Failure::NotServed));
    }
    assert_eq!(drive.after(30 * SECOND), [list(33)], "the nudge is forgotten");
}

#[test]
fn a_nudge_means_nothing_to_a_stream_that_is_served_or_failing() {
    let mut drive = Drive::live();
    assert_eq!(drive.step(Input::Nudge), []);
    drive.answer(Answer::Ended(Ending::Broken("reset".into())));
    assert_eq!(drive.step(Input::Nudge), []);
    assert_eq!(drive.after(250 * MS), [watch(3, "10")]);
}

#[test]
fn forbidden_is_not_synced_and_names_the_rule() {
    let mut drive = Drive::live();
    drive.answer(Answer::Ended(Ending::Broken("reset".into())));
    drive.after(250 * MS);
    let what = "WATCH: cannot watch clusters".to_owned();
    let forbidden = || failed(Failure::Forbidden("cannot watch clusters".into()));
    assert_eq!(drive.answer(forbidden()), [Output::Health(Health::Forbidden { what })]);
    assert!(!drive.machine.is_synced());
    assert_eq!(drive.after(500 * MS), [watch(4, "10")]);
    assert_eq!(drive.answer(forbidden()), [], "told only once");
    assert_eq!(drive.after(SECOND), [watch(5, "10")]);
    drive.answer(Answer::Opened);
    assert!(drive.machine.is_synced(), "somebody granted it");
}

#[test]
fn a_watch_refused_for_its_version_is_listed_in_the_end_and_one_without_connection_is_not() {
    for (failure, after_five, why) in [
        (server(504), "list", "504 \"too large resource version\" after a restore would be refused for ever"),
        (Failure::Transport("refused".into()), "watch", "after an outage all streams would list at once"),
        (Failure::Unauthorized, "watch", "credentials say nothing about the version"),
    ] {
        let mut drive = Drive::opening();
        for wait in [250, 500, 1000, 2000] {
            drive.answer(failed(failure.clone()));
            let next = drive.attempt + 1;
            assert_eq!(drive.after(wait * MS), [watch(next, "10")], "{why}");
        }
        drive.answer(failed(failure));
        let fifth = drive.after(4000 * MS);
        assert_eq!(fifth, [if after_five == "list" { list(7) } else { watch(7, "10") }], "{why}");
    }
}

#[test]
fn backoff_is_forgotten_only_after_a_minute_of_good_frames() {
    for (age, wait, why) in [(59, 500, "open a minute less a second"), (60, 250, "open a minute")] {
        let mut drive = Drive::live();
        drive.answer(Answer::Ended(Ending::Broken("reset".into())));
        drive.after(250 * MS);
        drive.answer(Answer::Opened);
        drive.now += age * SECOND;
        drive.frame(Frame::Bookmark("11".into()));
        drive.answer(Answer::Ended(Ending::Broken("reset".into())));
        assert_eq!(drive.after(wait * MS), [watch(4, "11")], "{why}");
    }
}

#[test]
fn a_refresh_of_a_live_watch_lists_and_watches_on_without_leaving_live() {
    let mut drive = Drive::live();
    drive.now += 5 * SECOND;
    assert_eq!(drive.step(Input::Refresh), [Output::Abort, list(3)]);
    let late = Input::Answer { attempt: 2, answer: Answer::Frame(Frame::Upsert(8, "12".into())) };
    assert_eq!(drive.step(late), [], "the list shows it");
    assert_eq!(drive.answer(complete(&[2])), [reset(&[2]), watch(4, "10")]);
    assert_eq!(drive.answer(Answer::Opened), [], "it never left Live");
}

#[test]
fn a_refresh_whose_list_fails_breaks_the_stream() {
    let mut drive = Drive::live();
    drive.now += 5 * SECOND;
    drive.step(Input::Refresh);
    assert_eq!(drive.answer(failed(server(500))), [broken("LIST: answered 500: etcd")]);
    assert_eq!(drive.after(250 * MS), [list(4)], "the list is still wanted");
}

#[test]
fn refreshes_in_a_burst_are_one_list() {
    let mut drive = Drive::live();
    for _ in 0..100 {
        assert_eq!(drive.step(Input::Refresh), [], "the last list is younger than a second");
    }
    assert_eq!(drive.after(SECOND), [Output::Abort, list(3)]);
}

#[test]
fn a_refresh_during_a_list_is_another_list_after_it() {
    let mut drive = Drive::listing();
    drive.now += 5 * SECOND;
    assert_eq!(drive.step(Input::Refresh), []);
    assert_eq!(drive.answer(complete(&[1])), [reset(&[1]), list(2)]);
    assert_eq!(drive.answer(complete(&[2])), [reset(&[2]), watch(3, "10")]);
}

#[test]
fn a_refresh_ends_a_backoff_and_a_poll() {
    for failure in [server(500), Failure::NotServed, Failure::Forbidden("no".into())] {
        let mut drive = Drive::listing();
        drive.now += 5 * SECOND;
        drive.answer(failed(failure.clone()));
        assert_eq!(drive.step(Input::Refresh), [list(2)], "{failure:?}");
    }
}

#[test]
fn a_request_that_is_over_has_nothing_more_to_say() {
    let mut drive = Drive::live();
    drive.answer(Answer::Ended(Ending::Broken("reset".into())));
    for answer in [Answer::Opened, Answer::Frame(Frame::Upsert(1, "11".into())), Answer::Ended(Ending::Clean), complete(&[])] {
        assert_eq!(drive.answer(answer), []);
    }
    let mut drive = Drive::listing();
    assert_eq!(drive.answer(Answer::Opened), [], "a list does not open");
    let mut drive = Drive::live();
    assert_eq!(drive.answer(complete(&[])), [], "a watch has no pages");
}
