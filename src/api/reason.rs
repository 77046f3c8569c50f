//! Every reason word, once: in conditions, events, metrics, logs and docs alike.
//!
//! Pure: a closed list, so that a word can be searched for, counted and documented (`docs/CONDITIONS.md` is checked against it).

use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Why a condition is as it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
            /// A provider team's own word: static, so that the list stays closed at compile time.
            Custom(&'static str),
        }

        impl Reason {
            /// The words of this project, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                    Self::Custom(word) => word,
                }
            }
        }
    };
}

reasons! {
    /// A provider is selected and every pool is resolved.
    Scheduled,
    /// The catalog could not be read.
    CatalogUnavailable,
    /// The workspace is outside `allowedWorkspaces`, or its path cannot be resolved.
    NotEntitled,
    /// No offering serves region and version, or the pinned provider has none.
    OfferingNotFound,
    /// An offering serves the request, but the workspace holds no `Provider` for it.
    ProviderNotConfigured,
    /// A candidate exists, but no type it offers fits a pool in the region.
    CapabilityMismatch,
    /// The projection matches the spec.
    InSync,
    /// There is no projection to keep, since nothing is scheduled.
    NotScheduled,
    /// Work is under way; the message says which.
    Pending,
    /// An object of the projection's name exists that is not ours.
    ForeignProjection,
    /// The object is being deleted; the message names what blocks.
    Deleting,
    /// The projection reports ready for its current generation, or everything is.
    Ready,
    /// There is no projection yet.
    NoProjection,
    /// The provider's report speaks of an older generation.
    StatusOutdated,
    /// The provider reports not ready.
    ProviderNotReady,
    /// The object cannot be decoded; the message names the field.
    InvalidObject,
    /// The provider's configuration is missing or was never valid.
    ConfigUnavailable,
    /// What was asked for outside of the provider's own kinds is not there yet: access to the workspace, for which the message names the missing permission
    /// claim or what the server said; a workload cluster, or the way to one.
    AccessPending,
    /// The account that was made for access gets no token; what external work needs is there and cannot be used, or may not be read. In metrics and logs
    /// also any request that was refused.
    AccessDenied,
    /// Another object of this kind in the workspace is the one that counts.
    Superseded,
    /// The runtime did not call the reconciler; another condition says why.
    NotEvaluated,
    /// The reconciler failed; it is tried again.
    ReconcileFailed,
    /// The configuration is valid and in force.
    Accepted,
    /// The configuration is refused; the message names the fields.
    Invalid,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
