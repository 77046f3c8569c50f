//! A watch that shows its events as its faults say.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;

use crate::embedded::body::Body as Plain;
use crate::runtime::Body;

use super::Faults;
use super::fault::{Fault, Site, Target};

/// For how long a watch is late.
const LATE: Duration = Duration::from_secs(5);

struct Lines {
    body: Plain,
    faults: Faults,
    watch: u64,
    /// What is watched.
    path: String,
    /// Events so far; bookmarks do not count, of which there is no end.
    count: u64,
    waiting: VecDeque<Bytes>,
    /// Shown without further ado.
    next: Option<Result<Bytes, Error>>,
    over: bool,
}

/// The body of the watch that was opened by the request of this number.
pub(super) fn struck(body: Plain, faults: Faults, watch: u64, path: String) -> Body {
    let lines = Lines { body, faults, watch, path, count: 0, waiting: VecDeque::new(), next: None, over: false };
    StreamBody::new(events(lines).map(|line| line.map(Frame::data))).boxed_unsync()
}

fn events(lines: Lines) -> impl Stream<Item = Result<Bytes, Error>> + Send {
    stream::unfold(lines, |mut lines| async move {
        let line = lines.show().await?;
        Some((line, lines))
    })
}

impl Lines {
    async fn show(&mut self) -> Option<Result<Bytes, Error>> {
        if let Some(next) = self.next.take() {
            return Some(next);
        }
        if self.over {
            return None;
        }
        let line = self.read().await?;
        if is_bookmark(&line) {
            return Some(Ok(line));
        }
        let site = Site::Line(self.watch, self.count);
        self.count += 1;
        match self.faults.strike(site, Target::Line) {
            Some(Fault::Twice) => self.next = Some(Ok(line.clone())),
            Some(Fault::Late) => tokio::time::sleep(LATE).await,
            Some(Fault::Lost) => return None,
            Some(Fault::Blind) => {
                self.faults.blind(&self.path);
                return None;
            }
            Some(Fault::Expired) => return Some(Ok(self.ends_with(410, "Expired"))),
            Some(Fault::Broken) => return Some(Ok(self.ends_with(500, "InternalError"))),
            Some(Fault::Silent) => return std::future::pending().await,
            Some(Fault::Cut) => {
                self.over = true;
                self.next = Some(Err(Error::new(ErrorKind::ConnectionReset, "a fault of the kit")));
                return Some(Ok(line.slice(..line.len() / 2)));
            }
            _ => {}
        }
        Some(Ok(line))
    }

    fn ends_with(&mut self, code: u16, reason: &str) -> Bytes {
        self.over = true;
        let status = serde_json::json!({"type": "ERROR", "object": {"apiVersion": "v1", "kind": "Status", "status": "Failure",
            "code": code, "reason": reason, "message": "a fault of the kit"}});
        format!("{status}\n").into()
    }

    /// The next line, with its end.
    async fn read(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.waiting.pop_front() {
                return Some(line);
            }
            let Ok(mut data) = self.body.frame().await?.ok()?.into_data() else { continue };
            // The control plane sends whole lines.
            while let Some(end) = data.iter().position(|byte| *byte == b'\n') {
                self.waiting.push_back(data.split_to(end + 1));
            }
        }
    }
}

fn is_bookmark(line: &[u8]) -> bool {
    // The type comes last, for keys are sorted.
    line.ends_with(b"\"type\":\"BOOKMARK\"}\n")
}
