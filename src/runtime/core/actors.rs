//! Pure: what the heart keeps of one reconciler.

use std::sync::Arc;

use crate::api::meta::KindRef;
use crate::runtime::served::{AnyConfig, NamesSpec, Served, ViewSpec};

use super::index::Index;
use super::singles::Singles;

/// One reconciler: its declarations, its subscriptions and its configuration.
pub(super) struct ActorState {
    pub(super) served: Arc<dyn Served>,
    pub(super) kind: KindRef,
    pub(super) children: Vec<KindRef>,
    pub(super) names: Vec<NamesSpec>,
    pub(super) views: Vec<ViewSpec>,
    pub(super) config_kind: Option<KindRef>,
    pub(super) index: Index,
    /// What is in force, or why nothing is.
    pub(super) config: Result<AnyConfig, String>,
    /// The last one that was.
    pub(super) last_config: Option<AnyConfig>,
    /// Which object counts, where only one of a workspace does.
    pub(super) singles: Option<Singles>,
    /// Counts the changes of inputs that concerned anybody.
    pub(super) raised: u64,
}

impl ActorState {
    pub(super) fn new(served: Arc<dyn Served>) -> Self {
        let config_kind = served.config_kind();
        let config = match (config_kind, served.read_config(None)) {
            (None, Ok(Some(config))) => Ok(config),
            _ => Err("the configuration has not been read yet".into()),
        };
        Self {
            kind: served.kind(),
            children: served.children().to_vec(),
            names: served.names(),
            views: served.views(),
            config_kind,
            index: Index::default(),
            config,
            last_config: None,
            singles: served.is_single().then(Singles::default),
            raised: 0,
            served,
        }
    }
}
