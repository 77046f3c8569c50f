//! The manager, and what it has: tasks, connections, series, bytes.

use std::time::{Duration, Instant};

use kcp_provider_runtime::api::manifest::export;
use kcp_provider_runtime::kcm::{Readiness, Scheduler};
use kcp_provider_runtime::runtime::{Credentials, Handle, Options, Runtime};
use serde_json::json;

use crate::allocated;
use crate::server::Server;

/// What an idle workspace may take.
const AIM: usize = 4 << 10;
/// What may be left when everybody has left, as a part of all bytes: five of a hundred. The buffers of connections grow with what comes through
/// them, and never with who comes.
const SLACK: usize = 20;
/// Series that come of chance, such as of the first conflict; one that named a workspace would come with each.
const CHANCE: usize = 5;
/// Moments that are looked at for one reading.
const LOOKS: usize = 3;
/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_mins(10);
/// Looks in a row at which everything is as it should be and nothing has changed.
const QUIET: u32 = 3;

/// What there is at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    tasks: usize,
    connections: usize,
    series: usize,
    bytes: usize,
}

impl Reading {
    fn take(handle: &Handle) -> Self {
        let series = handle.metrics().text().lines().filter(|line| !line.starts_with('#')).count();
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        Self { tasks, connections: connections(), series, bytes: allocated() }
    }

    /// What is more than it was.
    fn beyond(self, start: Self) -> Vec<String> {
        let mut beyond = Vec::new();
        let mut check = |what, now: usize, then: usize, slack: usize| {
            if now > then + slack {
                beyond.push(format!("{now} {what}, and {then} at the start"));
            }
        };
        check("tasks", self.tasks, start.tasks, 0);
        check("connections", self.connections, start.connections, 0);
        check("series", self.series, start.series, CHANCE);
        check("bytes", self.bytes, start.bytes, start.bytes / SLACK);
        beyond
    }
}

/// Open sockets of this process; 0 where the system does not tell.
fn connections() -> usize {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    open.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))).count()
}

/// A size that the manager counts.
fn size(handle: &Handle, what: &str) -> usize {
    let text = handle.metrics().text();
    let line = format!("kcp_provider_{what} ");
    text.lines().find_map(|found| found.strip_prefix(&*line)?.parse().ok()).unwrap_or_default()
}

/// Waits until the manager knows so many workspaces and objects, nothing is left to do and no more connections are open than that, and reads. A
/// connection that nobody needs is given up after a minute.
async fn at_rest(handle: &Handle, workspaces: usize, objects: usize, connections: usize) -> Reading {
    let began = Instant::now();
    let mut look = tokio::time::interval(Duration::from_millis(200));
    let mut last = Reading::take(handle);
    let mut quiet = 0;
    while quiet < QUIET {
        look.tick().await;
        let now = Reading::take(handle);
        let there = size(handle, "workspaces") == workspaces && size(handle, "objects") == objects && handle.is_idle();
        let there = there && now.connections <= connections;
        let same = (now.tasks, now.connections, now.series) == (last.tasks, last.connections, last.series);
        quiet = if there && same { quiet + 1 } else { 0 };
        last = now;
        assert!(began.elapsed() < PATIENCE, "no rest with {workspaces} workspaces and {objects} objects:\n{}", handle.metrics().text());
    }
    Reading::take(handle)
}

/// The manager and its tenants.
struct Story {
    handle: Handle,
    server: Server,
    /// The connections that it had at the start.
    connections: usize,
}

impl Story {
    /// So many idle ones come, are there, and go; what there was meanwhile, and right after it.
    async fn idle(&mut self, tenants: usize) -> [Reading; 2] {
        self.tell("bind", "unbind", tenants, 0).await
    }

    /// The same of tenants that have a cluster each.
    async fn living(&mut self, tenants: usize) -> [Reading; 2] {
        self.tell("order", "leave", tenants, tenants).await
    }

    /// What there is when everybody has left and hardly anything came through the connections since, each of whose buffers is as large as what came
    /// last.
    async fn calm(&mut self) -> Reading {
        self.server.tell("order", 1..2).await;
        self.server.tell("leave", 1..2).await;
        at_rest(&self.handle, 1, 0, self.connections).await
    }

    /// The most that there is at some such moments.
    async fn start(&mut self) -> Reading {
        let mut most = self.calm().await;
        for _ in 1..LOOKS {
            let now = self.calm().await;
            let Reading { tasks, connections, series, bytes } = most;
            most = Reading {
                tasks: tasks.max(now.tasks),
                connections: connections.max(now.connections),
                series: series.max(now.series),
                bytes: bytes.max(now.bytes),
            };
        }
        self.connections = most.connections;
        most
    }

    /// The first such moment with no more than at the start, or the last of those that are waited for: what has leaked does not go again.
    async fn end(&mut self, start: Reading) -> Reading {
        let mut now = self.calm().await;
        for _ in 1..LOOKS {
            if now.beyond(start).is_empty() {
                break;
            }
            now = self.calm().await;
        }
        now
    }

    async fn tell(&mut self, come: &str, go: &str, tenants: usize, objects: usize) -> [Reading; 2] {
        // One stays, so that the streams do.
        let all = 1..1 + tenants;
        self.server.tell(come, all.clone()).await;
        let there = at_rest(&self.handle, 1 + tenants, objects, usize::MAX).await;
        self.server.tell(go, all).await;
        let gone = at_rest(&self.handle, 1, 0, usize::MAX).await;
        [there, gone]
    }
}

/// Runs the manager through both stories; what was wrong.
pub(crate) async fn measure(workspaces: usize) -> Vec<String> {
    let began = Instant::now();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut server = Server::start(&kubeconfig).await;
    let options = Options::new(Credentials::File(kubeconfig), export::EXPORT).with_workspace("root:provider");
    // One request at a time, as on kcp before v0.31, so that the number of connections is no accident.
    let options = Options { endpoint_overrides: vec![server.reached.clone()], requests: 1, ..options };
    let runtime = Runtime::new(options).serve(Scheduler::new).serve(Readiness::new);
    let mut handle = runtime.handle();
    let running = tokio::spawn(runtime.run());
    handle.ready().await;
    server.tell("bind", 0..1).await;
    let mut story = Story { handle, server, connections: usize::MAX };
    let few = (workspaces / 10).max(1);
    // What is made once, whoever comes first, is made here: connections, series, buffers.
    story.living(few).await;
    let start = story.start().await;
    let idle = story.idle(workspaces).await;
    let after_idle = story.end(start).await;
    let living = story.living(few).await;
    let end = story.end(start).await;
    let each = |[there, gone]: [Reading; 2], of: usize| there.bytes.saturating_sub(gone.bytes) / of;
    let (per_idle, per_living) = (each(idle, workspaces), each(living, few));
    let ([idle, _], [living, _]) = (idle, living);
    println!(
        "{}",
        json!({"figure": "leaks", "workspaces": workspaces, "bytes_per_idle_workspace": per_idle, "bytes_per_workspace_with_a_cluster": per_living,
            "bytes": [start.bytes, idle.bytes, after_idle.bytes, living.bytes, end.bytes], "tasks": [start.tasks, idle.tasks, end.tasks],
            "connections": [start.connections, idle.connections, end.connections], "series": [start.series, idle.series, end.series],
            "seconds": began.elapsed().as_secs()})
    );
    let mut problems: Vec<String> = idle.beyond(Reading { bytes: idle.bytes, ..start });
    for problem in &mut problems {
        problem.insert_str(0, "while all are bound: ");
    }
    for (when, reading) in [("when idle ones have left: ", after_idle), ("when those with a cluster have left: ", end)] {
        problems.extend(reading.beyond(start).into_iter().map(|problem| format!("{when}{problem}")));
    }
    if per_idle > AIM {
        problems.push(format!("an idle workspace takes {per_idle} bytes, and may take {AIM}"));
    }
    story.handle.stop();
    running.await.unwrap().unwrap();
    story.server.stop().await;
    problems
}
