//! Pure: the watcher as a state machine; the requests, the clock and the dice are outside.

use std::fmt;
use std::mem;
use std::time::Duration;

use crate::mutants::{Mutant, mutated};

use super::state::{Partial, Pause, Request, State, is_older};
use super::types::{Answer, Ending, Failure, Frame, Health, Input, Output, Page, Settings};

/// The watcher of one kind on one endpoint, over objects `T` of which it knows nothing.
///
/// At most one request is open at a time. The shell sends the requests among the outputs, hands back what they answer, and gives
/// [`Input::Elapsed`] when [`wake_at`](Self::wake_at) has come, the first time for a machine that was just made.
#[derive(Debug)]
pub struct Machine<T> {
    settings: Settings,
    state: State<T>,
    /// The number of the last request; answers to any other are late.
    attempt: u64,
    /// Where a watch may start. Absent until a list is complete, and again when that history is over.
    resume: Option<String>,
    /// Failures since the stream was last good, the one figure that paces every retry.
    failures: u32,
    health: Health,
    /// Whether a reset was given: from then on there is a cache to keep.
    listed: bool,
    /// Whether the first answer about what there is was had, be it that nothing is served.
    settled: bool,
    throttled_since: Option<Duration>,
    nudged_until: Duration,
    last_list: Option<Duration>,
    /// When a list is due that somebody asked for.
    refresh_at: Option<Duration>,
}

/// One call of [`Machine::step`]: what came with it and what comes of it.
struct Turn<T> {
    now: Duration,
    jitter: f64,
    out: Vec<Output<T>>,
}

impl<T> Machine<T> {
    /// A machine that lists at the first [`Input::Elapsed`].
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            state: State::Waiting { until: Duration::ZERO, next: Request::default(), pause: Pause::Paced },
            attempt: 0,
            resume: None,
            failures: 0,
            health: Health::Syncing,
            listed: false,
            settled: false,
            throttled_since: None,
            nudged_until: Duration::ZERO,
            last_list: None,
            refresh_at: None,
        }
    }

    /// Takes one input at `now` (monotonic, since any fixed moment) with `jitter` drawn from 0..1, and says what to do, in order.
    ///
    /// Total: an input that has no meaning in the present state, such as the answer to an aborted request, gives nothing.
    pub fn step(&mut self, now: Duration, jitter: f64, input: Input<T>) -> Vec<Output<T>> {
        let mut turn = Turn { now, jitter: jitter.clamp(0.0, 1.0), out: Vec::new() };
        match input {
            Input::Elapsed if now >= self.wake_at() => self.elapsed(&mut turn),
            Input::Nudge => self.nudge(&mut turn),
            Input::Refresh => self.refresh(&mut turn),
            Input::Answer { attempt, answer } if attempt == self.attempt => self.answer(&mut turn, answer),
            Input::Elapsed | Input::Answer { .. } => {}
        }
        turn.out
    }

    /// When the next [`Input::Elapsed`] is due, on the clock of `step`; read it again after every step.
    pub fn wake_at(&self) -> Duration {
        let or_refresh = |at: Duration| self.refresh_at.map_or(at, |refresh| refresh.min(at));
        match &self.state {
            State::Waiting { until, pause: Pause::Throttled, .. } => *until,
            State::Waiting { until, pause: Pause::Paced | Pause::Backoff | Pause::NotServed, .. } => or_refresh(*until),
            State::Listing { deadline, .. } => *deadline,
            State::Watching { deadline, .. } => or_refresh(*deadline),
        }
    }

    /// How the stream is now.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Whether it is known what there is, though perhaps no longer freshly: a list was complete or the kind is not served, and
    /// nothing is refused at present.
    pub fn is_synced(&self) -> bool {
        self.settled && !matches!(self.health, Health::Forbidden { .. })
    }

    // ---- inputs from this side ----

    fn elapsed(&mut self, turn: &mut Turn<T>) {
        let refresh = self.refresh_is_due(turn.now);
        match &mut self.state {
            State::Listing { deadline, .. } if mutated(Mutant::NoListDeadline) => *deadline = Duration::MAX,
            State::Waiting { .. } if refresh => self.list(turn, Partial::default()),
            State::Waiting { next, .. } => {
                let next = mem::take(next);
                self.begin(turn, next);
            }
            State::Listing { .. } => {
                turn.out.push(Output::Abort);
                let what = format!("LIST: no page within {:?}", self.settings.list_deadline);
                self.back_off(turn, Request::default(), Health::Broken { what });
            }
            State::Watching { .. } if refresh => {
                turn.out.push(Output::Abort);
                self.list(turn, Partial::default());
            }
            State::Watching { opened: None, .. } => {
                turn.out.push(Output::Abort);
                let what = format!("WATCH: no headers within {:?}", self.settings.header_deadline);
                let next = self.watch_unless_hopeless();
                self.back_off(turn, next, Health::Broken { what });
            }
            State::Watching { opened: Some(_), deadline, .. } if mutated(Mutant::NoWatchdog) => *deadline = Duration::MAX,
            State::Watching { opened: Some(_), .. } => {
                // A list and not a watch from where we are: kcp keeps a watch open and silent over what it does not serve.
                turn.out.push(Output::Abort);
                let what = format!("WATCH: no frame within {:?}", self.settings.frame_watchdog);
                self.back_off(turn, Request::default(), Health::Broken { what });
            }
        }
    }

    fn nudge(&mut self, turn: &mut Turn<T>) {
        self.nudged_until = turn.now.saturating_add(self.settings.nudge_window);
        match self.state {
            State::Waiting { pause: Pause::NotServed, .. } => self.refresh(turn),
            State::Waiting { pause: Pause::Paced | Pause::Backoff | Pause::Throttled, .. }
            | State::Listing { .. }
            | State::Watching { .. } => {}
        }
    }

    /// Wants a list as soon as the minimum interval, a list under way and the server's `Retry-After` allow. A list under way does
    /// not do, for it may show a state before this moment.
    fn refresh(&mut self, turn: &mut Turn<T>) {
        let earliest = self.last_list.map_or(turn.now, |last| last.saturating_add(self.settings.min_watch_interval));
        self.refresh_at = Some(earliest.max(turn.now));
        if self.wake_at() <= turn.now {
            self.elapsed(turn);
        }
    }

    fn refresh_is_due(&self, now: Duration) -> bool {
        self.refresh_at.is_some_and(|at| at <= now)
    }

    // ---- answers ----

    fn answer(&mut self, turn: &mut Turn<T>, answer: Answer<T>) {
        match (&mut self.state, answer) {
            (State::Listing { list, .. }, Answer::Page(page)) => {
                let list = mem::take(list);
                self.page(turn, list, page);
            }
            (State::Listing { list, .. }, Answer::Failed(failure)) => {
                let list = mem::take(list);
                self.failed(turn, Request::List(list), failure);
            }
            (State::Watching { .. }, Answer::Opened) => self.opened(turn),
            (State::Watching { .. }, Answer::Frame(frame)) => self.frame(turn, frame),
            (State::Watching { .. }, Answer::Failed(failure)) => self.failed(turn, Request::Watch, failure),
            (State::Watching { started, .. }, Answer::Ended(Ending::Clean)) => {
                let at = started.saturating_add(self.settings.min_watch_interval);
                self.begin_at(turn, at, Request::Watch);
            }
            (State::Watching { .. }, Answer::Ended(Ending::Broken(text))) => {
                self.back_off(turn, Request::Watch, Health::Broken { what: format!("WATCH: {text}") });
            }
            // A request that is over has nothing more to say, and none answers as the other kind.
            (State::Waiting { .. }, _)
            | (State::Listing { .. }, Answer::Opened | Answer::Frame(_) | Answer::Ended(_))
            | (State::Watching { .. }, Answer::Page(_)) => {}
        }
    }

    fn page(&mut self, turn: &mut Turn<T>, mut list: Partial<T>, page: Page<T>) {
        let Some(resource_version) = page.resource_version.filter(|version| !version.is_empty()) else {
            return self.not_served(turn);
        };
        list.resource_version.get_or_insert(resource_version);
        list.items.extend(page.items);
        list.pages += 1;
        match page.cont.filter(|cont| !cont.is_empty()) {
            Some(_) if list.pages >= self.settings.max_pages => {
                let what = format!("LIST: more than {} pages of {}", self.settings.max_pages, self.settings.page_size);
                self.back_off(turn, Request::default(), Health::Broken { what });
            }
            cont @ Some(_) if cont == list.cont => {
                let what = format!("LIST: page {} has the continue token of the page before", list.pages);
                self.back_off(turn, Request::default(), Health::Broken { what });
            }
            cont @ Some(_) => self.list(turn, Partial { cont, ..list }),
            None => self.complete(turn, list),
        }
    }

    fn complete(&mut self, turn: &mut Turn<T>, list: Partial<T>) {
        self.listed = true;
        self.settled = true;
        self.throttled_since = None;
        self.resume.clone_from(&list.resource_version);
        turn.out.push(Output::Reset { items: list.items, resource_version: list.resource_version.unwrap_or_default() });
        self.begin(turn, if self.refresh_is_due(turn.now) { Request::default() } else { Request::Watch });
    }

    fn opened(&mut self, turn: &mut Turn<T>) {
        if let State::Watching { opened: opened @ None, deadline, .. } = &mut self.state {
            *opened = Some(turn.now);
            *deadline = turn.now.saturating_add(self.settings.frame_watchdog);
            self.throttled_since = None;
            self.set_health(turn, Health::Live);
        }
    }

    fn frame(&mut self, turn: &mut Turn<T>, frame: Frame<T>) {
        match frame {
            Frame::Upsert(object, version) => self.good_frame(turn, &version, Output::Upsert(object)),
            Frame::Deleted(object, version) => self.good_frame(turn, &version, Output::Delete(object)),
            Frame::Bookmark(version) => {
                let progress = Output::Progress(version.clone());
                self.good_frame(turn, &version, progress);
            }
            Frame::Error { code: 410, .. } if mutated(Mutant::IgnoreGone) => {
                turn.out.push(Output::Abort);
                self.back_off(turn, Request::Watch, Health::Live);
            }
            Frame::Error { code: 410, message } => self.history_is_over(turn, &message, Duration::ZERO),
            Frame::Error { code: 500, message } => self.history_is_over(turn, &message, self.settings.roll_spread),
            Frame::Error { code, message } => {
                turn.out.push(Output::Abort);
                let what = format!("WATCH: error event {code}: {message}");
                self.back_off(turn, Request::default(), Health::Broken { what });
            }
            Frame::Garbled(text) => {
                turn.out.push(Output::Abort);
                self.back_off(turn, Request::default(), Health::Broken { what: format!("WATCH: unreadable event: {text}") });
            }
        }
    }

    fn good_frame(&mut self, turn: &mut Turn<T>, version: &str, output: Output<T>) {
        if self.resume.as_deref().is_some_and(|seen| is_older(version, seen)) {
            // History does not run backwards in one stream: the server was restored or mixes streams up. What is true now only
            // a list can tell; to drop the frame would lose a change, to apply it might undo one.
            return self.history_is_over(turn, "an event older than one before it", Duration::ZERO);
        }
        self.opened(turn);
        if let State::Watching { opened: Some(opened), deadline, .. } = &mut self.state {
            *deadline = turn.now.saturating_add(self.settings.frame_watchdog);
            if turn.now.saturating_sub(*opened) >= self.settings.reset_after {
                self.failures = 0;
            }
        }
        if !version.is_empty() {
            self.resume = Some(version.to_owned());
        }
        turn.out.push(output);
    }

    /// An open watch cannot go on from where it is.
    fn history_is_over(&mut self, turn: &mut Turn<T>, what: &str, spread: Duration) {
        turn.out.push(Output::Abort);
        self.relist(turn, format!("WATCH: {what}"), spread);
    }

    // ---- failures ----

    fn failed(&mut self, turn: &mut Turn<T>, request: Request<T>, failure: Failure) {
        let what = |text: fmt::Arguments<'_>| format!("{request}: {text}");
        match failure {
            Failure::NotServed => self.not_served(turn),
            Failure::Gone => {
                let what = what(format_args!("the resourceVersion or continue token expired"));
                self.relist(turn, what, Duration::ZERO);
            }
            Failure::Throttled { after } => self.throttled(turn, request, after),
            Failure::Forbidden(text) => {
                let what = what(format_args!("{text}"));
                self.back_off(turn, request.afresh(), Health::Forbidden { what });
            }
            Failure::Unauthorized => {
                let what = what(format_args!("the credentials were refused (401)"));
                self.back_off(turn, request.afresh(), Health::Broken { what });
            }
            Failure::Transport(text) => {
                let what = what(format_args!("{text}"));
                self.back_off(turn, request.afresh(), Health::Broken { what });
            }
            Failure::Server { code, message } => {
                let what = what(format_args!("answered {code}: {message}"));
                let next = match request {
                    Request::List(_) => Request::default(),
                    Request::Watch => self.watch_unless_hopeless(),
                };
                self.back_off(turn, next, Health::Broken { what });
            }
        }
    }

    /// A watch that is refused again and again may be refused for its resourceVersion. A dropped connection is not such a sign:
    /// after an outage every stream would list at once.
    fn watch_unless_hopeless(&self) -> Request<T> {
        if self.failures >= self.settings.watch_retries { Request::default() } else { Request::Watch }
    }

    fn not_served(&mut self, turn: &mut Turn<T>) {
        self.failures = 0;
        self.throttled_since = None;
        self.resume = None;
        self.settled = true;
        if self.listed && mutated(Mutant::NotServedIsEmpty) {
            turn.out.push(Output::Reset { items: Vec::new(), resource_version: String::new() });
        }
        self.set_health(turn, if self.listed { Health::NotServed } else { Health::SyncedEmpty });
        let nudged = turn.now < self.nudged_until;
        let poll = if nudged { self.settings.not_served_poll } else { self.settings.quiet_poll };
        self.wait(turn.now, poll + poll.mul_f64(turn.jitter / 10.0), Request::default(), Pause::NotServed);
    }

    fn throttled(&mut self, turn: &mut Turn<T>, request: Request<T>, after: Option<Duration>) {
        let since = *self.throttled_since.get_or_insert(turn.now);
        if turn.now.saturating_sub(since) >= self.settings.throttle_patience {
            self.set_health(
                turn,
                Health::Broken { what: format!("{request}: throttled (429) for more than {:?}", self.settings.throttle_patience) },
            );
        }
        // The pages that are here are kept: a long list must be able to end on a server that throttles now and then.
        let after = after.unwrap_or(Duration::from_secs(1)).min(self.settings.throttle_max).max(self.settings.backoff_min);
        self.wait(turn.now, after + self.settings.backoff_min.mul_f64(turn.jitter), request, Pause::Throttled);
    }

    /// Lists anew: the first time at once (spread by jitter) and with health as it was, for servers forget history every few
    /// minutes; if it happens again before the stream was good for a while, like any failure.
    fn relist(&mut self, turn: &mut Turn<T>, what: String, spread: Duration) {
        self.resume = None;
        if self.failures == 0 {
            self.failures = 1;
            self.begin_at(turn, turn.now.saturating_add(spread.mul_f64(turn.jitter)), Request::default());
        } else {
            self.back_off(turn, Request::default(), Health::Broken { what });
        }
    }

    fn back_off(&mut self, turn: &mut Turn<T>, next: Request<T>, health: Health) {
        let factor = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let full = self.settings.backoff_min.saturating_mul(factor).min(self.settings.backoff_max);
        self.failures = self.failures.saturating_add(1);
        self.throttled_since = None;
        self.set_health(turn, health);
        self.wait(turn.now, full.mul_f64(f64::midpoint(1.0, turn.jitter)), next, Pause::Backoff);
    }

    // ---- what happens next ----

    fn begin_at(&mut self, turn: &mut Turn<T>, at: Duration, next: Request<T>) {
        if at <= turn.now {
            self.begin(turn, next);
        } else {
            self.state = State::Waiting { until: at, next, pause: Pause::Paced };
        }
    }

    fn wait(&mut self, now: Duration, wait: Duration, next: Request<T>, pause: Pause) {
        self.state = State::Waiting { until: now.saturating_add(wait), next, pause };
    }

    fn begin(&mut self, turn: &mut Turn<T>, next: Request<T>) {
        match (next, self.resume.clone()) {
            (Request::List(list), _) => self.list(turn, list),
            (Request::Watch, None) => self.list(turn, Partial::default()),
            (Request::Watch, Some(resource_version)) => {
                self.attempt += 1;
                let deadline = turn.now.saturating_add(self.settings.header_deadline);
                self.state = State::Watching { started: turn.now, opened: None, deadline };
                turn.out.push(Output::Watch { attempt: self.attempt, resource_version });
            }
        }
    }

    fn list(&mut self, turn: &mut Turn<T>, list: Partial<T>) {
        if list.pages == 0 {
            self.last_list = Some(turn.now);
            self.refresh_at = None;
        }
        self.attempt += 1;
        turn.out.push(Output::List { attempt: self.attempt, cont: list.cont.clone(), limit: self.settings.page_size });
        self.state = State::Listing { deadline: turn.now.saturating_add(self.settings.list_deadline), list };
    }

    fn set_health(&mut self, turn: &mut Turn<T>, health: Health) {
        if self.health != health {
            self.health = health.clone();
            turn.out.push(Output::Health(health));
        }
    }
}
