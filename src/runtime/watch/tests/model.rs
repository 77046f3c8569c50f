//! A model of a server, and a world in which it and a machine meet.

use std::collections::BTreeMap;

use super::*;

/// An object: its key and the resourceVersion that made it so.
pub(super) type Object = (u8, u64);
pub(super) type Objects = BTreeMap<u8, u64>;

/// How the server treats the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serving {
    Served,
    /// 404, as kcp does to 0.31.
    NotFound,
    /// An empty list without version and a watch that never says anything, as kcp's main branch does.
    SilentlyEmpty,
}

/// A versioned map with history.
pub(super) struct Server {
    /// What happened at each version from 1 on: a key written (`true`) or deleted.
    history: Vec<(u8, bool)>,
    /// Versions below this are forgotten.
    compacted: u64,
    pub(super) serving: Serving,
}

impl Server {
    fn version(&self) -> u64 {
        self.history.len() as u64
    }

    /// What there was at a version; the test remembers what the server has compacted.
    pub(super) fn at(&self, version: u64) -> Objects {
        let mut objects = Objects::new();
        for (version, (key, written)) in (1..=version).zip(&self.history) {
            if *written {
                objects.insert(*key, version);
            } else {
                objects.remove(key);
            }
        }
        objects
    }

    pub(super) fn now(&self) -> Objects {
        self.at(self.version())
    }

    pub(super) fn write(&mut self, key: u8) {
        self.history.push((key, true));
    }

    pub(super) fn delete(&mut self, key: u8) {
        if self.now().contains_key(&key) {
            self.history.push((key, false));
        }
    }

    pub(super) fn compact(&mut self) {
        self.compacted = self.version();
    }

    fn frame(&self, version: u64) -> Option<Frame<Object>> {
        let index = usize::try_from(version.checked_sub(1)?).ok()?;
        let (key, written) = *self.history.get(index)?;
        let (object, text) = ((key, version), version.to_string());
        Some(if written { Frame::Upsert(object, text) } else { Frame::Deleted(object, text) })
    }

    /// A page of at most `limit` objects; the token names the snapshot and the last key of the page before.
    fn page(&self, cont: Option<&str>, limit: u32) -> Answer<Object> {
        match self.serving {
            Serving::Served => {}
            Serving::NotFound => return Answer::Failed(Failure::NotServed),
            Serving::SilentlyEmpty => return Answer::Page(Page { items: vec![], resource_version: Some(String::new()), cont: None }),
        }
        let (snapshot, after) = match cont.and_then(|cont| cont.split_once(':')) {
            Some((snapshot, key)) => (snapshot.parse().unwrap(), Some(key.parse::<u8>().unwrap())),
            None => (self.version(), None),
        };
        if snapshot < self.compacted {
            return Answer::Failed(Failure::Gone);
        }
        let mut rest = self.at(snapshot).into_iter().filter(|(key, _)| after.is_none_or(|after| *key > after));
        let items: Vec<Object> = rest.by_ref().take(limit as usize).collect();
        let cont = rest.next().and(items.last()).map(|(key, _)| format!("{snapshot}:{key}"));
        Answer::Page(Page { items, resource_version: Some(snapshot.to_string()), cont })
    }
}

/// The request that the machine has open.
#[derive(Clone, Debug)]
enum Open {
    List { cont: Option<String>, limit: u32 },
    Watch { seen: u64, opened: bool },
}

/// What the way to the server, or the server, does with the open request.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    Fail(Failure),
    End(Ending),
    ErrorEvent(u16),
    Garbage,
    /// An event that was sent long ago, once more.
    Replay(u64),
    /// Nothing is ever answered.
    Hang,
}

/// A machine, a server, the consumer of the machine's outputs, and virtual time.
pub(super) struct World {
    pub(super) machine: Machine<Object>,
    pub(super) server: Server,
    pub(super) consumer: Objects,
    /// The version that the consumer shows.
    pub(super) shown: u64,
    pub(super) now: Duration,
    pub(super) jitter: f64,
    pub(super) resets: usize,
    open: Option<(u64, Open)>,
    hung: bool,
}

impl World {
    pub(super) fn new(jitter: f64) -> Self {
        let settings = Settings { page_size: 2, ..Settings::default() };
        Self {
            machine: Machine::new(settings),
            server: Server { history: vec![(0, true)], compacted: 0, serving: Serving::NotFound },
            consumer: Objects::new(),
            shown: 0,
            now: Duration::ZERO,
            jitter,
            resets: 0,
            open: None,
            hung: false,
        }
    }

    pub(super) fn step(&mut self, input: Input<Object>) {
        for output in self.machine.step(self.now, self.jitter, input) {
            match output {
                Output::List { attempt, cont, limit } => self.request(attempt, Open::List { cont, limit }),
                Output::Watch { attempt, resource_version } => {
                    self.request(attempt, Open::Watch { seen: resource_version.parse().unwrap(), opened: false });
                }
                Output::Abort => assert!(self.open.take().is_some(), "an abort without a request"),
                Output::Reset { items, resource_version } => {
                    self.shown = resource_version.parse().expect("a reset has a version");
                    self.consumer = items.into_iter().collect();
                    self.resets += 1;
                }
                Output::Upsert((key, version)) => {
                    self.consumer.insert(key, version);
                    self.shown = version;
                }
                Output::Delete((key, version)) => {
                    self.consumer.remove(&key);
                    self.shown = version;
                }
                Output::Progress(version) => self.shown = version.parse().unwrap(),
                Output::Health(health) => assert_eq!(&health, self.machine.health(), "health is told as it is at the end of a step"),
            }
        }
        assert_eq!(self.consumer, self.server.at(self.shown), "the consumer shows a state that the server had at {}", self.shown);
    }

    fn request(&mut self, attempt: u64, open: Open) {
        assert!(self.open.is_none(), "two requests at once");
        self.open = Some((attempt, open));
        self.hung = false;
    }

    /// Hands an answer to the machine; what ends a request ends it here too.
    fn answer(&mut self, attempt: u64, answer: Answer<Object>) {
        if !matches!(answer, Answer::Opened | Answer::Frame(_)) {
            self.open = None;
        }
        self.step(Input::Answer { attempt, answer });
    }

    /// Lets the server say the next thing it has to say; false if it has nothing to say.
    pub(super) fn serve(&mut self) -> bool {
        let Some((attempt, open)) = self.open.clone().filter(|_| !self.hung) else { return false };
        let answer = match open {
            Open::List { cont, limit } => self.server.page(cont.as_deref(), limit),
            Open::Watch { opened: false, .. } if self.server.serving == Serving::NotFound => Answer::Failed(Failure::NotServed),
            Open::Watch { opened: false, seen } => {
                self.hung = self.server.serving == Serving::SilentlyEmpty;
                self.open = Some((attempt, Open::Watch { seen, opened: true }));
                Answer::Opened
            }
            Open::Watch { opened: true, seen } if seen < self.server.compacted => {
                Answer::Frame(Frame::Error { code: 410, message: String::new() })
            }
            Open::Watch { opened: true, seen } => match self.server.frame(seen + 1) {
                None => return false,
                Some(frame) => {
                    self.open = Some((attempt, Open::Watch { seen: seen + 1, opened: true }));
                    Answer::Frame(frame)
                }
            },
        };
        self.answer(attempt, answer);
        true
    }

    /// A bookmark, if a watch is open and has sent everything.
    pub(super) fn bookmark(&mut self) {
        if let Some((attempt, Open::Watch { opened: true, seen })) = self.open
            && !self.hung
            && seen == self.server.version()
        {
            self.answer(attempt, Answer::Frame(Frame::Bookmark(seen.to_string())));
        }
    }

    /// Something goes wrong with the open request, if it can go wrong in this way.
    pub(super) fn fault(&mut self, fault: Fault) {
        let Some((attempt, open)) = self.open.clone() else { return };
        let opened = matches!(open, Open::Watch { opened: true, .. });
        match fault {
            Fault::Hang => self.hung = true,
            Fault::Fail(failure) if !opened => self.answer(attempt, Answer::Failed(failure)),
            Fault::End(ending) if opened => self.answer(attempt, Answer::Ended(ending)),
            Fault::ErrorEvent(code) if opened => {
                self.answer(attempt, Answer::Frame(Frame::Error { code, message: String::new() }));
            }
            Fault::Garbage if opened => self.answer(attempt, Answer::Frame(Frame::Garbled(String::new()))),
            Fault::Replay(version) if opened && version <= self.shown => {
                if let Some(frame) = self.server.frame(version) {
                    self.answer(attempt, Answer::Frame(frame));
                }
            }
            Fault::Fail(_) | Fault::End(_) | Fault::ErrorEvent(_) | Fault::Garbage | Fault::Replay(_) => {}
        }
    }

    /// An answer to the request before the open one arrives late.
    pub(super) fn late(&mut self) {
        if let Some((attempt, _)) = self.open {
            let page = Page { items: vec![(200, 1)], resource_version: Some("1".into()), cont: None };
            self.step(Input::Answer { attempt: attempt - 1, answer: Answer::Page(page) });
            let frame = Frame::Upsert((201, 1), "1".into());
            self.step(Input::Answer { attempt: attempt - 1, answer: Answer::Frame(frame) });
        }
    }

    /// Lets time pass, with the timer going off when it is due.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.machine.wake_at() <= end {
            self.now = self.now.max(self.machine.wake_at());
            self.step(Input::Elapsed);
        }
        self.now = end;
    }
}
