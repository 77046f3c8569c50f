//! What was logged while a test ran, for the message of its failure.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// Lines that are kept.
const KEPT: usize = 20;

/// The last lines of information and above.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    began: Instant,
    last: Arc<Mutex<VecDeque<String>>>,
}

impl Lines {
    /// Listens on this thread until the guard is dropped; a paused runtime has no other.
    pub(super) fn listen(began: Instant) -> (Self, DefaultGuard) {
        let lines = Self { began, last: Arc::default() };
        let subscriber = tracing_subscriber::registry().with(lines.clone().with_filter(LevelFilter::INFO));
        (lines, tracing::subscriber::set_default(subscriber))
    }

    pub(super) fn last(&self) -> Vec<String> {
        self.last.lock().iter().cloned().collect()
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let level = event.metadata().level();
        let line = format!("{:>8.3} s  {level:<5}  {}{}", self.began.elapsed().as_secs_f64(), text.message, text.fields);
        let mut last = self.last.lock();
        last.push_back(line);
        if last.len() > KEPT {
            last.pop_front();
        }
    }
}

#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing to a String cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
