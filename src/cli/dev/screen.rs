//! What people see: lines with the time that has gone by, and on a terminal a table below them that is drawn in place.

use std::future::Future;
use std::io::{self, IsTerminal as _, Write as _};
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use comfy_table::{ContentArrangement, Table};
use parking_lot::Mutex;

use super::rows::Row;
use super::table::{self, Look, PLAIN};

/// How often a long step says that it still goes on.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Where lines and tables go. Shared by steps that run at the same time.
pub(super) struct Screen {
    began: Instant,
    /// The look of a table that is drawn in place; `None` where changes are lines.
    live: Option<Look>,
    /// Whether changes are shown at all.
    follows: bool,
    /// Whether steps take so long that their beginning is worth a line.
    waits: bool,
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    rows: Vec<Row>,
    table: String,
}

impl Screen {
    /// A screen whose time begins now. `follows` shows clusters as they change: in place on a terminal, as lines elsewhere;
    /// `waits` announces each step before it begins.
    pub(super) fn new(follows: bool, waits: bool) -> Self {
        let live = (follows && io::stdout().is_terminal()).then(|| Look { width: width(), colour: std::env::var_os("NO_COLOR").is_none() });
        Self { began: Instant::now(), live, follows, waits, shown: Mutex::default() }
    }

    /// Since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// A line that stays.
    pub(super) fn say(&self, line: &str) {
        let line = format!("[{:5.1} s] {line}", self.elapsed().as_secs_f32());
        let shown = self.shown.lock();
        // A closed output is no reason to leave a kcp behind.
        let _ = if self.live.is_some() {
            write_out(&table::frame(shown.table.lines().count(), Some(&line), &shown.table))
        } else {
            writeln!(io::stderr().lock(), "{line}")
        };
    }

    /// The clusters as they are now.
    pub(super) fn show(&self, rows: &[Row]) {
        if !self.follows {
            return;
        }
        let mut shown = self.shown.lock();
        let text = if let Some(look) = self.live {
            let (drawn, table) = (shown.table.lines().count(), table::table(rows, look));
            let text = if table == shown.table { String::new() } else { table::frame(drawn, None, &table) };
            shown.table = table;
            text
        } else {
            let seconds = self.elapsed().as_secs_f32();
            let lines = table::changes(&shown.rows, rows).into_iter().map(|line| format!("[{seconds:5.1} s] {line}\n"));
            lines.collect::<Vec<_>>().concat()
        };
        shown.rows = rows.to_vec();
        let _ = write_out(&text);
    }

    /// Says what begins and how long it is known to take on a real kcp, at times that it goes on, and at last how long it took.
    pub(super) async fn step<T>(&self, what: &str, known: &str, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        if self.waits {
            self.say(&format!("{what} (known to take {known})"));
        }
        let began = Instant::now();
        let mut work = pin!(work);
        loop {
            match tokio::time::timeout(REPORT_EVERY, &mut work).await {
                Ok(Ok(done)) => {
                    self.say(&format!("{what}: done in {:.1} s", began.elapsed().as_secs_f32()));
                    return Ok(done);
                }
                Ok(Err(error)) => return Err(error).with_context(|| format!("this failed: {what}")),
                Err(_) => self.say(&format!("{what}: {} s so far", began.elapsed().as_secs())),
            }
        }
    }

    /// The table at the end, without time.
    pub(super) fn finish(rows: &[Row]) {
        let look = if io::stdout().is_terminal() { Look { width: width(), colour: false } } else { PLAIN };
        let _ = write_out(&table::table(rows, look));
    }
}

fn width() -> Option<u16> {
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Dynamic).width()
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
