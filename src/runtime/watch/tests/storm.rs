//! Requests per minute, whatever the server does.

use proptest::prelude::*;

use super::*;

/// What a constant server does to a list and to a watch.
struct Constant {
    list: Answer<u32>,
    watch: Vec<Answer<u32>>,
}

fn failing(failure: &Failure) -> Constant {
    Constant { list: Answer::Failed(failure.clone()), watch: vec![] }
}

fn watching(watch: Vec<Answer<u32>>) -> Constant {
    Constant { list: complete(&[1]), watch }
}

/// The requests in the first virtual minute, answered at once, with the jitter that waits least.
fn requests_in_a_minute(server: &Constant, each_second: Option<fn() -> Input<u32>>) -> usize {
    let mut drive = Drive::listing();
    let mut requests = 1;
    let mut answers = vec![server.list.clone()];
    let mut tick = SECOND;
    loop {
        let outputs = if answers.is_empty() {
            let wake = drive.machine.wake_at();
            let (at, input) = match each_second {
                Some(input) if tick < wake => (tick, input()),
                _ => (wake, Input::Elapsed),
            };
            if at == tick {
                tick += SECOND;
            }
            drive.now = at;
            drive.step(input)
        } else {
            let answer = answers.remove(0);
            drive.answer(answer)
        };
        if drive.now >= 60 * SECOND {
            return requests;
        }
        for output in outputs {
            match output {
                Output::List { .. } => answers = vec![server.list.clone()],
                Output::Watch { .. } => answers.clone_from(&server.watch),
                _ => continue,
            }
            requests += 1;
            assert!(requests < 1000, "a storm");
        }
    }
}

#[test]
fn no_constant_failure_becomes_a_storm() {
    let gone = Failure::Gone;
    let throttled = |after| Failure::Throttled { after };
    let ended = |ending| watching(vec![Answer::Opened, Answer::Ended(ending)]);
    let event = |frame| watching(vec![Answer::Opened, Answer::Frame(frame)]);
    let refused = |failure| watching(vec![Answer::Failed(failure)]);
    // Waits of 0.25, 0.5, 1, 2, 4, 8, 15, 15 and 15 s make 9 requests; a list that succeeds before each failure doubles it.
    let cases = [
        ("list: connection refused", failing(&Failure::Transport("refused".into())), 9),
        ("list: 5xx", failing(&server(503)), 9),
        ("list: 401", failing(&Failure::Unauthorized), 9),
        ("list: 403", failing(&Failure::Forbidden("no".into())), 9),
        ("list: 410, the second at once", failing(&gone), 9),
        ("list: 404, each 30 s", failing(&Failure::NotServed), 2),
        ("list: no version", Constant { list: page(&[], "", ""), watch: vec![] }, 2),
        ("list: 429 without Retry-After, each second", failing(&throttled(None)), 60),
        ("list: 429 with Retry-After 0, each half second", failing(&throttled(Some(Duration::ZERO))), 120),
        ("list: the same page for ever", Constant { list: page(&[1], "10", "same"), watch: vec![] }, 18),
        ("watch: never a header", watching(vec![]), 3),
        ("watch: closed cleanly at once, each second", ended(Ending::Clean), 61),
        ("watch: dropped at once, and only the first time listed", ended(Ending::Broken("reset".into())), 10),
        ("watch: connection refused", refused(Failure::Transport("refused".into())), 10),
        ("watch: 5xx, listed after the fifth", refused(server(500)), 14),
        ("watch: 403", refused(Failure::Forbidden("no".into())), 10),
        ("watch: 404, each 30 s a list", refused(Failure::NotServed), 4),
        ("watch: 410 by status", refused(gone), 18),
        ("watch: 410 by event", event(error(410)), 18),
        ("watch: 500 by event", event(error(500)), 18),
        ("watch: 503 by event", event(error(503)), 18),
        ("watch: garbage", event(Frame::Garbled("?".into())), 18),
        ("watch: history backwards", event(Frame::Upsert(1, "3".into())), 18),
    ];
    for (why, server, requests) in cases {
        assert_eq!(requests_in_a_minute(&server, None), requests, "{why}");
    }
}

#[test]
fn impatient_callers_do_not_make_a_storm() {
    let refresh = || Input::Refresh;
    let nudge = || Input::Nudge;
    let refused = failing(&Failure::Transport("refused".into()));
    assert_eq!(requests_in_a_minute(&failing(&Failure::NotServed), Some(nudge)), 60, "a poll each second");
    assert_eq!(requests_in_a_minute(&refused, Some(nudge)), 9, "a nudge knows nothing of connections");
    assert_eq!(requests_in_a_minute(&refused, Some(refresh)), 62, "two quick retries, then a list each second");
    assert_eq!(requests_in_a_minute(&watching(vec![Answer::Opened]), Some(refresh)), 120, "a list and a watch each second");
}

fn any_answer() -> impl Strategy<Value = Answer<u32>> {
    prop_oneof![
        Just(complete(&[1])),
        Just(page(&[1], "", "")),
        Just(Answer::Opened),
        Just(Answer::Ended(Ending::Clean)),
        Just(Answer::Ended(Ending::Broken("reset".into()))),
        Just(Answer::Failed(Failure::NotServed)),
        Just(Answer::Failed(Failure::Gone)),
        Just(Answer::Failed(Failure::Throttled { after: Some(Duration::ZERO) })),
        Just(Answer::Failed(Failure::Transport("refused".into()))),
        Just(Answer::Failed(server(500))),
        (0_u32..30).prop_map(|version| Answer::Frame(Frame::Upsert(1, version.to_string()))),
        prop_oneof![Just(410), Just(500), Just(503)].prop_map(|code| Answer::Frame(error(code))),
    ]
}

proptest! {
    /// A server that answers anything to anything, always at once: the only requests that may follow a request in the same
    /// moment are the watch after a list, one list after an expiry, and the watch after that.
    #[test]
    fn no_mixture_of_answers_becomes_a_storm(answers in prop::collection::vec(any_answer(), 1..400), jitter in 0.0..1.0) {
        let mut drive = Drive::listing();
        drive.jitter = jitter;
        let mut moments = vec![drive.now];
        for answer in answers {
            let mut outputs = drive.answer(answer);
            if outputs.iter().all(|output| !matches!(output, Output::List { .. } | Output::Watch { .. })) {
                drive.now = drive.machine.wake_at().max(drive.now);
                outputs.extend(drive.step(Input::Elapsed));
            }
            let requests = outputs.iter().filter(|output| matches!(output, Output::List { .. } | Output::Watch { .. })).count();
            moments.extend(std::iter::repeat_n(drive.now, requests));
        }
        for (at, moment) in moments.iter().enumerate() {
            let minute = moments[at..].iter().take_while(|later| **later < *moment + 60 * SECOND).count();
            prop_assert!(minute <= 130, "{minute} requests in the minute from {moment:?}");
            let second = moments[at..].iter().take_while(|later| **later < *moment + SECOND).count();
            prop_assert!(second <= 12, "{second} requests in the second from {moment:?}");
        }
    }
}
