//! What stands between a runtime and its server: a service that lets requests through, or does not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kcp_provider_runtime::api::manifest::samples;
use kcp_provider_runtime::embedded::{ADMIN, Options};
use kcp_provider_runtime::kcm::{Readiness, Scheduler};
use kcp_provider_runtime::kit::{Workspace, World};
use kcp_provider_runtime::runtime::{Credentials, Wire};
use tower::{BoxError, Service, ServiceExt as _};

use crate::furnish::furnish;

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nobody listens: no connection.
    Refused,
    /// An answer with this code; of a 404, in plain text, as a virtual workspace says that it does not know a kind.
    Code(u16),
    /// The request arrives, and no answer ever comes.
    Unanswered,
    /// The server does what is asked, and its answer is lost.
    Lost,
    /// The answer begins, and nothing follows: a connection of which one half is dead.
    HalfOpen,
    /// A list of nothing without a resourceVersion.
    EmptyList,
}

/// Faults by the requests they meet, and the streams that are open.
#[derive(Clone, Default)]
pub(crate) struct Faults(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    rules: Vec<(String, Fate)>,
    /// How often a rule was met.
    met: usize,
    /// Watches that are open, by path.
    open: BTreeMap<String, usize>,
    /// Who asked for what, each once: bearer tokens and paths.
    heard: BTreeSet<(String, String)>,
}

impl Faults {
    /// From now on this happens to requests of which `METHOD https://server/path?query` holds this text; the first rule that fits decides.
    pub(crate) fn add(&self, text: &str, fate: Fate) {
        self.0.lock().unwrap().rules.push((text.into(), fate));
    }

    /// Everything goes through again.
    pub(crate) fn end(&self) {
        self.0.lock().unwrap().rules.clear();
    }

    /// How many requests had a fate of their own.
    pub(crate) fn met(&self) -> usize {
        self.0.lock().unwrap().met
    }

    /// The paths below virtual workspaces that are watched at this moment, each as often as it is.
    pub(crate) fn watched(&self) -> Vec<String> {
        let state = self.0.lock().unwrap();
        let through = state.open.iter().filter(|(path, _)| path.contains("/services/"));
        through.flat_map(|(path, count)| std::iter::repeat_n(path.clone(), *count)).collect()
    }

    /// The bearer tokens that were shown, each with the paths that it was shown for.
    pub(crate) fn heard(&self) -> BTreeSet<(String, String)> {
        self.0.lock().unwrap().heard.clone()
    }

    /// A way to the world's control plane that leads through these faults.
    pub(crate) fn credentials(&self, world: &World) -> Credentials {
        self.credentials_of(world, ADMIN)
    }

    /// The same as somebody else.
    pub(crate) fn credentials_of(&self, world: &World, token: &str) -> Credentials {
        match world.credentials(token) {
            Credentials::Service { wire, server, token } => {
                Credentials::Service { wire: Wire::new(Faulty { wire, faults: self.clone() }), server, token }
            }
            other => other,
        }
    }

    fn of(&self, request: &Request<Bytes>) -> Option<Fate> {
        let target = format!("{} {}", request.method(), request.uri());
        let bearer = request.headers().get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let mut state = self.0.lock().unwrap();
        state.heard.insert((bearer.unwrap_or_default().to_owned(), request.uri().path().to_owned()));
        let fate = state.rules.iter().find(|(text, _)| target.contains(text)).map(|(_, fate)| *fate);
        state.met += usize::from(fate.is_some());
        fate
    }
}

/// A watch that is open as long as this lives.
struct Open(Faults, String);

impl Open {
    fn of(faults: &Faults, path: &str) -> Self {
        *faults.0.lock().unwrap().open.entry(path.into()).or_default() += 1;
        Self(faults.clone(), path.into())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.0.0.lock().unwrap();
        let count = state.open.get_mut(&self.1).unwrap();
        *count -= 1;
    }
}

#[derive(Clone)]
struct Faulty {
    wire: Wire,
    faults: Faults,
}

impl Service<Request<Bytes>> for Faulty {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let (wire, faults) = (self.wire.clone(), self.faults.clone());
        Box::pin(async move {
            let fate = faults.of(&request);
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            match fate {
                None if is_watch => {
                    let open = Open::of(&faults, request.uri().path());
                    let answer = wire.oneshot(request).await?;
                    Ok(answer.map(|body| {
                        let counted = move |frame| {
                            let _ = &open;
                            frame
                        };
                        body.map_frame(counted).boxed_unsync()
                    }))
                }
                None => wire.oneshot(request).await,
                Some(Fate::Refused) => Err("connection refused".into()),
                Some(Fate::Unanswered) => std::future::pending().await,
                Some(Fate::Lost) => {
                    wire.oneshot(request).await?;
                    Err("connection reset".into())
                }
                Some(Fate::HalfOpen) => Ok(silence()),
                Some(Fate::EmptyList) if is_watch => Ok(silence()),
                Some(Fate::EmptyList) => {
                    let list = r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":""},"items":[]}"#;
                    Ok(answer(200, list.to_owned()))
                }
                Some(Fate::Code(404)) => Ok(answer(404, "404 page not found".into())),
                Some(Fate::Code(code)) => Ok(answer(code, format!(r#"{{"kind":"Status","code":{code},"message":"not today"}}"#))),
            }
        })
    }
}

fn answer(code: u16, text: String) -> Response<Body> {
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(code).body(body).unwrap()
}

/// An answer that begins and does not go on.
fn silence() -> Response<Body> {
    Response::new(StreamBody::new(futures::stream::pending()).boxed_unsync())
}

/// A world with KCM's exports and catalog, in which nothing runs yet.
pub(crate) async fn world(options: Options) -> World {
    let mut world = World::with(Options { started: "2026-01-01T00:00:00Z".parse().unwrap(), ..options }).await;
    furnish(&mut world).await;
    world
}

/// Runs KCM, as `kcm run` does, behind faults.
pub(crate) fn run(world: &World) -> Faults {
    let faults = Faults::default();
    let options = kcp_provider_runtime::runtime::Options { credentials: faults.credentials(world), ..world.options() };
    world.run_with(options, |runtime| runtime.serve(Scheduler::new).serve(Readiness::new));
    faults
}

/// A world of one shard in which KCM runs.
pub(crate) async fn platform() -> (World, Faults) {
    let world = world(Options::default()).await;
    let faults = run(&world);
    (world, faults)
}

/// A tenant who has ordered the cluster `demo`.
pub(crate) async fn tenant(world: &World, name: &str) -> Workspace {
    let workspace = world.workspace(name).await;
    order(&workspace).await;
    workspace
}

pub(crate) async fn order(workspace: &Workspace) {
    for object in samples::tenant() {
        workspace.apply(object).await;
    }
}
