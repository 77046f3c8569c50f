//! The beginning, the middle and the end of `kcm dev`. The end comes in every case: the control plane is ended, and its folder removed.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use parking_lot::Mutex;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use super::expectations::{Stage, unmet};
use super::plane::Plane;
use super::rows::Row;
use super::scenario::{self, TENANTS};
use super::screen::Screen;
use super::setup::{Controller, Setup};
use super::site::{self, Site};
use super::verdict::{Milestones, Verdict, seconds};
use super::{DevArgs, Output};
/// Everything was seen to be as ordered 30 s after kcp was ready, on a busy machine after 60 s.
const ORDERED_WITHIN: Duration = Duration::from_mins(3);
/// A mended cluster is Ready within seconds.
const MENDED_WITHIN: Duration = Duration::from_mins(1);
/// Signals that come closer together than this are one request to stop.
const ONE_REQUEST: Duration = Duration::from_secs(1);
/// Lines of the log that an error shows, since the log goes with the folder.
const LOG_TAIL: usize = 15;

pub(super) async fn run(args: DevArgs, log_json: bool) -> anyhow::Result<()> {
    let stop = stop_on_signals()?;
    let screen = Screen::new(!args.once, args.kcp);
    let starting = async { if args.kcp { Plane::kcp(&screen).await } else { Plane::embedded(0).await } };
    let Some(plane) = stop.run_until_cancelled(Box::pin(starting)).await else {
        if args.kcp {
            screen.say("stopped; kcp, if it was started, ends by itself within seconds and removes its folder");
        }
        return if args.once { Err(anyhow!("it was stopped")) } else { Ok(()) };
    };
    let mut plane = plane?;
    let folder = plane.folder().to_owned();
    log_to(&plane.file("kcm.log"), log_json)?;
    let played = Box::pin(with_plane(&args, &screen, &mut plane, &stop)).await;
    if played.is_err() {
        say_log_tail(&screen, &plane.file("kcm.log"));
    }
    if args.kcp {
        screen.say("ending kcp and removing its folder (known to take 3 s)");
    }
    plane.stop().await?;
    screen.say(&format!("{} is gone", folder.display()));
    match played? {
        Some(verdict) => conclude(&args, &verdict),
        None => Ok(()),
    }
}

/// Plays until it is through, told to stop, or something ends that must not; then no controller runs any more.
async fn with_plane(args: &DevArgs, screen: &Screen, plane: &mut Plane, stop: &CancellationToken) -> anyhow::Result<Option<Verdict>> {
    let site = Site::of(plane).await?;
    let logs: Vec<String> = plane.logs().iter().map(|log| log.display().to_string()).collect();
    screen.say(&format!("logs: {}", logs.join(" and ")));
    let quit = CancellationToken::new();
    // There are three controllers; the set-up never waits for this.
    let (controllers, to_run) = mpsc::channel(4);
    let mut running = tokio::spawn(supervise(to_run, quit.clone()));
    let game = Game::new(screen, &site, controllers, plane.look_every());
    let played = tokio::select! {
        biased;
        () = stop.cancelled() => if args.once { Err(anyhow!("it was stopped")) } else { Ok(None) },
        ended = plane.ended() => Err(ended),
        ended = &mut running => Err(ended.map_or_else(Into::into, |problem| anyhow!("{problem}"))),
        played = game.play(args.once) => played,
    };
    quit.cancel();
    if !running.is_finished() {
        running.await?;
    }
    played
}

/// Runs what comes in until `quit`; returns earlier, with the reason, when one of them ends by itself.
async fn supervise(mut to_run: mpsc::Receiver<Controller>, quit: CancellationToken) -> String {
    let mut handles = Vec::new();
    let mut running = JoinSet::new();
    let reason = loop {
        tokio::select! {
            () = quit.cancelled() => break "all were told to stop".to_owned(),
            Some((name, runtime)) = to_run.recv() => {
                handles.push(runtime.handle());
                running.spawn(async move { (name, runtime.run().await) });
            }
            Some(ended) = running.join_next() => match ended {
                Ok((name, ended)) => break format!("{name} ended by itself: {ended:?}"),
                Err(error) => break format!("a controller broke: {error}"),
            },
        }
    };
    handles.iter().for_each(crate::runtime::Handle::stop);
    while running.join_next().await.is_some() {}
    reason
}

/// One playing of the scenario.
struct Game<'a> {
    screen: &'a Screen,
    site: &'a Site,
    setup: Setup<'a>,
    /// How often the clusters are looked at; two LISTs of a few objects.
    look_every: Duration,
    rows: watch::Sender<Vec<Row>>,
    milestones: Mutex<Milestones>,
}

impl<'a> Game<'a> {
    fn new(screen: &'a Screen, site: &'a Site, controllers: mpsc::Sender<Controller>, look_every: Duration) -> Self {
        let milestones = Milestones { kcp_ready: Some(seconds(screen.elapsed())), ..Milestones::default() };
        let setup = Setup::new(site, screen, controllers);
        Self { screen, site, setup, look_every, rows: watch::Sender::default(), milestones: Mutex::new(milestones) }
    }

    async fn play(&self, once: bool) -> anyhow::Result<Option<Verdict>> {
        tokio::select! {
            never = self.watch() => match never {},
            played = async { if once { self.once().await.map(Some) } else { self.live().await } } => played,
        }
    }

    async fn watch(&self) -> std::convert::Infallible {
        let mut pause = tokio::time::interval(self.look_every);
        pause.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            pause.tick().await;
            let Some(provider) = self.setup.provider() else { continue };
            match self.site.look(provider).await {
                Ok(Some(rows)) => self.seen(rows),
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "cannot look at the clusters"),
            }
        }
    }

    fn seen(&self, rows: Vec<Row>) {
        let said = self.milestones.lock().note(&rows, self.screen.elapsed());
        self.screen.show(&rows);
        for line in &said {
            self.screen.say(line);
        }
        self.rows.send_replace(rows);
    }

    async fn live(&self) -> anyhow::Result<Option<Verdict>> {
        Box::pin(self.setup.run()).await?;
        let [kubeconfig, fix] = self.site.write_files()?;
        let kubeconfig = kubeconfig.display().to_string();
        self.screen.say(&format!("everything is ordered. The kubeconfig is {kubeconfig}; try in another terminal:"));
        for line in scenario::lines(&kubeconfig, &fix.display().to_string()) {
            self.screen.say(&format!("  {line}"));
        }
        self.screen.say("the second line lets root:initech's cluster be scheduled. Ctrl-C ends and removes everything");
        std::future::pending().await
    }

    async fn once(&self) -> anyhow::Result<Verdict> {
        let workspaces = Box::pin(self.setup.run()).await?;
        let waits = TENANTS.iter().position(|tenant| tenant.name == scenario::UNSCHEDULABLE).and_then(|at| workspaces.get(at));
        let waits = waits.context("the scenario has a tenant whose cluster waits")?;
        let mut verdict = Verdict { unmet: self.expect("all is as ordered", Stage::Ordered, ORDERED_WITHIN).await, ..Verdict::default() };
        self.milestones.lock().all_as_ordered = Some(seconds(self.screen.elapsed()));
        site::put(&self.site.inside(waits)?, &scenario::fix()).await?;
        self.milestones.lock().mended = Some(seconds(self.screen.elapsed()));
        self.screen.say("root:initech has a Provider now");
        verdict.unmet.extend(self.expect("all is Ready", Stage::Mended, MENDED_WITHIN).await);
        self.milestones.lock().all_ready = Some(seconds(self.screen.elapsed()));
        Ok(Verdict { ok: verdict.unmet.is_empty(), seconds: *self.milestones.lock(), clusters: self.rows.borrow().clone(), ..verdict })
    }

    /// Waits until the expectations of a stage hold; returns those that do not by the deadline.
    async fn expect(&self, what: &str, stage: Stage, within: Duration) -> Vec<String> {
        let mut rows = self.rows.subscribe();
        let met = rows.wait_for(|rows| {
            if stage == Stage::Mended && rows.iter().all(|row| row.holds("Scheduled")) {
                self.milestones.lock().mended_scheduled.get_or_insert_with(|| seconds(self.screen.elapsed()));
            }
            unmet(stage, &TENANTS, rows).is_empty()
        });
        match tokio::time::timeout(within, met).await {
            Ok(_) => {
                self.screen.say(what);
                Vec::new()
            }
            Err(_) => unmet(stage, &TENANTS, &self.rows.borrow()),
        }
    }
}

/// Prints what came of it; what did not hold is the error.
fn conclude(args: &DevArgs, verdict: &Verdict) -> anyhow::Result<()> {
    match args.output {
        Output::Table => Screen::finish(&verdict.clusters),
        Output::Json => println!("{}", serde_json::to_string_pretty(verdict)?),
    }
    if verdict.ok {
        return Ok(());
    }
    bail!("{} expectations did not hold:\n  {}", verdict.unmet.len(), verdict.unmet.join("\n  "))
}

/// The first of SIGINT, SIGTERM and SIGHUP cancels the token; a second one ends the process at once, and kcp by its leash.
pub(super) fn stop_on_signals() -> anyhow::Result<CancellationToken> {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let stop = CancellationToken::new();
    let asked: Arc<OnceLock<Instant>> = Arc::default();
    for kind in kinds {
        let mut signals = signal(kind).context("cannot listen for signals")?;
        let (stop, asked) = (stop.clone(), asked.clone());
        drop(tokio::spawn(async move {
            while signals.recv().await.is_some() {
                let first = *asked.get_or_init(Instant::now);
                // `timeout` and some shells send the same request twice, to the process and to its group.
                if first.elapsed() > ONE_REQUEST {
                    std::process::exit(130);
                }
                stop.cancel();
            }
        }));
    }
    Ok(stop)
}

/// Everything that is logged from now on goes to `kcm.log`, so that the table stays readable.
pub(super) fn log_to(file: &std::path::Path, json: bool) -> anyhow::Result<()> {
    let file = Arc::new(std::fs::File::create(file)?);
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,kcp_provider_runtime=info"));
    // A subscriber that is there already stays.
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(file);
    let _ = if json { lines.json().try_init() } else { lines.try_init() };
    Ok(())
}

fn say_log_tail(screen: &Screen, log: &std::path::Path) {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(LOG_TAIL)..] {
        screen.say(&format!("log: {line}"));
    }
}
