//! The control plane on a port of this machine, for clients of any language.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use super::ControlPlane;
use super::front::kubeconfig::kubeconfig;
use super::front::listener::Listener;
use super::profile::{ADMIN, Options};

/// A control plane that listens. Dropped, it stops without waiting.
pub struct Server {
    control_plane: ControlPlane,
    listener: Listener,
    users: Vec<(String, String)>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl Server {
    /// Listens on `127.0.0.1` and a free port, with certificates made for it; `url` and `authority` of the options are set to what they are.
    ///
    /// # Errors
    /// When there is no free port, or no certificate can be made.
    pub async fn start(options: Options) -> io::Result<Self> {
        Self::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options).await
    }

    /// The same at another address; port 0 is any free one.
    pub async fn at(address: SocketAddr, options: Options) -> io::Result<Self> {
        let users = options.users.iter().map(|(token, name, _)| (name.clone(), token.clone())).collect();
        let control_plane = ControlPlane::new(options);
        let listener = Listener::bind(address, control_plane.clone()).await?;
        control_plane.is_reached_at(&listener.url(), listener.ca_pem());
        Ok(Self { control_plane, listener, users })
    }

    /// What is served.
    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// `https://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        self.listener.url()
    }

    /// A kubeconfig of the administrator with the contexts `root`, which is current, `base`, the server itself, and those given as
    /// `(name, workspace path)`. It holds a token: keep it private.
    pub fn kubeconfig(&self, contexts: &[(&str, &str)]) -> String {
        let users: Vec<(&str, &str)> = self.users.iter().map(|(name, token)| (name.as_str(), token.as_str())).collect();
        let given = contexts.iter().map(|(name, path)| (*name, *path, ADMIN));
        let all: Vec<(&str, &str, &str)> = [("root", "root", ADMIN), ("base", "", ADMIN)].into_iter().chain(given).collect();
        kubeconfig(&self.url(), self.listener.ca_pem(), &users, &all)
    }

    /// Stops: open watches end, other answers are finished.
    pub async fn stop(self) {
        self.listener.stop().await;
    }
}
