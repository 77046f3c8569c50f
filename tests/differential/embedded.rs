//! The embedded control plane as a target, in this process: no port, no TLS.

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use kcp_provider_runtime::embedded::{ADMIN, ControlPlane, Options};
use tower::Service as _;

use super::target::{Got, Sent, TOKENS, Target};

/// Anything that looks like one.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
const ADMIN_TOKEN: &str = "admin-token";

/// An embedded control plane.
pub(crate) struct Embedded {
    control_plane: ControlPlane,
    base_url: String,
}

impl Embedded {
    /// A fresh one with the users of [`TOKENS`].
    pub(crate) fn start() -> Self {
        let mut users = vec![(ADMIN_TOKEN.to_owned(), ADMIN.to_owned(), vec!["system:kcp:admin".to_owned()])];
        for line in TOKENS.lines() {
            let mut fields = line.splitn(4, ',').map(|field| field.trim_matches('"').to_owned());
            let (token, name, groups) = (fields.next(), fields.next(), fields.nth(1));
            users.push((token.unwrap_or_default(), name.unwrap_or_default(), groups.into_iter().collect()));
        }
        let options = Options {
            users,
            started: "2026-01-01T00:00:00Z".parse().expect("a time"),
            authority: CERTIFICATE.to_owned(),
            ..Options::default()
        };
        let base_url = options.url.clone();
        Self { control_plane: ControlPlane::new(options), base_url }
    }
}

#[async_trait]
impl Target for Embedded {
    async fn send(&self, sent: &Sent) -> anyhow::Result<Got> {
        let body = Bytes::from(sent.body.clone().unwrap_or_default());
        let answer = self.control_plane.clone().call(sent.request().body(body)?).await?;
        let (parts, mut body) = answer.into_parts();
        let mut bytes = Vec::new();
        let Some(quiet) = sent.quiet else {
            bytes.extend(body.collect().await?.to_bytes());
            return Ok(Got { code: parts.status.as_u16(), headers: parts.headers, text: String::from_utf8_lossy(&bytes).into_owned() });
        };
        while let Ok(Some(frame)) = tokio::time::timeout(quiet, body.frame()).await {
            bytes.extend(frame?.into_data().unwrap_or_default());
        }
        Ok(Got { code: parts.status.as_u16(), headers: parts.headers, text: String::from_utf8_lossy(&bytes).into_owned() })
    }

    fn token(&self, user: &str) -> Option<String> {
        Some(format!("{user}-token"))
    }

    fn base_url(&self) -> &str {
        &self.base_url
    }
}
