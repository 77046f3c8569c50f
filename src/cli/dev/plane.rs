//! The control plane of a `kcm dev`: the embedded one, in this process, or a real kcp as a child of it.

use std::fs::Permissions;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tempfile::TempDir;
use tokio_rustls::rustls::crypto::ring;

use super::screen::Screen;
use crate::cli::kcp_admin::{AdminClient, write_private};
use crate::cli::kcp_server::{KcpOptions, KcpServer};
use crate::cli::servers;
use crate::embedded::{ADMIN, Options, Server};

/// One control plane that answers, its administrator's kubeconfig, and the folder that goes with it.
pub(super) enum Plane {
    Embedded { server: Server, folder: TempDir },
    Kcp(KcpServer),
}

impl Plane {
    /// The embedded one on a port of 127.0.0.1, where 0 is any free one. There at once, and empty.
    pub(super) async fn embedded(port: u16) -> anyhow::Result<Self> {
        // Private to its owner, since administrators' tokens are written there.
        let folder = tempfile::Builder::new().prefix("kcm-dev-").permissions(Permissions::from_mode(0o700)).tempdir();
        let folder = folder.context("cannot make a temporary folder")?;
        let [seed, token @ ..] = random::<5>()?;
        let token = token.map(|part| format!("{part:016x}")).concat();
        // Everybody on this machine can reach the port: the token is what keeps others out.
        let users = vec![(token, ADMIN.to_owned(), vec!["system:kcp:admin".to_owned()])];
        let options = Options { seed, started: jiff::Timestamp::now(), users, ..Options::default() };
        let server = Server::at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), options).await;
        let server = server.with_context(|| format!("cannot listen on 127.0.0.1:{port}"))?;
        write_private(&folder.path().join("admin.kubeconfig"), &server.kubeconfig(&[]))?;
        Ok(Self::Embedded { server, folder })
    }

    /// A real kcp, built at first if need be.
    pub(super) async fn kcp(screen: &Screen) -> anyhow::Result<Self> {
        let binary = servers::KCP.binary().await?;
        let starting = async { Ok(KcpServer::start(&KcpOptions::new(binary), |_| {}).await?) };
        screen.step("start kcp", "20 to 60 s", starting).await.map(Self::Kcp)
    }

    /// The folder of everything that goes with it.
    pub(super) fn folder(&self) -> &Path {
        match self {
            Self::Embedded { folder, .. } => folder.path(),
            Self::Kcp(server) => server.root_directory(),
        }
    }

    /// A file in that folder.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// The administrator's kubeconfig; its current context is the workspace `root`.
    pub(super) fn admin_kubeconfig(&self) -> PathBuf {
        self.file("admin.kubeconfig")
    }

    /// The server without a workspace.
    pub(super) fn url(&self) -> String {
        match self {
            Self::Embedded { server, .. } => server.url(),
            Self::Kcp(server) => server.base_url(),
        }
    }

    /// The administrator in the workspace `root`.
    pub(super) async fn admin(&self) -> anyhow::Result<AdminClient> {
        Ok(AdminClient::from_kubeconfig(&self.admin_kubeconfig()).await?.at_url(&self.url())?.in_workspace("root")?)
    }

    /// The files that say what happened.
    pub(super) fn logs(&self) -> Vec<PathBuf> {
        let own = self.file("kcm.log");
        match self {
            Self::Embedded { .. } => vec![own],
            Self::Kcp(server) => vec![own, server.log()],
        }
    }

    /// How often it may be looked at without slowing what is looked for.
    pub(super) fn look_every(&self) -> Duration {
        Duration::from_millis(if matches!(self, Self::Embedded { .. }) { 50 } else { 200 })
    }

    /// How many requests of one account may wait for an answer at once; `None` for as many as a controller usually has.
    pub(super) fn requests(&self) -> Option<usize> {
        // kcp v0.28 can crash on concurrent requests of one ServiceAccount through a virtual workspace (kcp#3855).
        matches!(self, Self::Kcp(_)).then_some(1)
    }

    /// Waits for an end that nobody asked for, and says why it came. May be cancelled and called again.
    pub(super) async fn ended(&mut self) -> anyhow::Error {
        match self {
            Self::Embedded { .. } => std::future::pending().await,
            Self::Kcp(server) => anyhow!("kcp ended by itself: {:?}", server.ended().await),
        }
    }

    /// Ends it and removes its folder. Waits for both.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        match self {
            Self::Embedded { server, folder } => {
                server.stop().await;
                let path = folder.path().to_owned();
                folder.close().with_context(|| format!("cannot remove {}", path.display()))
            }
            Self::Kcp(server) => Ok(server.stop().await?),
        }
    }
}

/// Numbers that nobody can guess.
fn random<const N: usize>() -> anyhow::Result<[u64; N]> {
    let mut bytes = vec![0; N * size_of::<u64>()];
    ring::default_provider().secure_random.fill(&mut bytes).map_err(|_| anyhow!("this machine gives no random numbers"))?;
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(size_of::<u64>())) {
        *number = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    }
    Ok(numbers)
}
