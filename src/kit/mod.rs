//! The test kit for provider teams: given these objects in these workspaces, run my [`Reconciler`], see this.
//!
//! A [`World`] is an embedded kcp with a provider workspace, an export of your kinds, tenants that have bound it, and the real runtime with your
//! reconcilers. Nothing of it leaves the process, and no test waits: write `#[tokio::test(start_paused = true)]`, for which your
//! dev-dependencies need tokio with `macros`, `rt` and `test-util`, and an hour of the world takes as long as what happens in it. In real time
//! everything works too, and takes the time it takes.
//!
//! ```
//! # use async_trait::async_trait;
//! # use kcp_provider_runtime::api::condition::ConditionStatus::True;
//! # use kcp_provider_runtime::api::manifest::definition;
//! # use kcp_provider_runtime::api::projection::Projection;
//! # use kcp_provider_runtime::api::reason::Reason;
//! # use kcp_provider_runtime::reconciler::*;
//! # struct Optimist;
//! # #[async_trait]
//! # impl Reconciler for Optimist {
//! #     type Object = Projection;
//! #     type Config = ();
//! #     type Status = ();
//! #     type Error = CallError;
//! #     fn actor(&self) -> Actor {
//! #         Actor { name: "optimist", finalizer: None, conditions: &["Ready"] }
//! #     }
//! #     async fn create_or_update(&self, _: &Context<()>, _: &Projection) -> Result<Report, CallError> {
//! #         Ok(Report::new(()).with(ReportedCondition::new("Ready", true, Reason::Ready, "as good as done")))
//! #     }
//! #     async fn delete(&self, _: &Context<()>, _: &Projection) -> Result<Deletion, CallError> {
//! #         Ok(Deletion::Done)
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! use kcp_provider_runtime::kit::World;
//! use serde_json::json;
//!
//! let mut world = World::new().await;
//! world.export(definition::projection()).await;
//! let acme = world.workspace("acme").await;
//! acme.apply(json!({
//!     "apiVersion": "provider.kubernetes.edge-connect.eu/v1alpha1", "kind": "KubernetesCluster", "metadata": {"name": "demo"},
//!     "spec": {"providerRef": {"name": "otc"}, "region": "eu-de", "version": "1.34.2",
//!         "nodePools": [{"name": "workers", "replicas": 3, "type": "m-4-16"}]},
//! })).await;
//! world.serve(|_| Optimist);
//! let ready = acme.condition::<Projection>("demo", "Ready", True, "Ready").await;
//! assert_eq!(ready.message, "as good as done");
//! world.settled().await;
//! assert_eq!(world.writes(), [("apply", 1)].into());
//! # }
//! ```
//!
//! What is waited for and does not come within [`World::within`] fails the test, and says what was last seen, what the runtime misses, what it
//! asked the server last, and what it logged. `docs/PROVIDERS.md` is the guide; [`crate::embedded`] says how much of a kcp this is.
//!
//! [`Reconciler`]: crate::reconciler::Reconciler

mod client;
pub mod faults;
mod journal;
mod lines;
mod ordeal;
mod resource;
mod runs;
pub mod trial;
mod trouble;
mod workload;
mod workspace;
mod world;

pub use client::{Answer, Client};
pub use journal::Sent;
pub use ordeal::{Seam, Stage};
pub use resource::Resource;
pub use workspace::Workspace;
pub use world::World;
