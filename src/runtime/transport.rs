//! One HTTP client for everything the runtime says to kcp.
//!
//! `kube::Client` is not used on this path: it retries writes, has no deadline for lists and watch headers, prints bodies it cannot decode, and
//! costs a worker task each. `kube::Config` still reads the kubeconfig and makes TLS and authentication. A workspace client is a URL prefix.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::ConfigExt;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

/// Bytes of an answer at most: a page of 500 objects of 1 MiB each would be more than any process should hold.
const MAX_ANSWER: usize = 256 << 20;
/// Between two readings of the kubeconfig after a 401.
const RELOAD_PAUSE: Duration = Duration::from_secs(2);

type Service = BoxCloneSyncService<Request<Full<Bytes>>, Response<Incoming>, BoxError>;

/// Where the credentials come from.
///
/// What a kubeconfig says of impersonation (`as`, `as-groups`, `as-uid`) is done. One whose cluster has a `proxy-url` is refused, for the
/// runtime speaks to kcp directly; proxies of the environment are not used either.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// A kubeconfig file and its current context; read again after a 401.
    File(PathBuf),
    /// `KUBECONFIG`, `~/.kube/config`, or the pod's service account.
    Inferred,
}

impl Credentials {
    async fn load(&self) -> Result<Config, String> {
        match self {
            Self::File(path) => {
                let unreadable = |error: &dyn std::fmt::Display| format!("cannot read the kubeconfig {}: {error}", path.display());
                let kubeconfig = Kubeconfig::read_from(path).map_err(|error| unreadable(&error))?;
                direct(&kubeconfig)?;
                let options = KubeConfigOptions::default();
                Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| unreadable(&error))
            }
            Self::Inferred => {
                // In a pod there is none; whatever else is wrong with it is told by what follows.
                if let Ok(kubeconfig) = Kubeconfig::read() {
                    direct(&kubeconfig)?;
                }
                Config::infer().await.map_err(|error| format!("cannot find a kubeconfig: {error}"))
            }
        }
    }
}

/// Refuses a kubeconfig whose current context wants a proxy: to go past it in silence could be worse than not to go.
fn direct(kubeconfig: &Kubeconfig) -> Result<(), String> {
    let current = kubeconfig.contexts.iter().find(|context| Some(&context.name) == kubeconfig.current_context.as_ref());
    let name = current.and_then(|current| current.context.as_ref()).map(|context| &context.cluster);
    let cluster = kubeconfig.clusters.iter().find(|cluster| Some(&cluster.name) == name).and_then(|cluster| cluster.cluster.as_ref());
    match cluster.and_then(|cluster| cluster.proxy_url.as_deref()) {
        None | Some("") => Ok(()),
        Some(_) => Err("the kubeconfig asks for a proxy (proxy-url), which is not supported".into()),
    }
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
    service: ArcSwap<Service>,
    last_reload: Mutex<Option<Instant>>,
    server: String,
}

impl Transport {
    /// Reads the credentials and builds the client; connects to nothing yet.
    pub(crate) async fn new(credentials: Credentials) -> Result<Self, String> {
        let config = credentials.load().await?;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let service = ArcSwap::from_pointee(service(&config)?);
        Ok(Self { credentials, service, last_reload: Mutex::new(None), server })
    }

    /// The server of the kubeconfig, as written there.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Sends and reads the whole answer within `deadline`.
    pub(crate) async fn send(&self, ask: &Ask, deadline: Duration) -> Result<Reply, String> {
        let whole = async {
            let response = self.open(ask).await?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|error| format!("the answer broke off: {error}"))?.to_bytes();
            let retry_after = parts.headers.get(RETRY_AFTER).and_then(|v| v.to_str().ok()?.parse().ok()).map(Duration::from_secs);
            Ok(Reply { status: parts.status, retry_after, body })
        };
        tokio::time::timeout(deadline, whole).await.unwrap_or_else(|_| Err(format!("no answer within {} s", deadline.as_secs())))
    }

    /// Sends and returns once the headers are there; on a 401 reads the credentials again and sends once more, for a 401 is never half done.
    pub(crate) async fn open(&self, ask: &Ask) -> Result<Response<Incoming>, String> {
        let response = self.once(ask).await?;
        if response.status() != StatusCode::UNAUTHORIZED || !self.reload().await {
            return Ok(response);
        }
        self.once(ask).await
    }

    async fn once(&self, ask: &Ask) -> Result<Response<Incoming>, String> {
        let mut request = Request::builder().method(ask.method.clone()).uri(&ask.url).header(ACCEPT, ask.accept).header(USER_AGENT, AGENT);
        if let Some((content_type, _)) = &ask.body {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        let body = ask.body.as_ref().map(|(_, body)| body.clone()).unwrap_or_default();
        let request = request.body(Full::new(body)).map_err(|error| format!("the URL {} is malformed: {error}", ask.url))?;
        let service = Service::clone(&self.service.load());
        service.oneshot(request).await.map_err(|error| causes(error.as_ref()))
    }

    /// Whether new credentials are in force; many callers at once cause one reading.
    async fn reload(&self) -> bool {
        let asked = Instant::now();
        let mut last = self.last_reload.lock().await;
        if last.is_some_and(|at| at > asked) {
            return true;
        }
        if last.is_some_and(|at| asked - at < RELOAD_PAUSE) {
            return false;
        }
        *last = Some(Instant::now());
        let fresh = match self.credentials.load().await {
            Ok(config) => service(&config),
            Err(error) => Err(error),
        };
        match fresh {
            Ok(fresh) => {
                self.service.store(Arc::new(fresh));
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
    // Whom the kubeconfig impersonates.
    let headers = config.extra_headers_layer().map_err(unusable)?;
    Ok(BoxCloneSyncService::new(ServiceBuilder::new().option_layer(auth).layer(headers).map_err(BoxError::from).service(client)))
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
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A kubeconfig with these fields in its cluster and its user.
    fn kubeconfig(server: &str, cluster: &str, user: &str) -> (tempfile::TempDir, Credentials) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        let text = format!(
            r#"{{"apiVersion":"v1","kind":"Config","current-context":"it","contexts":[{{"name":"it","context":{{"cluster":"c","user":"u"}}}}],
            "clusters":[{{"name":"c","cluster":{{"server":"{server}"{cluster}}}}}],"users":[{{"name":"u","user":{{{user}}}}}]}}"#
        );
        std::fs::write(&path, text).unwrap();
        (dir, Credentials::File(path))
    }

    #[tokio::test]
    async fn whom_the_kubeconfig_impersonates_is_told_to_the_server() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let heard = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(socket.read_u8().await.unwrap());
            }
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            String::from_utf8(request).unwrap().to_lowercase()
        });
        let (_dir, credentials) = kubeconfig(&server, "", r#""as":"alice","as-groups":["painters"]"#);
        let transport = Transport::new(credentials).await.unwrap();
        let reply = transport.send(&Ask::get(format!("{server}/"), "application/json"), Duration::from_secs(30)).await.unwrap();
        assert_eq!(reply.status, StatusCode::OK);
        let heard = heard.await.unwrap();
        assert!(heard.contains("impersonate-user: alice\r\n") && heard.contains("impersonate-group: painters\r\n"), "{heard}");
    }

    #[tokio::test]
    async fn a_kubeconfig_that_asks_for_a_proxy_is_refused() {
        let (_dir, credentials) = kubeconfig("https://kcp.test", r#","proxy-url":"http://user:secret@proxy.test""#, "");
        let problem = Transport::new(credentials).await.err().unwrap();
        assert!(problem.contains("proxy-url") && !problem.contains("secret"), "{problem}");
        let (_dir, credentials) = kubeconfig("https://kcp.test", r#","proxy-url":"""#, "");
        assert!(Transport::new(credentials).await.is_ok());
    }
}
