//! The embedded control plane: a kcp in memory, for a newcomer's first minute, for provider teams' tests, and for simulation.
//!
//! ```text
//!  request ──▶ verbs ──▶ world ──▶ store ──▶ watches
//!             (who, which kind,  (objects in    (text, one version
//!              what it may be)    and out)       per shard)
//!                                  │    ▲
//!                                  ▼    │
//!                                 reconcile (kcp's controllers: what follows from a change)
//! ```
//!
//! Reading order: `request` (what is asked), `verbs` (one file for each verb), `world` (everything there is), `reconcile` (what follows), `store`;
//! beside them [`schema`], [`patch`], [`access`] and [`front`] know how Kubernetes validates, patches, decides who may, and shows itself.
//! [`ControlPlane`] is a tower service over all of it. `docs/EMBEDDED.md` says what is like the real kcp and what is not.

pub mod access;
mod base64;
pub mod body;
mod convert;
pub(crate) mod dice;
pub mod errors;
pub mod front;
mod http;
mod kinds;
mod observe;
pub mod patch;
mod profile;
mod reconcile;
mod request;
pub mod schema;
mod selector;
pub mod served;
mod server;
mod signal;
mod store;
mod verbs;
mod world;

pub use http::{ControlPlane, Snapshot};
pub use observe::Event;
pub use profile::{ADMIN, Options, Timing, Version};
pub use server::Server;
