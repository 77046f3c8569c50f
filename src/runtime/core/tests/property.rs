//! Random scripts: no order of events loses a wake-up, runs one work twice at once, or gives other effects the second time.
//!
//! The scripted server has a truth and one queue of events per stream, so that every stream lags behind in its own way.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const KINDS: [KindRef; 3] = [THING, CHILD, NAME];
const PLACES: [&str; 2] = [S1, S2];

#[derive(Clone, Debug)]
enum Op {
    /// An object is made or changed.
    Change { place: usize, kind: usize, name: usize, listens: usize },
    /// An object is deleted.
    Delete { place: usize, kind: usize, name: usize },
    /// A part of the platform is made, changed or deleted.
    Part { name: usize, present: bool },
    /// A stream shows its next event.
    Deliver(usize),
    /// A stream lists anew.
    Relist(usize),
    /// A stream breaks, and its next list heals it.
    Break(usize),
    /// A call ends in one of several ways.
    End { which: usize, how: usize },
    /// Time passes, in units of 100 ms.
    Pass(u64),
    /// The second endpoint leaves the slice, or is back.
    Slice(bool),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let change =
        (0..2usize, 0..3usize, 0..2usize, 0..4usize).prop_map(|(place, kind, name, listens)| Op::Change { place, kind, name, listens });
    let delete = (0..2usize, 0..3usize, 0..2usize).prop_map(|(place, kind, name)| Op::Delete { place, kind, name });
    let op = prop_oneof![
        6 => change,
        2 => delete,
        2 => (0..2usize, any::<bool>()).prop_map(|(name, present)| Op::Part { name, present }),
        8 => (0..8usize).prop_map(Op::Deliver),
        1 => (0..8usize).prop_map(Op::Relist),
        1 => (0..8usize).prop_map(Op::Break),
        6 => (0..4usize, 0..7usize).prop_map(|(which, how)| Op::End { which, how }),
        2 => (1..150u64).prop_map(Op::Pass),
        1 => any::<bool>().prop_map(Op::Slice),
    ];
    proptest::collection::vec(op, 1..120)
}

/// The server under the heart.
struct Server {
    world: World,
    version: u64,
    truth: BTreeMap<String, BTreeMap<(String, String), Raw>>,
    events: BTreeMap<String, VecDeque<News>>,
    /// Per work, the call that began last.
    last: BTreeMap<Work, Run>,
    log: Vec<String>,
}

impl Server {
    fn new() -> Self {
        let world = World::ready(&[Fake::full(), Fake { parts: true, ..Fake::new("other") }]);
        let mut server =
            Self { world, version: 10, truth: BTreeMap::new(), events: BTreeMap::new(), last: BTreeMap::new(), log: Vec::new() };
        server.slice(&PLACES);
        server
    }

    /// Workspace `a` lives behind the first endpoint, `b` behind the second; the same names exist in both.
    fn url(place: usize, kind: usize) -> String {
        of(PLACES[place], KINDS[kind])
    }

    fn stream(&self, at: usize) -> Option<String> {
        self.world.streams.keys().filter(|url| **url != of(BASE, ENDPOINT_SLICE)).nth(at).cloned()
    }

    fn slice(&mut self, places: &[&str]) {
        let before: BTreeSet<String> = self.world.streams.keys().cloned().collect();
        self.world.slice(places);
        let opened: Vec<_> = self.world.streams.keys().filter(|url| !before.contains(*url)).cloned().collect();
        self.events.retain(|url, _| self.world.streams.contains_key(url));
        for url in opened {
            self.relist(&url);
        }
    }

    fn put(&mut self, url: &str, place: usize, name: &str, fields: Value) -> u64 {
        self.version += 1;
        let workspace = if url.starts_with(BASE) { String::new() } else { ["a", "b"][place].to_owned() };
        let at = (workspace.clone(), name.to_owned());
        let objects = self.truth.entry(url.to_owned()).or_default();
        let uid = objects.get(&at).map_or_else(|| format!("u{}", self.version), |raw| raw.uid.to_string());
        let raw = incarnation(&workspace, name, &uid, self.version, fields);
        objects.insert(at, raw.clone());
        self.tell_later(url, News::Upsert(raw));
        self.version
    }

    fn remove(&mut self, url: &str, place: usize, name: &str) {
        let workspace = if url.starts_with(BASE) { "" } else { ["a", "b"][place] };
        let Some(raw) = self.truth.entry(url.to_owned()).or_default().remove(&(workspace.to_owned(), name.to_owned())) else { return };
        self.version += 1;
        self.tell_later(url, News::Delete(Raw { resource_version: self.version.to_string().into(), ..raw }));
    }

    fn tell_later(&mut self, url: &str, news: News) {
        if self.world.streams.contains_key(url) {
            self.events.entry(url.to_owned()).or_default().push_back(news);
        }
    }

    fn deliver(&mut self, url: &str) -> bool {
        let Some(news) = self.events.get_mut(url).and_then(VecDeque::pop_front) else { return false };
        self.world.tell(url, news);
        true
    }

    fn relist(&mut self, url: &str) {
        self.events.remove(url);
        let items: Vec<Raw> = self.truth.get(url).into_iter().flat_map(BTreeMap::values).cloned().collect();
        self.world.reset(url, items);
        self.world.health(url, Health::Live);
    }

    fn end(&mut self, which: usize, how: usize) {
        let Some(work) = self.world.running.keys().nth(which).cloned() else { return };
        let place = usize::from(work.key.workspace.as_str() == "b");
        let name = work.key.name.name.to_string();
        let ended = match how {
            0 => Ended { outcome: Outcome::Backoff, ..settled() },
            1 => Ended { recheck: Some(secs(5)), ..settled() },
            2 => Ended { starved: true, ..settled() },
            3 => self.write(place, 0, &name),
            4 => self.write(place, 1, &name),
            _ => settled(),
        };
        self.world.end(&work, ended);
    }

    /// The call wrote its object, which must be there, or its child; by a write the object listens to something else.
    fn write(&mut self, place: usize, kind: usize, name: &str) -> Ended {
        let url = Self::url(place, kind);
        let at = (["a", "b"][place].to_owned(), name.to_owned());
        if kind == 0 && !self.truth.get(&url).is_some_and(|objects| objects.contains_key(&at)) {
            return settled();
        }
        let version = self.put(&url, place, name, listening(usize::from(self.version.is_multiple_of(2)) + 1));
        let uid = self.truth[&url][&at].uid.to_string();
        wrote(KINDS[kind], name, &uid, Some(version))
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Change { place, kind, name, listens } => {
                self.put(&Self::url(*place, *kind), *place, ["x", "y"][*name], listening(*listens));
            }
            Op::Delete { place, kind, name } => self.remove(&Self::url(*place, *kind), *place, ["x", "y"][*name]),
            Op::Part { name, present: true } => {
                let fields = json!({"version": self.version});
                self.put(&of(BASE, PART), 0, ["x", "y"][*name], fields);
            }
            Op::Part { name, present: false } => self.remove(&of(BASE, PART), 0, ["x", "y"][*name]),
            Op::Deliver(at) => drop(self.stream(*at).map(|url| self.deliver(&url))),
            Op::Relist(at) => drop(self.stream(*at).map(|url| self.relist(&url))),
            Op::Break(at) => drop(self.stream(*at).map(|url| self.world.health(&url, Health::Broken { what: "broken".into() }))),
            Op::End { which, how } => self.end(*which, *how),
            Op::Pass(tenths) => drop(self.world.pass(Duration::from_millis(100 * tenths))),
            Op::Slice(true) => self.slice(&PLACES),
            Op::Slice(false) => self.slice(&PLACES[..1]),
        }
        self.note();
    }

    fn note(&mut self) {
        for (work, run) in &self.world.running {
            let Run { raw, endpoint, seen, .. } = run;
            self.log.push(format!("{work:?} {raw:?} {endpoint} {:?} {:?}", seen.children, seen.names));
            self.last.insert(work.clone(), copy(run));
        }
        self.log.extend(self.world.orders.iter().map(|order| format!("{order:?}")));
    }

    /// Lets everything that is under way arrive and end, and a minute pass.
    fn rest(&mut self) {
        self.slice(&PLACES);
        for _ in 0..120 {
            for url in self.world.streams.keys().cloned().collect::<Vec<_>>() {
                while self.deliver(&url) {
                    self.note();
                }
            }
            for url in self.world.refreshes() {
                self.relist(&url);
                self.note();
            }
            self.note();
            while let Some(work) = self.world.running.keys().next().cloned() {
                self.world.end(&work, settled());
                self.note();
            }
            self.world.pass(Duration::from_millis(500));
            self.note();
        }
    }

    /// Every object was looked at last as everything that concerns it is now.
    fn check(&self) {
        for place in 0..2 {
            for ((workspace, name), raw) in self.truth.get(&Self::url(place, 0)).into_iter().flatten() {
                let run = self.last.get(&work(0, workspace, name)).unwrap_or_else(|| panic!("{workspace}/{name} was never looked at"));
                assert_eq!(*run.raw, *raw, "the object itself");
                let child = self.truth.get(&Self::url(place, 1)).and_then(|all| all.get(&(workspace.clone(), name.clone())));
                assert_eq!(run.seen.children[&CHILD].value, child.map(|child| child.body.clone()), "the child of {workspace}/{name}");
                let wanted: Value = serde_json::from_str(&raw.body).unwrap();
                for listened in wanted["names"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                    let there =
                        self.truth.get(&Self::url(place, 2)).is_some_and(|all| all.contains_key(&(workspace.clone(), listened.into())));
                    assert_eq!(run.seen.names[&NAME].value.contains(listened), there, "the name {listened} for {workspace}/{name}");
                }
                for actor in 0..2 {
                    let view = self.last[&work(actor, workspace, name)].seen.views[&TypeId::of::<Parts>()].value.clone().unwrap();
                    for listened in wanted["parts"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                        let part = self.truth.get(&of(BASE, PART)).and_then(|all| all.get(&(String::new(), listened.to_owned())));
                        let seen = view.downcast_ref::<Parts>().unwrap().get(listened).map(String::as_str);
                        assert_eq!(seen, part.map(|part| &*part.body), "the part {listened} for {workspace}/{name}");
                    }
                }
            }
        }
        let core = &self.world.core;
        let things: usize = (0..2).map(|place| self.truth.get(&Self::url(place, 0)).map_or(0, BTreeMap::len)).sum();
        assert_eq!(core.objects.len(THING), things, "what is gone is gone");
        assert_eq!(
            (core.objects.debts(), core.unseen.len(), core.parked.len(), core.running.len()),
            (0, 0, 0, 0),
            "nothing is left behind"
        );
    }
}

fn copy(run: &Run) -> Run {
    let Run { work, raw, endpoint, seen, config, last_config, superseded_by, others, claims, path, external } = run;
    Run {
        work: work.clone(),
        raw: raw.clone(),
        endpoint: endpoint.clone(),
        seen: seen.clone(),
        config: config.clone(),
        last_config: last_config.clone(),
        superseded_by: superseded_by.clone(),
        others: others.clone(),
        claims: claims.clone(),
        external: external.clone(),
        path: path.clone(),
    }
}

fn listening(to: usize) -> Value {
    [
        json!({}),
        json!({"names": ["x"], "parts": ["y"]}),
        json!({"names": ["y"], "parts": ["x"]}),
        json!({"names": ["x", "y"], "parts": ["x", "y"]}),
    ][to]
        .clone()
}

fn played(script: &[Op]) -> Server {
    let mut server = Server::new();
    for op in script {
        server.step(op);
    }
    server
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_events_loses_a_wake_up(script in ops()) {
        let mut server = played(&script);
        server.rest();
        server.check();
    }

    #[test]
    fn the_same_events_give_the_same_effects(script in ops()) {
        assert_eq!(played(&script).log, played(&script).log);
    }
}
