//! The list of all invariants of commits and requests.
//!
//! Pure: constants.

use super::{Step, choice, conditions, lives, requests};

/// One invariant.
pub(crate) struct Rule {
    /// `K1`.
    pub(crate) name: &'static str,
    /// In a sentence.
    pub(crate) says: &'static str,
    /// Where it is from.
    pub(crate) source: &'static str,
    /// What is wrong with a step; `None` for nothing.
    pub(crate) check: fn(&Step<'_>) -> Option<String>,
}

const fn rule(name: &'static str, says: &'static str, source: &'static str, check: fn(&Step<'_>) -> Option<String>) -> Rule {
    Rule { name, says, source, check }
}

const SCHEDULING: &str = "the scheduling rules";
const CONDITIONS: &str = "the table of conditions";
const RUNTIME: &str = "docs/ARCHITECTURE.md";

/// All of them.
pub(crate) const RULES: &[Rule] = &[
    rule("K1", "a pin that is set is never changed by us", SCHEDULING, lives::the_pin_stays),
    rule("K2", "a projection is made only for an object that is held and pinned to its provider", SCHEDULING, lives::a_projection_is_held),
    rule("K3", "the winner follows from spec, catalog and provider names alone", SCHEDULING, choice::the_winner_follows),
    rule("K5", "a projection has the tenant's pools, region and version", SCHEDULING, choice::pools_are_the_tenants),
    rule("K7", "a live pool keeps its type while its request is unchanged", SCHEDULING, choice::live_pools_keep_their_type),
    rule("K8", "we read no secret", SCHEDULING, requests::no_secret_is_read),
    rule("K9", "the finalizer goes only after the server said that the projection is gone", SCHEDULING, lives::the_finalizer_outlives),
    rule("K10", "the scheduler and the status reconciler write different things", CONDITIONS, conditions::writers_are_disjoint),
    rule("K11", "an observedGeneration never falls and is that of the state used", CONDITIONS, conditions::generations_are_of_the_state),
    rule("K13", "lastTransitionTime changes exactly with the status", CONDITIONS, conditions::times_change_with_the_status),
    rule("K14", "a condition has one reason of its table and at most 1 KiB of message", CONDITIONS, conditions::reasons_are_of_the_table),
    rule("K14b", "an unschedulable cluster has the first reason that holds", CONDITIONS, choice::the_reason_follows),
    rule("K16", "a projection is deleted only when its cluster goes or has gone", SCHEDULING, lives::a_projection_stays),
    rule("R1", "what we write in a workspace was read there", RUNTIME, requests::nothing_leaks),
    rule("R4", "a write names the incarnation that it means", RUNTIME, requests::writes_name_the_incarnation),
    rule("R5", "a tenant's workspace is asked for by its logical cluster, never by a path", RUNTIME, requests::paths_are_for_people),
    rule("R11", "nothing is done before everything was listed", RUNTIME, requests::nothing_is_done_unseen),
    rule("R12", "what somebody takes away again and again is made anew ever more seldom", RUNTIME, lives::nobody_is_fought),
    rule(
        "R13",
        "what was refused as being to an earlier state is not tried again and again over that state",
        RUNTIME,
        requests::refusals_are_heard,
    ),
];
