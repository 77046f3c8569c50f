//! The TLS server in front of the control plane.
//!
//! Its certificates live as long as it does: made at start, known to nobody but through the kubeconfig. It speaks HTTP/1.1, one request at
//! a time on a connection, as Go and Rust clients both do well.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, BodyStream, LengthLimitError, Limited, StreamBody};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{Service, ServiceExt as _};

use crate::embedded::body::{self, Body};
use crate::embedded::errors::Refusal;

/// The largest body of a request, in bytes; API servers on etcd have the same limit.
pub const MAX_BODY: usize = 3 * 1024 * 1024;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long a request that is being answered may go on after [`Listener::stop`].
const GRACE: Duration = Duration::from_secs(5);

/// A TLS server. Dropping it stops it too, but does not wait.
#[derive(Debug)]
pub struct Listener {
    url: String,
    ca_pem: String,
    stopped: CancellationToken,
    connections: TaskTracker,
}

impl Listener {
    /// Serves `service` at an address; port 0 takes a free one. Bodies are read before the service is called; one larger than [`MAX_BODY`]
    /// is answered with 413.
    ///
    /// # Errors
    /// When the address cannot be had, or no certificate be made.
    pub async fn bind<S>(address: SocketAddr, service: S) -> io::Result<Self>
    where
        S: Service<Request<Bytes>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Future: Send,
    {
        let (config, ca_pem) = certificates(address.ip()).map_err(io::Error::other)?;
        let socket = TcpListener::bind(address).await?;
        let url = format!("https://{}", socket.local_addr()?);
        let (stopped, connections) = (CancellationToken::new(), TaskTracker::new());
        let acceptor = TlsAcceptor::from(Arc::new(config));
        connections.spawn(accept(socket, acceptor, service, stopped.clone(), connections.clone()));
        Ok(Self { url, ca_pem, stopped, connections })
    }

    /// `https://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// The certificate of the authority that signed the server's, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Stops: open watches end as if their time were up, other answers are finished, new connections are refused.
    pub async fn stop(self) {
        self.stopped.cancel();
        self.connections.close();
        self.connections.wait().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stopped.cancel();
    }
}

async fn accept<S>(socket: TcpListener, acceptor: TlsAcceptor, service: S, stopped: CancellationToken, connections: TaskTracker)
where
    S: Service<Request<Bytes>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = stopped.cancelled() => return,
        };
        // A connection that was gone before it was accepted is the client's business.
        let Ok((stream, _)) = accepted else { continue };
        connections.spawn(connection(stream, acceptor.clone(), service.clone(), stopped.clone()));
    }
}

async fn connection<S>(stream: TcpStream, acceptor: TlsAcceptor, service: S, stopped: CancellationToken)
where
    S: Service<Request<Bytes>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    // Watch events are small and are wanted at once.
    let _ = stream.set_nodelay(true);
    let shaken = tokio::select! {
        shaken = timeout(HANDSHAKE, acceptor.accept(stream)) => shaken,
        () = stopped.cancelled() => return,
    };
    // Whoever does not trust the certificate says so to its user; there is nothing to answer.
    let Ok(Ok(stream)) = shaken else { return };
    let answers = hyper::service::service_fn(|request| answer(request, service.clone(), stopped.clone()));
    let connection = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), answers);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // An error here is a connection that broke, which the client sees as well.
        _ = connection.as_mut() => {}
        () = stopped.cancelled() => {
            connection.as_mut().graceful_shutdown();
            let _ = timeout(GRACE, connection).await;
        }
    }
}

async fn answer<S>(request: Request<Incoming>, service: S, stopped: CancellationToken) -> Result<Response<Body>, Infallible>
where
    S: Service<Request<Bytes>, Response = Response<Body>, Error = Infallible>,
{
    let (head, incoming) = request.into_parts();
    let answer = match Limited::new(incoming, MAX_BODY).collect().await {
        Ok(body) => service.oneshot(Request::from_parts(head, body.to_bytes())).await?,
        Err(error) if error.is::<LengthLimitError>() => refused(&too_large()),
        Err(error) => refused(&Refusal::bad_request(error.to_string())),
    };
    Ok(answer.map(|body| ending(body, stopped)))
}

/// A body of unknown length ends when the server stops.
fn ending(body: Body, stopped: CancellationToken) -> Body {
    if body.size_hint().exact().is_some() {
        return body;
    }
    StreamBody::new(BodyStream::new(body).take_until(stopped.cancelled_owned())).boxed_unsync()
}

fn too_large() -> Refusal {
    let message = format!("Request entity too large: limit is {MAX_BODY}");
    Refusal { code: 413, reason: "RequestEntityTooLarge", ..Refusal::bad_request(message) }
}

fn refused(refusal: &Refusal) -> Response<Body> {
    let mut response = Response::new(body::full(refusal.status().to_string()));
    *response.status_mut() = StatusCode::from_u16(refusal.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

/// A new authority and a server certificate for this machine under its usual names; the authority in PEM.
fn certificates(address: IpAddr) -> Result<(ServerConfig, String), Box<dyn std::error::Error + Send + Sync>> {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "embedded control plane");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate()?;
    let ca_pem = authority.self_signed(&authority_key)?.pem();

    let mut server = CertificateParams::new(["localhost".to_owned()])?;
    let mut addresses = vec![IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
    if !addresses.contains(&address) && !address.is_unspecified() {
        addresses.push(address);
    }
    server.subject_alt_names.extend(addresses.into_iter().map(SanType::IpAddress));
    server.distinguished_name.push(DnType::CommonName, "localhost");
    server.use_authority_key_identifier_extension = true;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &Issuer::new(authority, authority_key))?;

    let chain = vec![CertificateDer::from(certificate)];
    let key = PrivateKeyDer::try_from(key.serialize_der())?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider())).with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((config, ca_pem))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;
    use tokio_rustls::rustls::pki_types::pem::PemObject as _;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    use super::*;

    async fn listener() -> Listener {
        let service = tower::service_fn(|request: Request<Bytes>| async move {
            let body = match request.uri().path() {
                "/watch" => body::stream(futures::stream::iter([Bytes::from_static(b"first")]).chain(futures::stream::pending())),
                _ => body::full(request.body().len().to_string()),
            };
            Ok(Response::new(body))
        });
        Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), service).await.unwrap()
    }

    async fn connect(listener: &Listener, name: &'static str) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(listener.ca_pem().as_bytes()).unwrap()).unwrap();
        let builder =
            ClientConfig::builder_with_provider(Arc::new(ring::default_provider())).with_safe_default_protocol_versions().unwrap();
        let connector = TlsConnector::from(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()));
        let address = listener.url().replace("https://", "");
        connector.connect(name.try_into().unwrap(), TcpStream::connect(address).await.unwrap()).await.unwrap()
    }

    async fn ask(listener: &Listener, head: &str, body: &[u8]) -> String {
        let mut stream = connect(listener, "localhost").await;
        stream
            .write_all(format!("{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes())
            .await
            .unwrap();
        stream.write_all(body).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn a_client_that_trusts_the_authority_is_served_under_every_usual_name() {
        let listener = listener().await;
        for name in ["localhost", "127.0.0.1", "::1"] {
            connect(&listener, name).await;
        }
        let answer = ask(&listener, "POST /", b"four").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\n4"), "{answer}");
        listener.stop().await;
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_refused() {
        let listener = listener().await;
        let answer = ask(&listener, "POST /", &vec![b'a'; MAX_BODY]).await;
        assert!(answer.ends_with("\r\n\r\n3145728"), "the limit itself is allowed: {answer}");
        // Only the length is announced: a server that refuses it need not read on.
        let mut stream = connect(&listener, "localhost").await;
        stream.write_all(format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", MAX_BODY + 1).as_bytes()).await.unwrap();
        stream.write_all(&vec![b'a'; MAX_BODY + 1]).await.unwrap();
        let mut answer = vec![0; 1024];
        let length = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..length]);
        assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("Request entity too large: limit is 3145728"), "{answer}");
    }

    #[tokio::test]
    async fn an_open_watch_ends_when_the_server_stops() {
        let listener = listener().await;
        let mut stream = connect(&listener, "localhost").await;
        stream.write_all(b"GET /watch HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut seen = String::new();
        while !seen.contains("first") {
            let mut piece = [0; 1024];
            let length = stream.read(&mut piece).await.unwrap();
            seen.push_str(std::str::from_utf8(&piece[..length]).unwrap());
        }
        let mut rest = String::new();
        let ((), read) = tokio::join!(listener.stop(), stream.read_to_string(&mut rest));
        read.unwrap();
        assert!(rest.ends_with("0\r\n\r\n"), "the stream is ended, not torn: {rest:?}");
    }
}
