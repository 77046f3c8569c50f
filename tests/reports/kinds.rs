//! What providers of tests about claims know: a kind of their own, and a claimed one.

use kcp_provider_runtime::api::condition::Condition;
use kcp_provider_runtime::api::meta::{Kind, KindRef, Meta, ServiceObject};
use serde::{Deserialize, Serialize};

/// What tenants order.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Toy {
    pub(crate) metadata: Meta,
    /// Whether a list of names is needed beside the one object.
    #[serde(default)]
    pub(crate) counted: bool,
}

impl Kind for Toy {
    const REF: KindRef = KindRef { group: "toys.test", version: "v1", kind: "Toy", plural: "toys", namespaced: true };
    fn meta(&self) -> &Meta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut Meta {
        &mut self.metadata
    }
}

impl ServiceObject for Toy {
    fn conditions(&self) -> &[Condition] {
        &[]
    }
}

/// A claimed kind.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ConfigMap {
    metadata: Meta,
}

impl Kind for ConfigMap {
    const REF: KindRef = KindRef { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };
    fn meta(&self) -> &Meta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut Meta {
        &mut self.metadata
    }
}
