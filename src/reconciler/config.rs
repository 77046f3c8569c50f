//! What a platform operator configures, as a provider's own type.

use std::sync::LazyLock;

use serde::de::DeserializeOwned;

use crate::api::config::{self, FieldError, RuntimeSettings};
use crate::api::meta::{Kind, KindRef};

/// A provider's configuration kind; its spec carries the runtime's settings as plain fields ([`RuntimeSettings`], flattened).
///
/// The runtime watches the object in the provider workspace. A valid change is in force within a second; an invalid one is refused in the
/// object's status and the last good one stays.
///
/// A deletion must never wait for an operator: where no configuration is in force, [`Reconciler::delete`](super::Reconciler::delete) is called with
/// the last one that was, else with the type's [`Default`].
pub trait ProviderConfig: DeserializeOwned + Default + Send + Sync + 'static {
    /// Where it is served; `None` for a provider without configuration.
    const KIND: Option<KindRef>;

    /// The runtime's part.
    fn runtime(&self) -> &RuntimeSettings;

    /// Everything that is wrong with it; an error keeps the last good one in force.
    fn validate(&self) -> Result<(), Vec<FieldError>>;

    /// What is in force while no object exists: the default, unless told otherwise. `None` is for a type with required fields: every object waits
    /// with `ConfigUnavailable`.
    fn absent() -> Option<Self> {
        Some(Self::default())
    }
}

/// The settings of a provider that has no configuration: every default.
pub fn no_settings() -> &'static RuntimeSettings {
    static NONE: LazyLock<RuntimeSettings> = LazyLock::new(RuntimeSettings::default);
    &NONE
}

impl ProviderConfig for () {
    const KIND: Option<KindRef> = None;

    fn runtime(&self) -> &RuntimeSettings {
        no_settings()
    }

    fn validate(&self) -> Result<(), Vec<FieldError>> {
        Ok(())
    }
}

impl ProviderConfig for config::ProviderConfig {
    const KIND: Option<KindRef> = Some(<Self as Kind>::REF);

    fn runtime(&self) -> &RuntimeSettings {
        &self.spec.runtime
    }

    fn validate(&self) -> Result<(), Vec<FieldError>> {
        let problems = self.problems();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}
