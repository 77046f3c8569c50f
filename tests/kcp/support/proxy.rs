//! A proxy between the manager and kcp: it counts what is asked, can swallow what watches say, end them, and be as bad as networks are.
//!
//! It speaks plain HTTP to the manager and TLS to kcp, and passes the manager's `Authorization` header through. The upstream host is the first
//! segment of a path, so that one proxy serves the provider workspace and every endpoint URL alike.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt as _, future, stream};
use http_body_util::BodyExt as _;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kcp_provider_runtime::runtime::{Credentials, Options};
use kube::client::ConfigExt as _;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::platform::{Platform, gently};

/// What a request does to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verb {
    List,
    Watch,
    Get,
    Write,
}

/// A running proxy; it ends with the test's runtime.
pub(crate) struct Proxy {
    address: SocketAddr,
    inside: Arc<Inside>,
    kubeconfig: tempfile::NamedTempFile,
}

/// How bad a network is; the default is a good one.
#[allow(dead_code, reason = "for the hard days")]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trouble {
    /// Every answer waits for so long.
    pub(crate) delay: Duration,
    /// Every line of a watch comes twice.
    pub(crate) twice: bool,
    /// Every watch is asked for from the beginning of time, which the server has forgotten: it answers 410.
    pub(crate) forgotten: bool,
    /// One of so many answers breaks off in its middle; 0 for none.
    pub(crate) broken: usize,
}

struct Inside {
    /// Set for what goes through a dead network: it stays without an answer, also after the network is mended.
    dead: Mutex<Arc<AtomicBool>>,
    trouble: Mutex<Trouble>,
    answers: AtomicUsize,
    upstream: Client<HttpsConnector<HttpConnector>, Body>,
    counts: Mutex<BTreeMap<(Verb, String), usize>>,
    silent: Mutex<BTreeSet<String>>,
    failing: Mutex<BTreeSet<String>>,
    open: Mutex<CancellationToken>,
}

impl Proxy {
    /// A proxy that passes everything, to the server that this kubeconfig names.
    pub(crate) async fn start(kubeconfig: PathBuf) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (config, kubeconfig) = through(&kubeconfig, address).await;
        let upstream = Client::builder(TokioExecutor::new()).build(config.rustls_https_connector().unwrap());
        let (counts, silent, failing, open) = (Mutex::default(), Mutex::default(), Mutex::default(), Mutex::default());
        let (dead, trouble, answers) = (Mutex::default(), Mutex::default(), AtomicUsize::new(0));
        let inside = Arc::new(Inside { dead, trouble, answers, upstream, counts, silent, failing, open });
        let routes = Router::new().fallback(pass).with_state(inside.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { address, inside, kubeconfig }
    }

    /// What a manager of this platform runs with so that everything it says goes through the proxy.
    pub(crate) fn options(&self, platform: &Platform) -> Options {
        let credentials = Credentials::File(self.kubeconfig.path().to_owned());
        let mut options =
            gently(Options::new(credentials, platform.report.identity.export.clone()).with_workspace(platform.connection.path.clone()));
        options.endpoint_overrides = vec![("https://".to_owned(), format!("http://{}/", self.address))];
        options
    }

    /// From now on no watch of these resources (`plural.group`) says anything: headers, then silence.
    pub(crate) fn silence(&self, resources: impl IntoIterator<Item = &'static str>) {
        self.inside.silent.lock().extend(resources.into_iter().map(ToOwned::to_owned));
    }

    /// From now on every request for these resources is answered 503, and their watches end.
    pub(crate) fn fail(&self, resources: impl IntoIterator<Item = &'static str>) {
        self.inside.failing.lock().extend(resources.into_iter().map(ToOwned::to_owned));
        self.end_watches();
    }

    /// From now on nothing is answered and nothing comes any more, and no connection ends: half-open, as after a router's loss of power.
    #[allow(dead_code, reason = "for the hard days")]
    pub(crate) fn die(&self) {
        self.inside.dead.lock().store(true, Ordering::Relaxed);
    }

    /// From now on answers are in this trouble.
    #[allow(dead_code, reason = "for the hard days")]
    pub(crate) fn trouble(&self, trouble: Trouble) {
        *self.inside.trouble.lock() = trouble;
    }

    /// Passes everything again that is asked from now on.
    pub(crate) fn mend(&self) {
        self.inside.failing.lock().clear();
        *self.inside.dead.lock() = Arc::default();
        *self.inside.trouble.lock() = Trouble::default();
    }

    /// Ends every watch that is open, as a server does after some minutes.
    pub(crate) fn end_watches(&self) {
        std::mem::take(&mut *self.inside.open.lock()).cancel();
    }

    /// How many requests of that verb there were for that resource (`plural.group`).
    pub(crate) fn count(&self, verb: Verb, resource: &str) -> usize {
        self.inside.counts.lock().get(&(verb, resource.to_owned())).copied().unwrap_or_default()
    }
}

/// The configuration towards kcp, and a kubeconfig with the same user whose server is the proxy.
async fn through(file: &Path, proxy: SocketAddr) -> (Config, tempfile::NamedTempFile) {
    let mut kubeconfig = Kubeconfig::read_from(file).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default()).await.unwrap();
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        let server = cluster.server.take().unwrap();
        cluster.server = Some(format!("http://{proxy}/{}", server.strip_prefix("https://").unwrap()));
        cluster.certificate_authority_data = None;
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(serde_json::to_string(&kubeconfig).unwrap().as_bytes()).unwrap();
    (config, file)
}

async fn pass(State(inside): State<Arc<Inside>>, mut request: Request) -> Response {
    let (verb, resource) = asked(request.method(), request.uri());
    *inside.counts.lock().entry((verb, resource.clone())).or_default() += 1;
    if inside.failing.lock().contains(&resource) {
        return answer(StatusCode::SERVICE_UNAVAILABLE, "out of order");
    }
    let (trouble, dead) = (*inside.trouble.lock(), inside.dead.lock().clone());
    if dead.load(Ordering::Relaxed) {
        return future::pending().await;
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let path = if trouble.forgotten && verb == Verb::Watch { from_the_beginning(path) } else { path.to_owned() };
    let Ok(uri) = format!("https:/{path}").parse() else { return answer(StatusCode::BAD_REQUEST, "no upstream in the path") };
    *request.uri_mut() = uri;
    request.headers_mut().remove(header::HOST);
    let (parts, body) = match inside.upstream.request(request).await {
        Ok(response) => response.into_parts(),
        Err(error) => return answer(StatusCode::BAD_GATEWAY, &error.to_string()),
    };
    let ended = inside.open.lock().clone();
    // Whoever ends all watches waits for nobody.
    let _ = tokio::time::timeout(trouble.delay, ended.cancelled()).await;
    let nth = inside.answers.fetch_add(1, Ordering::Relaxed);
    let breaks = trouble.broken > 0 && nth % trouble.broken == 0;
    let watch = verb == Verb::Watch && parts.status.is_success();
    let ended = async move { if watch { ended.cancelled_owned().await } else { future::pending().await } };
    let frames = body.into_data_stream().map(|frame| frame.map_err(std::io::Error::other));
    let frames = frames.filter(move |_| future::ready(!watch || !inside.silent.lock().contains(&resource)));
    let frames = frames.then(move |frame| {
        let dead = dead.clone();
        async move {
            if dead.load(Ordering::Relaxed) {
                return future::pending().await;
            }
            frame
        }
    });
    let frames = frames.flat_map(move |frame| stream::iter(spoilt(frame, trouble.twice && watch, breaks)));
    Response::from_parts(parts, Body::from_stream(frames.take_until(Box::pin(ended))))
}

/// The same watch from version 1.
fn from_the_beginning(path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let kept = query.split('&').map(|pair| if pair.starts_with("resourceVersion=") { "resourceVersion=1" } else { pair });
    format!("{path}?{}", kept.collect::<Vec<_>>().join("&"))
}

/// A piece of an answer as it comes out of a network in trouble.
fn spoilt(frame: std::io::Result<Bytes>, twice: bool, breaks: bool) -> Vec<std::io::Result<Bytes>> {
    let Ok(bytes) = frame else { return vec![frame] };
    if breaks {
        let half = bytes.slice(..bytes.len() / 2);
        return vec![Ok(half), Err(std::io::Error::other("broken off"))];
    }
    // Only whole lines can come twice.
    if twice && bytes.starts_with(b"{") && bytes.ends_with(b"\n") { vec![Ok(bytes.clone()), Ok(bytes)] } else { vec![Ok(bytes)] }
}

fn answer(status: StatusCode, text: &str) -> Response {
    let mut response = Response::new(Body::from(text.to_owned()));
    *response.status_mut() = status;
    response
}

/// What a request asks for: `…/clusters/<workspace>/apis/<group>/<version>[/namespaces/<namespace>]/<plural>[/<name>[/<subresource>]]`.
fn asked(method: &Method, uri: &Uri) -> (Verb, String) {
    let mut segments = uri.path().split('/').skip_while(|segment| *segment != "clusters").skip(2);
    let group = if segments.next() == Some("apis") { segments.next().unwrap_or_default() } else { "" };
    let mut rest: Vec<&str> = segments.skip(1).collect();
    if rest.len() > 2 && rest[0] == "namespaces" {
        rest.drain(..2);
    }
    let plural = rest.first().copied().unwrap_or_default();
    let resource = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    let verb = match (method, rest.len()) {
        (&Method::GET, _) if uri.query().is_some_and(|query| query.contains("watch=true")) => Verb::Watch,
        (&Method::GET, 1) => Verb::List,
        (&Method::GET, _) => Verb::Get,
        _ => Verb::Write,
    };
    (verb, resource)
}
