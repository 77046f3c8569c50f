//! A server that answers: the real kcp over HTTPS, or whatever else speaks its language.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use http::{HeaderMap, Request, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::config::{AuthInfo, Config, KubeConfigOptions, Kubeconfig};
use secrecy::ExposeSecret as _;

/// What a server is sent, with all symbols replaced.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// The bearer token, none for anonymous.
    pub(crate) token: Option<String>,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) body: Option<String>,
    /// A stream is read until nothing came for this long; other answers to their end.
    pub(crate) quiet: Option<Duration>,
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

/// A server.
#[async_trait]
pub(crate) trait Target: Send + Sync {
    /// Sends one request and reads its answer; a stream's until it is quiet.
    async fn send(&self, sent: &Sent) -> anyhow::Result<Got>;

    /// The token of a user of [`super::plan::Who`] by its name: `admin`, `tenant`, `nobody`, `runtime`.
    fn token(&self, user: &str) -> Option<String>;

    /// What its URLs start with, such as `https://127.0.0.1:6443`.
    fn base_url(&self) -> &str;
}

/// A server over HTTPS.
pub(crate) struct Https {
    client: Client,
    base_url: String,
    tokens: BTreeMap<&'static str, String>,
}

/// The users besides the administrator, in the form of kcp's `--token-auth-file`.
pub(crate) const TOKENS: &str =
    "tenant-token,tenant,uid-tenant,\"team-tenants\"\nnobody-token,nobody,uid-nobody\nruntime-token,runtime,uid-runtime,\"team-runtime\"\n";

/// Longer than any answer takes; kcp waits 3 s for a resourceVersion of the future.
const ANSWER_WITHIN: Duration = Duration::from_mins(1);

impl Https {
    /// The server and administrator of a kcp's own kubeconfig; the other users are those of [`TOKENS`].
    pub(crate) async fn from_kubeconfig(path: &Path) -> anyhow::Result<Self> {
        let kubeconfig = Kubeconfig::read_from(path)?;
        let admin = kubeconfig.auth_infos.iter().find(|user| user.name == "kcp-admin").and_then(|user| user.auth_info.as_ref());
        let token = admin.and_then(|user| user.token.as_ref()).context("kcp-admin has no token")?.expose_secret().to_owned();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let base_url = config.cluster_url.to_string();
        let base_url = base_url.split("/clusters/").next().unwrap_or_default().trim_end_matches('/').to_owned();
        config.cluster_url = base_url.parse()?;
        config.auth_info = AuthInfo::default();
        config.default_retry = false;
        config.read_timeout = None;
        config.proxy_url = None;
        let mut tokens = BTreeMap::from([("admin", token)]);
        for user in ["tenant", "nobody", "runtime"] {
            tokens.insert(user, format!("{user}-token"));
        }
        Ok(Self { client: Client::try_from(config)?, base_url, tokens })
    }
}

#[async_trait]
impl Target for Https {
    async fn send(&self, sent: &Sent) -> anyhow::Result<Got> {
        let mut request = Request::builder().method(sent.method).uri(&sent.path).header(header::ACCEPT, sent.accept);
        if let Some(token) = &sent.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        // The first word of it is the field manager of those who name none.
        request = request.header(header::USER_AGENT, "differential/1");
        if sent.body.is_some() {
            request = request.header(header::CONTENT_TYPE, sent.content_type);
        }
        let request = request.body(Body::from(sent.body.clone().unwrap_or_default().into_bytes()))?;
        let answer = tokio::time::timeout(ANSWER_WITHIN, self.client.send(request)).await.context("no answer")??;
        let (parts, mut body) = answer.into_parts();
        let mut bytes = Vec::new();
        loop {
            let next = tokio::time::timeout(sent.quiet.unwrap_or(ANSWER_WITHIN), body.frame()).await;
            match next {
                Ok(Some(frame)) => bytes.extend(frame?.into_data().unwrap_or_default()),
                Ok(None) => break,
                Err(_) if sent.quiet.is_some() => break,
                Err(late) => return Err(late.into()),
            }
        }
        Ok(Got { code: parts.status.as_u16(), headers: parts.headers, text: String::from_utf8_lossy(&bytes).into_owned() })
    }

    fn token(&self, user: &str) -> Option<String> {
        self.tokens.get(user).cloned()
    }

    fn base_url(&self) -> &str {
        &self.base_url
    }
}
