//! Named defects of our own protocol, which the simulator has to find: a tester that finds nothing wrong proves little until it is seen to find
//! what is wrong.
//!
//! They exist only in the build with `--cfg mutants` (`make mutants`), where one at a time is switched on for a thread. Everywhere else
//! [`mutated`] is `false` for the compiler, which leaves nothing of them.

/// One defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(dead_code, unreachable_pub, reason = "only the build that has them lists and shows them")]
pub enum Mutant {
    /// An object is replaced whatever its version is by now.
    NoVersionOnReplace,
    /// A deletion is of whatever has the name by now.
    NoUidOnDelete,
    /// A status is written to whatever has the name by now.
    NoUidOnStatus,
    /// Objects of one name in two workspaces are one.
    KeyWithoutWorkspace,
    /// The projection is made before the finalizer is written.
    CreateBeforeFinalizer,
    /// The finalizer goes when the cache shows no projection.
    ReleaseOnCachedAbsence,
    /// A deletion that was begun is taken for done.
    GoingIsGone,
    /// The cache is trusted though it has not shown our own write.
    ForgetOwnWrites,
    /// The cache is trusted though the server has said that it is out of date.
    TrustWhatWasRefuted,
    /// A child that somebody takes away again and again is made anew at once.
    FightOn,
    /// What was written and is gone again is waited for.
    OwesWhatIsGone,
    /// The projection of an earlier cluster of the name is taken for this one's.
    OrphanIsOurs,
    /// A cluster whose offering is gone loses its provider.
    LostOfferingUnpins,
    /// A kind that is not served any more is taken for one without objects.
    NotServedIsEmpty,
    /// A change during a call is forgotten.
    LoseDirty,
    /// History that the server has forgotten is asked for again and again.
    IgnoreGone,
    /// A watch that stays silent is waited for without end.
    NoWatchdog,
    /// A status write repeats the conditions of others.
    ForeignConditions,
    /// A condition's time is that of the write.
    AlwaysNewTime,
    /// A condition speaks of the first generation for ever.
    OldGeneration,
    /// A status is written though nothing changed.
    WriteAlways,
    /// Calls begin before their inputs were seen.
    ActBeforeSync,
    /// A catalog that cannot be read is taken for an empty one.
    UnreadableIsEmpty,
    /// A live pool moves to the smallest type there is by now.
    MoveLivePools,
    /// A pool takes the largest type that fits.
    LargestType,
    /// Memory does not count.
    MemoryIgnored,
    /// Of several offerings the last is taken.
    LastOfferingFirst,
    /// A call may take for ever.
    NoCallDeadline,
    /// A list may take for ever.
    NoListDeadline,
    /// What may not be read is taken for absent.
    ForbiddenIsAbsent,
    /// A deletion whose answer is lost is taken for done.
    LostIsDone,
    /// A cluster is ready whatever its provider says.
    ReadyUnasked,
    /// A report about an earlier state counts.
    OldReportCounts,
    /// The Providers of all workspaces count in each.
    EverybodysProviders,
    /// What failed is not tried again.
    NoRetry,
    /// What a complete list does not show is kept.
    RelistKeepsGhosts,
    /// The scheduler lets go of a cluster when it cannot be placed any more.
    RefusalReleases,
}

#[cfg(mutants)]
mod switch {
    use std::cell::Cell;

    use super::Mutant;

    thread_local! {
        static ON: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Whether this defect is switched on for this thread.
    pub(crate) fn mutated(mutant: Mutant) -> bool {
        ON.get() == Some(mutant)
    }

    /// Switches one on for this thread, or all off.
    pub fn switch_on(mutant: Option<Mutant>) {
        ON.set(mutant);
    }

    impl Mutant {
        /// All of them.
        pub const ALL: &[Self] = &[
            Self::NoVersionOnReplace,
            Self::NoUidOnDelete,
            Self::NoUidOnStatus,
            Self::KeyWithoutWorkspace,
            Self::CreateBeforeFinalizer,
            Self::ReleaseOnCachedAbsence,
            Self::GoingIsGone,
            Self::ForgetOwnWrites,
            Self::TrustWhatWasRefuted,
            Self::FightOn,
            Self::OwesWhatIsGone,
            Self::OrphanIsOurs,
            Self::LostOfferingUnpins,
            Self::NotServedIsEmpty,
            Self::LoseDirty,
            Self::IgnoreGone,
            Self::NoWatchdog,
            Self::ForeignConditions,
            Self::AlwaysNewTime,
            Self::OldGeneration,
            Self::WriteAlways,
            Self::ActBeforeSync,
            Self::UnreadableIsEmpty,
            Self::MoveLivePools,
            Self::LargestType,
            Self::MemoryIgnored,
            Self::LastOfferingFirst,
            Self::NoCallDeadline,
            Self::NoListDeadline,
            Self::ForbiddenIsAbsent,
            Self::LostIsDone,
            Self::ReadyUnasked,
            Self::OldReportCounts,
            Self::EverybodysProviders,
            Self::NoRetry,
            Self::RelistKeepsGhosts,
            Self::RefusalReleases,
        ];
    }
}

#[cfg(mutants)]
pub(crate) use switch::mutated;
#[cfg(mutants)]
pub use switch::switch_on;

/// Whether this defect is switched on: never, in this build.
#[cfg(not(mutants))]
pub(crate) const fn mutated(_: Mutant) -> bool {
    false
}
