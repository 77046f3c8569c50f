//! One lane: its own workspaces on both servers, and operations one after the other, compared.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::memory::Memory;
use super::normal::{Reading, normal, without_empty_page};
use super::plan::{Call, MERGE, Operation, Step, Who};
use super::recording::Recorded;
use super::setup;
use super::target::{Got, Sent, Target};

/// A server, and what a lane knows of it.
pub(crate) struct Side {
    target: Arc<dyn Target>,
    memory: Memory,
}

/// What a server is compared with.
enum Model {
    /// Another that answers now.
    Live(Box<Side>),
    /// What one answered before.
    Recorded(Recorded),
}

/// Two servers that should answer the same.
pub(crate) struct Lane {
    model: Model,
    side: Side,
    pub(crate) counts: Counts,
    /// What the model answered in the last operation.
    pub(crate) answers: Vec<Value>,
}

/// What was done: answers by kind of operation and by code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) operations: BTreeMap<&'static str, usize>,
    pub(crate) answers: BTreeMap<(&'static str, u64), usize>,
    pub(crate) time: BTreeMap<&'static str, Duration>,
}

/// Two answers that differ.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    pub(crate) kind: &'static str,
    /// The step, with the plan's symbols.
    pub(crate) step: String,
    pub(crate) answers: [Value; 2],
}

/// Between two looks at what takes its time.
const LOOK_EVERY: Duration = Duration::from_millis(150);
/// How long a stream may say nothing before it counts as read, and how long when the answers differ.
const QUIET: [Duration; 3] = [Duration::from_millis(350), Duration::from_millis(1500), Duration::from_secs(4)];

impl Lane {
    /// Fresh workspaces below `root` on both servers; `name` makes theirs differ from those of all other lanes and runs.
    pub(crate) async fn new(targets: &[Arc<dyn Target>; 2], name: &str) -> anyhow::Result<Self> {
        let (one, other) =
            tokio::try_join!(Side::new(targets[0].clone(), format!("{name}a")), Side::new(targets[1].clone(), format!("{name}b")))?;
        Ok(Self { model: Model::Live(Box::new(one)), side: other, counts: Counts::default(), answers: Vec::new() })
    }

    /// Fresh workspaces on one server, which is compared with what another answered before.
    pub(crate) async fn replay(target: Arc<dyn Target>, name: &str, recorded: Recorded) -> anyhow::Result<Self> {
        let side = Side::new(target, format!("{name}b")).await?;
        Ok(Self { model: Model::Recorded(recorded), side, counts: Counts::default(), answers: Vec::new() })
    }

    /// Runs one operation; the first step that differs ends it.
    pub(crate) async fn run(&mut self, operation: &Operation) -> anyhow::Result<Option<Difference>> {
        *self.counts.operations.entry(operation.kind).or_default() += 1;
        let began = Instant::now();
        self.answers.clear();
        if let Model::Recorded(recorded) = &mut self.model
            && !recorded.next(operation)
        {
            return Ok(None);
        }
        let difference = self.steps(operation).await;
        *self.counts.time.entry(operation.kind).or_default() += began.elapsed();
        difference
    }

    /// After a difference: removes what the operation was about on both sides, so that one fault is not found a hundred times.
    pub(crate) async fn heal(&mut self, operation: &Operation) -> anyhow::Result<()> {
        let release = json!({"metadata": {"finalizers": null}});
        let Model::Live(model) = &mut self.model else {
            // What was recorded cannot be changed any more.
            return Ok(());
        };
        for side in [&mut **model, &mut self.side] {
            side.memory.start_anew();
            for path in operation.objects() {
                side.send(&Call::new(Who::Admin, "PATCH", path.clone()).content_type(MERGE).body(&release), None).await?;
                side.send(&Call::new(Who::Admin, "DELETE", path), None).await?;
            }
        }
        Ok(())
    }

    /// Whether what it is compared with was recorded.
    pub(crate) fn is_replay(&self) -> bool {
        matches!(self.model, Model::Recorded(_))
    }

    /// How long to wait: what was recorded does not change, and an embedded server is done at once.
    fn patience(&self, within: Duration) -> Duration {
        if self.is_replay() { within.min(Duration::from_secs(1)) } else { within }
    }

    async fn steps(&mut self, operation: &Operation) -> anyhow::Result<Option<Difference>> {
        let mut first = None;
        for step in &operation.steps {
            let answers = self.step(step).await.with_context(|| format!("{}: {step}", operation.kind))?;
            let Some(answers) = answers else { continue };
            *self.counts.answers.entry((operation.kind, answers[0]["code"].as_u64().unwrap_or_default())).or_default() += 1;
            if let Model::Recorded(recorded) = &mut self.model {
                recorded.step_done();
            }
            if answers[0] != answers[1] {
                first.get_or_insert(Difference { kind: operation.kind, step: step.to_string(), answers });
                if !self.is_replay() {
                    break;
                }
                // The rest was done where it was recorded.
                continue;
            }
            let [answer, _] = answers;
            self.answers.push(answer);
        }
        Ok(first)
    }

    async fn step(&mut self, step: &Step) -> anyhow::Result<Option<[Value; 2]>> {
        let steady = Reading::default();
        match step {
            Step::Pause(length) => {
                pause(*length).await;
                Ok(None)
            }
            Step::Call(call) => self.ask(call, steady, None).await.map(Some),
            Step::Late(call, within) => {
                let within = self.patience(*within);
                self.look_again(call, within).await.map(Some)
            }
            Step::Pages(call) => self.pages(call).await.map(Some),
            Step::Watch(call) => {
                let reading = Reading { events: true, ..steady };
                let before = self.memories();
                let mut answers = self.ask(call, reading, Some(QUIET[0])).await?;
                for quiet in &QUIET[1..] {
                    if answers[0] != answers[1] {
                        self.restore(&before);
                        answers = self.ask(call, reading, Some(*quiet)).await?;
                    }
                }
                Ok(Some(answers))
            }
            Step::Until(call, holds, within) => {
                let reading = Reading { unsteady: true, ..steady };
                let within = self.patience(*within);
                let began = Instant::now();
                let before = self.memories();
                loop {
                    let answers = self.ask(call, reading, None).await?;
                    let hold = answers.iter().all(|answer| {
                        holds.check(u16::try_from(answer["code"].as_u64().unwrap_or_default()).unwrap_or_default(), &answer["body"])
                    });
                    if hold && answers[0] == answers[1] {
                        return Ok(Some(answers));
                    }
                    if began.elapsed() >= within {
                        // Neither side got there: that is a fault of the plan, and it must not pass for the same.
                        ensure!(hold || answers[0] != answers[1], "{call} never came to {holds:?}: {}", answers[0]);
                        return Ok(Some(answers));
                    }
                    self.restore(&before);
                    pause(LOOK_EVERY).await;
                }
            }
        }
    }

    async fn look_again(&mut self, call: &Call, within: Duration) -> anyhow::Result<[Value; 2]> {
        let began = Instant::now();
        let before = self.memories();
        loop {
            let answers = self.ask(call, Reading::default(), None).await?;
            if answers[0] == answers[1] || began.elapsed() >= within {
                return Ok(answers);
            }
            self.restore(&before);
            pause(LOOK_EVERY).await;
        }
    }

    fn memories(&self) -> [Memory; 2] {
        let model = if let Model::Live(model) = &self.model { model.memory.clone() } else { Memory::default() };
        [model, self.side.memory.clone()]
    }

    fn restore(&mut self, memories: &[Memory; 2]) {
        if let Model::Live(model) = &mut self.model {
            model.memory.clone_from(&memories[0]);
        }
        self.side.memory.clone_from(&memories[1]);
    }

    async fn ask(&mut self, call: &Call, reading: Reading, quiet: Option<Duration>) -> anyhow::Result<[Value; 2]> {
        match &mut self.model {
            Model::Live(model) => {
                let (one, other) = tokio::try_join!(model.ask(call, reading, quiet), self.side.ask(call, reading, quiet))?;
                Ok([one, other])
            }
            Model::Recorded(recorded) => Ok([recorded.answer(), self.side.ask(call, reading, quiet).await?]),
        }
    }

    async fn pages(&mut self, call: &Call) -> anyhow::Result<[Value; 2]> {
        match &mut self.model {
            Model::Live(model) => {
                let (one, other) = tokio::try_join!(model.pages(call), self.side.pages(call))?;
                Ok([one, other])
            }
            Model::Recorded(recorded) => Ok([recorded.answer(), self.side.pages(call).await?]),
        }
    }
}

impl Side {
    async fn new(target: Arc<dyn Target>, name: String) -> anyhow::Result<Self> {
        let mut side = Self { target, memory: Memory::default() };
        side.register_server();
        for symbol in setup::WORKSPACES {
            side.create_workspace(&format!("{name}-{symbol}")).await?;
        }
        for symbol in setup::WORKSPACES {
            let name = format!("{name}-{symbol}");
            let cluster = side.await_workspace(&name).await?;
            side.memory.register_workspace(symbol, &name, &cluster);
        }
        Ok(side)
    }

    fn register_server(&mut self) {
        let host = self.target.base_url().trim_start_matches("https://").to_owned();
        self.memory.register(&host, "<server>");
    }

    async fn ask(&mut self, call: &Call, reading: Reading, quiet: Option<Duration>) -> anyhow::Result<Value> {
        let got = self.send(call, quiet).await?;
        let answer = normal(&got, reading, &mut self.memory);
        if let Some(name) = &call.remember
            && let Ok(body) = serde_json::from_str::<Value>(&got.text)
        {
            let found = ["/status/token", "/metadata/resourceVersion"].iter().find_map(|pointer| body.pointer(pointer)?.as_str());
            if let Some(found) = found {
                self.memory.remember(name, found);
            }
        }
        Ok(answer)
    }

    /// All pages as one answer: the items together, and how many were on each.
    async fn pages(&mut self, call: &Call) -> anyhow::Result<Value> {
        let (mut items, mut pages, mut token) = (Vec::new(), Vec::new(), String::new());
        loop {
            let next = if token.is_empty() { call.clone() } else { call.clone().with(&format!("continue={token}")) };
            let got = self.send(&next, None).await?;
            let body: Value = serde_json::from_str(&got.text).unwrap_or_default();
            if got.code != 200 {
                return Ok(normal(&got, Reading::default(), &mut self.memory));
            }
            let page = body["items"].as_array().cloned().unwrap_or_default();
            pages.push(json!([page.len(), body["metadata"]["remainingItemCount"]]));
            items.extend(page);
            body["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut token);
            if token.is_empty() {
                let whole = json!({"kind": body["kind"], "apiVersion": body["apiVersion"], "items": items}).to_string();
                let mut answer = normal(&Got { text: whole, ..got }, Reading::default(), &mut self.memory);
                answer["pages"] = pages.into();
                without_empty_page(&mut answer);
                return Ok(answer);
            }
        }
    }

    /// Sends, and waits where the server asks to: kcp answers 429 while it fills the cache of a kind that was just bound.
    async fn send(&self, call: &Call, quiet: Option<Duration>) -> anyhow::Result<Got> {
        let token = match &call.who {
            Who::Admin => self.target.token("admin"),
            Who::Tenant => self.target.token("tenant"),
            Who::Nobody => self.target.token("nobody"),
            Who::Runtime => self.target.token("runtime"),
            Who::Bearer(name) => Some(self.memory.recall(name).unwrap_or("not-yet-known").to_owned()),
            Who::Anonymous => None,
            Who::Impostor => Some("impostor".to_owned()),
        };
        let sent = Sent {
            token,
            method: call.method,
            path: self.memory.resolve(&call.path),
            content_type: call.content_type,
            accept: call.accept,
            body: call.body.as_ref().map(|body| self.memory.resolve(body)),
            quiet,
        };
        for _ in 0..60 {
            let got = self.target.send(&sent).await?;
            if got.code != 429 {
                return Ok(got);
            }
            pause(Duration::from_secs(1)).await;
        }
        self.target.send(&sent).await
    }

    async fn create_workspace(&mut self, name: &str) -> anyhow::Result<()> {
        let body = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}, "spec": {}});
        let call = Call::new(Who::Admin, "POST", "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces").body(&body);
        let got = self.send(&call, None).await?;
        ensure!(got.code == 201, "workspace {name}: {} {}", got.code, got.text);
        Ok(())
    }

    async fn await_workspace(&mut self, name: &str) -> anyhow::Result<String> {
        let began = Instant::now();
        loop {
            let got = self.send(&Call::get(format!("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/{name}")), None).await?;
            let workspace: Value = serde_json::from_str(&got.text)?;
            if workspace["status"]["phase"] == "Ready"
                && let Some(cluster) = workspace["spec"]["cluster"].as_str()
            {
                return Ok(cluster.to_owned());
            }
            ensure!(began.elapsed() < Duration::from_mins(3), "workspace {name} is not Ready: {}", got.text);
            pause(LOOK_EVERY).await;
        }
    }
}

/// Between two looks, or for what no answer shows the end of.
async fn pause(length: Duration) {
    let mut ticks = tokio::time::interval(length);
    // The first tick is now.
    ticks.tick().await;
    ticks.tick().await;
}
