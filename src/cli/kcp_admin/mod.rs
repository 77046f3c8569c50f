//! A small client for the administrator of a kcp: every verb on every kind, in one workspace, on plain JSON.
//!
//! It knows no kind, so that set-up and tests can also write what the typed API would refuse.

mod verbs;
mod wait;
mod workspaces;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Uri;
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use secrecy::SecretString;

use crate::api::meta::KindRef;
use crate::runtime::without_proxy;

/// Workspaces, as their parent workspace serves them.
pub const WORKSPACES: Resource = Resource::new("tenancy.kcp.io", "v1alpha1", "workspaces");

/// No request of this client may take longer. kcp answers a write in well under a second, on a busy machine in a few.
const REQUEST_DEADLINE: Duration = Duration::from_secs(30);

/// A kind as the server addresses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// API group; `""` is the core group.
    pub group: Cow<'static, str>,
    /// Version, such as `v1alpha2`.
    pub version: Cow<'static, str>,
    /// Plural name in lower case, such as `apibindings`.
    pub plural: Cow<'static, str>,
    /// `status` or another subresource, or `""` for the object itself.
    pub subresource: Cow<'static, str>,
}

impl Resource {
    /// A kind known at compile time.
    pub const fn new(group: &'static str, version: &'static str, plural: &'static str) -> Self {
        Self { group: Cow::Borrowed(group), version: Cow::Borrowed(version), plural: Cow::Borrowed(plural), subresource: Cow::Borrowed("") }
    }

    /// A kind of the wire API.
    pub const fn of(kind: KindRef) -> Self {
        Self::new(kind.group, kind.version, kind.plural)
    }

    /// A subresource of the same kind, such as `status`.
    #[must_use]
    pub fn subresource(&self, name: &'static str) -> Self {
        Self { subresource: Cow::Borrowed(name), ..self.clone() }
    }

    /// The `apiVersion` of an object of this kind.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The path below the workspace of all objects in `namespace`, where `""` is every namespace or a cluster-scoped kind.
    pub fn collection_path(&self, namespace: &str) -> String {
        let Self { group, version, plural, .. } = self;
        let group = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        let namespace = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
        format!("{group}/{version}{namespace}/{plural}")
    }

    /// The path below the workspace of one object, or of its subresource.
    pub fn object_path(&self, namespace: &str, name: &str) -> String {
        let path = format!("{}/{name}", self.collection_path(namespace));
        if self.subresource.is_empty() { path } else { format!("{path}/{}", self.subresource) }
    }
}

/// The administrator in one workspace. Cheap to clone; one connection pool per client and its clones.
#[derive(Clone)]
pub struct AdminClient {
    client: Client,
    config: Config,
    kubeconfig: Kubeconfig,
}

impl AdminClient {
    /// Takes server, CA and user of the file's current context, with whatever path its server has. Reads the file, sends nothing.
    pub async fn from_kubeconfig(path: &Path) -> Result<Self, AdminError> {
        let error = |source: Box<KubeconfigError>| AdminError::Kubeconfig { path: path.to_owned(), source };
        let kubeconfig = Kubeconfig::read_from(path).map_err(|source| error(source.into()))?;
        without_proxy(&kubeconfig).map_err(|problem| AdminError::Proxy { path: path.to_owned(), problem })?;
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default()).await;
        let mut config = config.map_err(|source| error(source.into()))?;
        // The default policy sends a POST again that a proxy gave up on, which can make two objects of one.
        config.default_retry = false;
        config.read_timeout = Some(REQUEST_DEADLINE);
        // The environment's, which is for other programs: a file with a proxy of its own was refused.
        config.proxy_url = None;
        Self::connect(config, kubeconfig)
    }

    /// The same user in a workspace, given as a path such as `root:org` or as the name of a logical cluster.
    pub fn in_workspace(&self, workspace: &str) -> Result<Self, AdminError> {
        self.at_path(&format!("/clusters/{workspace}"))
    }

    /// The same user below another path of the same server; `""` is the server itself.
    pub fn at_path(&self, path: &str) -> Result<Self, AdminError> {
        let server = self.url();
        let root = server.find("://").and_then(|scheme| server[scheme + 3..].find('/').map(|path| scheme + 3 + path));
        self.at_url(&format!("{}{path}", &server[..root.unwrap_or(server.len())]))
    }

    /// The same user at another URL, such as one of an endpoint slice followed by `/clusters/*`.
    pub fn at_url(&self, url: &str) -> Result<Self, AdminError> {
        let cluster_url: Uri = url.parse().map_err(|source| AdminError::Url { url: url.to_owned(), source })?;
        let mut config = self.config.clone();
        config.cluster_url = cluster_url;
        Self::connect(config, self.kubeconfig.clone())
    }

    /// Another user at the same URL, known by a bearer token alone.
    pub fn as_bearer(&self, token: SecretString) -> Result<Self, AdminError> {
        let auth_info = kube::config::AuthInfo { token: Some(token), ..Default::default() };
        let mut kubeconfig = self.kubeconfig.clone();
        for user in &mut kubeconfig.auth_infos {
            user.auth_info = Some(auth_info.clone());
        }
        let mut config = self.config.clone();
        config.auth_info = auth_info;
        Self::connect(config, kubeconfig)
    }

    /// The URL that request paths are appended to, without a slash at its end.
    pub fn url(&self) -> String {
        self.config.cluster_url.to_string().trim_end_matches('/').to_owned()
    }

    /// Writes a kubeconfig with this client's URL, CA and user as its only context. The file is readable by its owner only.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<(), AdminError> {
        let error = |source: io::Error| AdminError::Write { path: path.to_owned(), source };
        let text = serde_saphyr::to_string(&self.only_context()).map_err(|source| error(io::Error::other(source)))?;
        write_private(path, &text).map_err(error)
    }

    fn connect(config: Config, kubeconfig: Kubeconfig) -> Result<Self, AdminError> {
        let client = Client::try_from(config.clone())
            .map_err(|source| AdminError::Connect { url: config.cluster_url.to_string(), source: source.into() })?;
        Ok(Self { client, config, kubeconfig })
    }

    /// The kubeconfig reduced to the current context, with the server replaced by this client's URL.
    fn only_context(&self) -> Kubeconfig {
        let mut kubeconfig = self.kubeconfig.clone();
        kubeconfig.contexts.retain(|context| Some(&context.name) == kubeconfig.current_context.as_ref());
        let context = kubeconfig.contexts.iter().find_map(|context| context.context.clone()).unwrap_or_default();
        kubeconfig.clusters.retain(|cluster| cluster.name == context.cluster);
        kubeconfig.auth_infos.retain(|user| Some(&user.name) == context.user.as_ref());
        for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            cluster.server = Some(self.url());
        }
        kubeconfig
    }
}

impl std::fmt::Debug for AdminClient {
    /// The URL alone: configuration and kubeconfig hold credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdminClient").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// Why a request of the administrator failed, with the verb, the path and the server's words.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// A kubeconfig is missing or does not say what is needed.
    #[error("cannot use kubeconfig {}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<KubeconfigError>,
    },
    /// A kubeconfig's cluster is behind a proxy.
    #[error("cannot use kubeconfig {}: {problem}", path.display())]
    Proxy {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A URL cannot be parsed.
    #[error("{url:?} is not a URL")]
    Url {
        /// The text.
        url: String,
        /// What is wrong with it.
        source: http::uri::InvalidUri,
    },
    /// CA, certificate or key cannot be used.
    #[error("cannot make a client for {url}")]
    Connect {
        /// The server.
        url: String,
        /// What is wrong.
        source: Box<kube::Error>,
    },
    /// A kubeconfig cannot be written.
    #[error("cannot write kubeconfig {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The server answered with an error.
    #[error("{verb} {url}: {code} {message}")]
    Refused {
        /// What was attempted, such as `create`.
        verb: &'static str,
        /// On which URL.
        url: String,
        /// The HTTP status code.
        code: u16,
        /// The server's message.
        message: String,
    },
    /// There was no answer, or not the expected one.
    #[error("{verb} {url} failed")]
    Failed {
        /// What was attempted.
        verb: &'static str,
        /// On which URL.
        url: String,
        /// What happened.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What was waited for did not come.
    #[error("waited {} s for {url} {until}; last seen: {seen}", waited.as_secs())]
    Deadline {
        /// The object.
        url: String,
        /// What was waited for.
        until: String,
        /// For how long.
        waited: Duration,
        /// The object's status, that there was none, or the last error.
        seen: String,
    },
}

impl AdminError {
    /// The HTTP status code the server answered with.
    pub fn code(&self) -> Option<u16> {
        if let Self::Refused { code, .. } = self { Some(*code) } else { None }
    }

    /// Whether the server knows no such object, or does not serve its kind.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Whether the object is there already, or was changed meanwhile.
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// Whether the user may not do this; also kcp's answer for a workspace that does not exist.
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }
}

/// Replaces a file by one that its owner alone may read: mode 0600, also where it was there before.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let mut file = std::fs::File::options().create(true).write(true).truncate(true).mode(0o600).open(path)?;
    // The mode above holds for a new file only.
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests;
