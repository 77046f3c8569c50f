//! What each pool's machine type was chosen for: the record in the projection's annotation.
//!
//! Pure: it is what tells a tenant's changed request (rule 5: choose anew) from a changed catalog (rule 5: keep the type).

use std::collections::BTreeMap;

use crate::api::projection::{Projection, REQUESTS_ANNOTATION};
use crate::api::tenant::{Capabilities, NodePool};

/// Requests by pool name.
///
/// A record that cannot be read is as good as none, pool by pool: the type of such a pool is kept, because nodes live there.
#[derive(PartialEq, Eq)]
pub(crate) struct Requests(BTreeMap<String, Option<Capabilities>>);

impl Requests {
    /// Reads the projection's record.
    pub(crate) fn of(projection: &Projection) -> Self {
        let text = projection.metadata.annotations.get(REQUESTS_ANNOTATION).map_or("", String::as_str);
        let pools: BTreeMap<String, serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
        Self(pools.into_iter().map(|(name, request)| (name, serde_json::from_value(request).ok())).collect())
    }

    /// Whether the pool asks for another amount of cpu or memory than was recorded.
    pub(crate) fn changed(&self, pool: &NodePool) -> bool {
        self.0.get(&pool.name).and_then(Option::as_ref).is_some_and(|recorded| *recorded != pool.capabilities)
    }

    /// The annotation's text for these pools, as the tenant wrote the amounts; pools by name.
    pub(crate) fn write(pools: &[NodePool]) -> String {
        let pools: BTreeMap<&str, &Capabilities> = pools.iter().map(|pool| (pool.name.as_str(), &pool.capabilities)).collect();
        serde_json::to_string(&pools).expect("a map of strings to quantities is always JSON")
    }
}
