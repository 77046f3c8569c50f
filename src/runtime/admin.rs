//! Readiness, liveness and metrics over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::core::Overview;
use super::telemetry::Metrics;

/// Binds the address and serves until the returned task is dropped or ends.
pub(super) async fn serve(
    address: SocketAddr,
    overview: watch::Receiver<Overview>,
    metrics: Arc<Metrics>,
) -> Result<JoinHandle<std::io::Result<()>>, String> {
    let listener = TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let readyz = move || async move {
        let overview = overview.borrow();
        if overview.looked && overview.missing.is_empty() {
            (StatusCode::OK, "ok\n".to_owned())
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, format!("not ready\n{}\n", overview.missing.join("\n")))
        }
    };
    let router = Router::new()
        .route("/readyz", get(readyz))
        .route("/livez", get(|| async { "ok\n" }))
        .route("/metrics", get(move || async move { metrics.text() }));
    Ok(tokio::spawn(async move { axum::serve(listener, router).await }))
}
