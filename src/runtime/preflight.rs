//! What a provider checks before anything is served.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::fence;

/// What is about to be served, for a provider's check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Starting {
    /// The base URL of the provider workspace, for example `https://kcp:6443/clusters/root:provider`.
    pub provider_workspace: String,
    /// The export that tenants bind.
    pub export: String,
    /// The name of the configuration object.
    pub config_name: String,
}

/// A provider's own check, which runs once before anything is served: before the first watch, and before `/readyz` answers. It may refuse the start
/// with a message for the operator.
///
/// It has no deadline of its own, since only the provider knows how long its backend may take; [`super::Handle::stop`] ends it. What can mend
/// itself while it runs should be a condition on the objects, not a refusal: a process that ends takes all tenants with it.
///
/// ```
/// use kcp_provider_runtime::runtime::{Credentials, Options, Preflight};
///
/// let mut options = Options::new(Credentials::Inferred, "example.org");
/// options.preflight = Some(Preflight::new(|starting| async move {
///     // Ask the backend here; what is captured is the provider's own.
///     if starting.export == "example.org" { Ok(()) } else { Err(format!("this build serves example.org, not {}", starting.export)) }
/// }));
/// ```
#[derive(Clone)]
pub struct Preflight(Arc<dyn Fn(Starting) -> BoxFuture<'static, Result<(), String>> + Send + Sync>);

impl Preflight {
    /// A check; its error is the message.
    pub fn new<F, Fut>(check: F) -> Self
    where
        F: Fn(Starting) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self(Arc::new(move |starting| check(starting).boxed()))
    }

    pub(super) async fn check(&self, starting: Starting) -> Result<(), String> {
        let checked = fence::awaited(async { (self.0)(starting).await }).await;
        checked.unwrap_or_else(|panic| Err(format!("it panicked: {panic}")))
    }
}

impl fmt::Debug for Preflight {
    /// Only that there is one: a closure has no words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Preflight")
    }
}
