//! Sends events: one task, a few requests at once, none of which anybody waits for.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use http::StatusCode;
use tokio::sync::mpsc;
use tracing::debug;

use crate::reconciler::{Answer, Failure, Verb};
use crate::runtime::clock::Clock;
use crate::runtime::rest;
use crate::runtime::shell::Outside;
use crate::runtime::telemetry::Metrics;
use crate::runtime::transport::{Ask, Transport};

use super::ledger::{Due, End, Key, Ledger, Standing};
use super::{QUEUE, Recorder, Slip};

/// For one request, its wait for its turn included. Short, since where requests go one at a time ([`Options::requests`](crate::runtime::Options))
/// it is for how long an event can keep others waiting.
const REQUEST: Duration = Duration::from_secs(5);
/// Requests under way at once: a server that is slow to one workspace keeps the events of few others waiting.
const FLIGHTS: usize = 4;
/// The wait where nothing is to be sent.
const FAR: Duration = Duration::from_hours(1);

/// The place where calls leave events, and what sends them; it ends some time after the last recorder did, having sent what was due by then.
pub(in crate::runtime) fn start(outside: &Outside) -> (Recorder, impl Future<Output = ()> + Send + 'static) {
    let (slips, inbox) = mpsc::channel(QUEUE);
    let Outside { transport, metrics, clock, .. } = outside.clone();
    let recorder = Recorder { slips: Some(slips), metrics: metrics.clone(), endpoint: Arc::default() };
    (recorder, send(inbox, Way { transport, metrics }, clock))
}

#[derive(Clone)]
struct Way {
    transport: Arc<Transport>,
    metrics: Arc<Metrics>,
}

async fn send(mut inbox: mpsc::Receiver<Slip>, way: Way, clock: Clock) {
    let mut ledger = Ledger::default();
    let mut flights: FuturesUnordered<BoxFuture<'static, (Key, End)>> = FuturesUnordered::new();
    let mut open = true;
    loop {
        while flights.len() < FLIGHTS
            && let Some(due) = ledger.next(clock.now())
        {
            let way = way.clone();
            flights.push(Box::pin(async move {
                let end = way.deliver(&due).await;
                (due.key, end)
            }));
        }
        if !open && flights.is_empty() {
            return;
        }
        let far = clock.now() + FAR;
        let wake = clock.start() + ledger.wake_at().unwrap_or(far).min(far);
        tokio::select! {
            biased;
            Some((key, end)) = flights.next(), if !flights.is_empty() => {
                way.metrics.told(word(end));
                let first = ledger.done(clock.now(), &key, end);
                if first {
                    debug!(workspace = %key.workspace(), ?end, "events are not taken here; nothing else depends on them");
                }
            }
            slip = inbox.recv(), if open => match slip {
                Some(Slip::Left(workspace)) => ledger.forget(&workspace),
                Some(Slip::Note(note)) => {
                    for _ in 0..ledger.note(clock.moment(), *note) {
                        way.metrics.told("dropped");
                    }
                }
                None => open = false,
            },
            () = tokio::time::sleep_until(wake), if open && flights.len() < FLIGHTS => {}
        }
    }
}

const fn word(end: End) -> &'static str {
    match end {
        End::Told { .. } | End::Hidden => "told",
        End::Refused => "refused",
        End::Failed | End::Missed => "failed",
    }
}

impl Way {
    /// Makes the event, or goes on with the one that is there.
    async fn deliver(&self, due: &Due) -> End {
        let Due { standing, endpoint, letter, key } = due;
        let base = rest::scoped(endpoint, Some(key.workspace()));
        let told = |answer: Result<u64, Failure>, before| answer.map_or_else(|failure| ended(&failure), |_| End::Told { before });
        let create = || self.ask("create an event", due, letter.create(&base));
        let patch = |count| self.ask("patch an event", due, letter.patch(&base, count));
        match standing {
            Standing::Hidden => self.follow(due, &base).await,
            Standing::Known => match patch(Some(letter.count)).await {
                // The server keeps events for an hour; or it is there, and hidden.
                Err(Failure::NotFound) => match create().await {
                    Err(Failure::AlreadyExists) => self.follow(due, &base).await,
                    answer => told(answer, 0),
                },
                answer => told(answer, 0),
            },
            Standing::New | Standing::Asked => match create().await {
                // What we have asked for ourselves is ours alone; what an earlier process had counted is in the answer.
                Err(Failure::AlreadyExists) => match patch((*standing == Standing::Asked).then_some(letter.count)).await {
                    Ok(before) if *standing == Standing::New => told(patch(Some(letter.count.saturating_add(before))).await, before),
                    Err(Failure::NotFound) => self.follow(due, &base).await,
                    answer => told(answer, 0),
                },
                answer => told(answer, 0),
            },
        }
    }

    /// Tells what is new beside an event that is there and hidden.
    async fn follow(&self, due: &Due, base: &str) -> End {
        match self.ask("create an event", due, due.letter.follow(base)).await {
            // It was made before, and its answer was lost.
            Ok(_) | Err(Failure::AlreadyExists) => End::Hidden,
            Err(failure) => ended(&failure),
        }
    }

    /// Sends one request; the count that the answer shows.
    async fn ask(&self, verb: &'static str, due: &Due, ask: Ask) -> Result<u64, Failure> {
        let reply = self.metrics.request(verb, self.transport.send(&ask, REQUEST).await).map_err(Failure::Transport)?;
        // Of the answer only the code and the count matter, as those of any write.
        match rest::answer(&due.letter.name(), &Verb::Get, reply.status, &reply.body)? {
            Answer::Object(event) => Ok(event["count"].as_u64().unwrap_or_default()),
            Answer::Gone => Err(Failure::Server(StatusCode::OK.as_u16(), "the answer holds no object".into())),
        }
    }
}

fn ended(failure: &Failure) -> End {
    match failure {
        Failure::Transport(_) | Failure::Undecodable(_) => End::Failed,
        Failure::Server(code, _) if *code >= 500 => End::Failed,
        Failure::NotFound | Failure::AlreadyExists | Failure::Conflict(_) => End::Missed,
        _ => End::Refused,
    }
}
