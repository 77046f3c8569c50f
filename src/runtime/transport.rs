//! One HTTP client for everything the runtime says to kcp.
//!
//! `kube::Client` is not used on this path: it retries writes, has no deadline for lists and watch headers, prints bodies it cannot decode, and
//! costs a worker task each. `kube::Config` still reads the kubeconfig and makes TLS and authentication. A workspace client is a URL prefix.
//! What a kubeconfig leads to and what [`Wire`] leads to are one type here; nothing above it knows which of them it has.

use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::ConfigExt;
use kube::config::{AuthInfo, Config, KubeConfigOptions, Kubeconfig};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

use crate::mutants::{Mutant, mutated};

mod kubeconfig;

/// Bytes of an answer at most: a page of 500 objects of 1 MiB each would be more than any process should hold.
const MAX_ANSWER: usize = 256 << 20;
/// Between two readings of the kubeconfig after a 401.
const RELOAD_PAUSE: Duration = Duration::from_secs(2);

/// The body of an answer, from wherever it comes, as it comes.
pub type Body = UnsyncBoxBody<Bytes, std::io::Error>;

type Service = BoxCloneSyncService<Request<Bytes>, Response<Body>, BoxError>;

/// A server that is reached by a call: a service of this process, such as the embedded control plane, or whatever a test puts around it. Cheap
/// to clone; every clone leads to the same server.
#[derive(Clone, Debug)]
pub struct Wire(Service);

impl Wire {
    /// A wire to this service. Its requests have whole URLs and their bodies as [`Bytes`]; its answers may go on for as long as they like.
    pub fn new<S, B>(service: S) -> Self
    where
        S: tower::Service<Request<Bytes>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(BoxCloneSyncService::new(service.map_err(Into::into).map_response(|answer| answer.map(boxed))))
    }
}

/// A wire can be put into another: what stands between a runtime and its server, such as faults, is a service around one.
impl tower::Service<Request<Bytes>> for Wire {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = <Service as tower::Service<Request<Bytes>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        self.0.call(request)
    }
}

fn boxed<B>(body: B) -> Body
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(std::io::Error::other).boxed_unsync()
}

/// Where the credentials come from.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// A kubeconfig file and its current context; read again after a 401.
    File(PathBuf),
    /// `KUBECONFIG`, `~/.kube/config`, or the pod's service account.
    Inferred,
    /// A server of this process. Nothing is read again after a 401.
    Service {
        /// The way to it.
        wire: Wire,
        /// The base of its URLs as a kubeconfig would have it, for example `https://embedded.invalid:6443`: it only travels in requests.
        server: String,
        /// The bearer token that every request carries.
        token: SecretString,
    },
}

impl Credentials {
    async fn load(&self) -> Result<(String, Ways), String> {
        if let Self::Service { wire, server, token } = self {
            let (bare, own) = (wire.0.clone(), with_token(wire.0.clone(), token)?);
            return Ok((server.clone(), Ways { own, bare, authority: None }));
        }
        let mut config = self.config().await?;
        let own = service(&config)?;
        // A client's certificate says who it is before any token does.
        config.auth_info = AuthInfo::default();
        let authority = config.root_cert.as_deref().map(authority);
        Ok((config.cluster_url.to_string(), Ways { own, bare: service(&config)?, authority }))
    }

    async fn config(&self) -> Result<Config, String> {
        match self {
            Self::Service { .. } => Err("a server of this process has no kubeconfig".into()),
            Self::File(path) => {
                let unreadable = |error: &dyn std::fmt::Display| format!("cannot read the kubeconfig {}: {error}", path.display());
                let kubeconfig = Kubeconfig::read_from(path).map_err(|error| unreadable(&error))?;
                without_proxy(&kubeconfig).map_err(|problem| unreadable(&problem))?;
                let options = KubeConfigOptions::default();
                Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| unreadable(&error))
            }
            Self::Inferred => {
                // Reads the same files in the same order; where there are none, a pod's service account has no proxy.
                Kubeconfig::read().map_or(Ok(()), |kubeconfig| without_proxy(&kubeconfig))?;
                Config::infer().await.map_err(|error| format!("cannot find a kubeconfig: {error}"))
            }
        }
    }
}

/// What credentials lead to.
struct Ways {
    /// As whoever the credentials are of.
    own: Service,
    /// As nobody: the request says who.
    bare: Service,
    /// The certificates that the server is known by, as a kubeconfig holds them.
    authority: Option<String>,
}

/// Certificates as a kubeconfig holds them: PEM, in base64 once more.
fn authority(certificates: &[Vec<u8>]) -> String {
    let mut pem = String::new();
    for certificate in certificates {
        pem.push_str("-----BEGIN CERTIFICATE-----\n");
        for line in BASE64.encode(certificate).as_bytes().chunks(64) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem.push_str("-----END CERTIFICATE-----\n");
    }
    BASE64.encode(pem)
}

/// The bytes that a field of a Secret holds.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// Refuses a kubeconfig whose current cluster is behind a proxy: no client here speaks to one, and a connection that goes around it is not
/// what the file asks for. A proxy in the environment is for other programs.
pub(crate) fn without_proxy(kubeconfig: &Kubeconfig) -> Result<(), String> {
    let current = kubeconfig.contexts.iter().find(|context| Some(&context.name) == kubeconfig.current_context.as_ref());
    let name = current.and_then(|named| named.context.as_ref()).map(|context| &context.cluster);
    let cluster = kubeconfig.clusters.iter().find(|cluster| Some(&cluster.name) == name).and_then(|named| named.cluster.as_ref());
    let proxy = cluster.and_then(|cluster| cluster.proxy_url.as_deref()).filter(|proxy| !proxy.is_empty());
    proxy.map_or(Ok(()), |_| Err("it has a proxy-url, which is not supported: use an address that is reached directly".into()))
}

/// An answer read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Bytes,
}

/// What is sent.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) accept: &'static str,
    /// Content type and body.
    pub(crate) body: Option<(&'static str, Bytes)>,
}

impl Ask {
    /// A GET for JSON.
    pub(crate) fn get(url: String, accept: &'static str) -> Self {
        Self { method: Method::GET, url, accept, body: None }
    }
}

/// The shared client; cheap to clone by `Arc`.
pub(crate) struct Transport {
    credentials: Credentials,
    ways: ArcSwap<Ways>,
    last_reload: Mutex<Option<Instant>>,
    /// How many requests may wait for their headers at once.
    permits: Semaphore,
    server: String,
}

impl Transport {
    /// Reads the credentials and builds the client; connects to nothing yet.
    pub(crate) async fn new(credentials: Credentials, requests: usize) -> Result<Self, String> {
        let (server, ways) = credentials.load().await?;
        let server = server.trim_end_matches('/').to_owned();
        Ok(Self {
            credentials,
            ways: ArcSwap::from_pointee(ways),
            last_reload: Mutex::new(None),
            permits: Semaphore::new(requests.clamp(1, Semaphore::MAX_PERMITS)),
            server,
        })
    }

    /// The server, as the credentials have it.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// The certificates that the server is known by, as a kubeconfig holds them; `None` where the system's are.
    pub(crate) fn authority(&self) -> Option<String> {
        self.ways.load().authority.clone()
    }

    /// Sends and reads the whole answer within `deadline`.
    pub(crate) async fn send(&self, ask: &Ask, deadline: Duration) -> Result<Reply, String> {
        whole(self.open(ask), deadline).await
    }

    /// The same as somebody else, by a bearer token.
    pub(crate) async fn send_as(&self, ask: &Ask, token: &SecretString, deadline: Duration) -> Result<Reply, String> {
        let way = with_token(self.ways.load().bare.clone(), token)?;
        whole(self.once(ask, &way), deadline).await
    }
    /// Sends and returns once the headers are there; on a 401 reads the credentials again and sends once more, for a 401 is never half done.
    pub(crate) async fn open(&self, ask: &Ask) -> Result<Response<Body>, String> {
        let used = self.ways.load_full();
        let response = self.once(ask, &used.own).await?;
        if response.status() != StatusCode::UNAUTHORIZED || !self.reload(&used).await {
            return Ok(response);
        }
        self.once(ask, &self.ways.load_full().own).await
    }

    async fn once(&self, ask: &Ask, service: &Service) -> Result<Response<Body>, String> {
        let mut request = Request::builder().method(ask.method.clone()).uri(&ask.url).header(ACCEPT, ask.accept).header(USER_AGENT, AGENT);
        if let Some((content_type, _)) = &ask.body {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        let body = ask.body.as_ref().map(|(_, body)| body.clone()).unwrap_or_default();
        let request = request.body(body).map_err(|error| format!("the URL {} is malformed: {error}", ask.url))?;
        // Given back with the headers: an open watch keeps nobody waiting.
        let _permit = self.permits.acquire().await.map_err(|error| error.to_string())?;
        service.clone().oneshot(request).await.map_err(|error| causes(error.as_ref()))
    }

    /// Whether others than those that were used are in force; many callers cause one reading, however late they hear of their refusal.
    async fn reload(&self, used: &Arc<Ways>) -> bool {
        if matches!(self.credentials, Credentials::Service { .. }) {
            return false;
        }
        let mut last = self.last_reload.lock().await;
        if !Arc::ptr_eq(used, &self.ways.load_full()) {
            return true;
        }
        if last.is_some_and(|at| at.elapsed() < RELOAD_PAUSE) {
            return false;
        }
        *last = Some(Instant::now());
        match self.credentials.load().await {
            Ok((_, fresh)) => {
                self.ways.store(Arc::new(fresh));
                tracing::info!("the server refused the credentials; they were read again");
                true
            }
            Err(error) => {
                tracing::error!(%error, "the server refused the credentials, and they cannot be read again");
                false
            }
        }
    }
}

async fn whole(opened: impl Future<Output = Result<Response<Body>, String>>, deadline: Duration) -> Result<Reply, String> {
    let whole = async {
        let (parts, body) = opened.await?.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|error| format!("the answer broke off: {error}"))?.to_bytes();
        Ok(Reply { status: parts.status, retry_after: retry_after(&parts.headers), body })
    };
    let deadline = if mutated(Mutant::NoListDeadline) { Duration::from_hours(24) } else { deadline };
    tokio::time::timeout(deadline, whole).await.unwrap_or_else(|_| Err(format!("no answer within {} s", deadline.as_secs())))
}

/// The wait that the server asks for, where it does so in seconds.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER).and_then(|seconds| seconds.to_str().ok()?.parse().ok()).map(Duration::from_secs)
}

const AGENT: &str = concat!("kcp-provider-runtime/", env!("CARGO_PKG_VERSION"));

fn service(config: &Config) -> Result<Service, String> {
    let unusable = |error: kube::Error| format!("cannot use the kubeconfig: {error}");
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(Duration::from_secs(10)));
    connector.set_keepalive(Some(Duration::from_secs(20)));
    let https = config.rustls_https_connector_with_connector(connector).map_err(unusable)?;
    // Go servers close idle connections after 90 s; giving them up earlier avoids the race.
    let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).pool_idle_timeout(Duration::from_mins(1)).build(https);
    let auth = config.auth_layer().map_err(unusable)?;
    // Whom a kubeconfig's `as:` impersonates.
    let extra_headers = config.extra_headers_layer().map_err(unusable)?;
    let layered = ServiceBuilder::new().option_layer(auth).layer(extra_headers).map_err(BoxError::from).service(client);
    Ok(BoxCloneSyncService::new(layered.map_request(|ask: Request<Bytes>| ask.map(Full::new)).map_response(|answer| answer.map(boxed))))
}

fn with_token(service: Service, token: &SecretString) -> Result<Service, String> {
    let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))
        .map_err(|_| "the token holds what no header can hold".to_owned())?;
    bearer.set_sensitive(true);
    Ok(BoxCloneSyncService::new(service.map_request(move |mut ask: Request<Bytes>| {
        ask.headers_mut().insert(AUTHORIZATION, bearer.clone());
        ask
    })))
}

/// An error with its causes, which say more than it does: `client error (Connect): tcp connect error: Connection refused`.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests;
