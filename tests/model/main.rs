//! The scheduler, the status reconciler and the API server as a model whose every state is looked at: whatever the order of steps, and whatever
//! fails between two of them, the rules hold in every state, and all that was asked for is done at rest.
//!
//! What is decided, is decided by the project's own functions, on its own kinds. Modelled by hand is the shell: which write follows which, and what
//! wakes whom. Read in this order: `state`, `world` (what can happen), `server`, `controller`, `rules`. With `MODEL=whole` larger worlds are looked
//! at, which takes a minute in a release build.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod call;
mod controller;
mod decide;
mod kinds;
mod line;
mod numbers;
mod objects;
mod rules;
mod server;
mod state;
mod steps;
mod words;
mod world;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Instant;

use stateright::{Checker, Expectation, HasDiscoveries, Model, Path};

use controller::Mutation;
use objects::Provider;
use rules::{ANEW, K15, K17, ORPHAN, R10, READY, REFUSED, RYW, WAITING};
use server::{K1, K2, K9, K11};
use state::{Left, State};
use world::{Action, World};

/// A cluster that is ordered, deleted and ordered anew.
const SHORT_LIFE: Left = Left { orders: 2, deletions: 1, ..Left::NOTHING };
/// The same, and it is changed.
const LIFE: Left = Left { edits: 1, ..SHORT_LIFE };

/// One name, and one offering.
const SMALL: World = World { names: 1, providers: &[Provider::Aws], left: SHORT_LIFE, mutation: None, thorough: true };
/// One name, and the offerings of two providers.
const LARGE: World = World { providers: &Provider::ALL, thorough: false, ..SMALL };
/// Two names.
const WIDE: World = World { names: 2, thorough: false, ..SMALL };

/// The steps to a state, and the state.
fn told(path: Path<State, Action>) -> String {
    let last = format!("{:#?}", path.last_state());
    let mut text = String::new();
    for (at, action) in path.into_actions().iter().enumerate() {
        writeln!(text, "{:>3}. {action:?}", at + 1).unwrap();
    }
    text + &last
}

/// Looks at every state: no rule is broken, and each of these is reached.
fn holds(name: &str, world: World, reached: &[&str]) -> usize {
    let began = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let checker = world.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let (states, depth, seconds) = (checker.unique_state_count(), checker.max_depth(), began.elapsed().as_secs_f64());
    println!("model: {states} unique states, depth {depth}, {seconds:.1} s ({name})");
    let found = checker.discoveries();
    let missing: Vec<_> = reached.iter().filter(|reached| !found.contains_key(**reached)).collect();
    for (property, path) in found {
        let fails = world.property(property).expectation == Expectation::Always;
        assert!(!fails, "{name}: {property}\n{}", told(path));
    }
    assert!(missing.is_empty(), "{name}: never reached: {missing:?}");
    states
}

/// Looks for a way to break a rule.
fn breaks(mutation: Mutation, left: Left, rule: &'static str) {
    let world = World { left, mutation: Some(mutation), ..LARGE };
    let checker = world.checker().finish_when(HasDiscoveries::AnyOf(BTreeSet::from([rule]))).spawn_bfs().join();
    let found = checker.discovery(rule).map(Path::into_actions);
    println!("{mutation:?} breaks {rule}, {} states:\n{found:?}", checker.unique_state_count());
    assert!(found.is_some(), "{mutation:?} does not break {rule}");
}

#[test]
fn a_cluster_that_changes_keeps_every_rule_and_comes_to_rest() {
    holds("a change", World { left: LIFE, ..SMALL }, &[READY, WAITING, ANEW]);
}

#[test]
fn a_cluster_whose_offering_goes_keeps_every_rule_and_comes_to_rest() {
    holds("an offering", World { left: Left { offers: 1, ..SHORT_LIFE }, ..SMALL }, &[READY, REFUSED, WAITING, ANEW]);
}

#[test]
fn a_crash_and_a_lost_answer_break_no_rule() {
    holds("a crash", World { left: Left { crashes: 1, ..SHORT_LIFE }, ..SMALL }, &[READY, WAITING, ANEW]);
    holds("a lost answer", World { left: Left { losses: 1, ..SHORT_LIFE }, ..SMALL }, &[READY, WAITING, ANEW]);
}

/// Larger worlds, and what is reached in them besides.
fn whole() -> Vec<(&'static str, World, &'static [&'static str])> {
    let unmoved = Left { orders: 2, ..Left::NOTHING };
    let waiting = Some(Mutation::NeverOwes);
    let deaf = Some(Mutation::DeafWhileUnseen);
    vec![
        ("a lost answer", World { left: Left { offers: 1, losses: 1, ..LIFE }, ..LARGE }, &[REFUSED, ANEW]),
        ("a crash", World { left: Left { offers: 1, crashes: 1, ..LIFE }, thorough: true, ..LARGE }, &[REFUSED, ANEW]),
        ("an offering that comes back", World { left: Left { offers: 2, losses: 1, ..SHORT_LIFE }, ..LARGE }, &[REFUSED, ANEW]),
        ("a Provider that goes", World { left: Left { offers: 1, setups: 1, crashes: 1, ..SHORT_LIFE }, ..LARGE }, &[REFUSED, ANEW]),
        ("a catalog out of reach", World { left: Left { offers: 1, outages: 1, crashes: 1, ..SHORT_LIFE }, ..LARGE }, &[REFUSED, ANEW]),
        ("others meddle", World { left: Left { strips: 1, meddling: 1, ..SHORT_LIFE }, ..SMALL }, &[ORPHAN, ANEW]),
        ("a late request", World { left: Left { delays: 1, crashes: 1, ..SHORT_LIFE }, ..SMALL }, &[ORPHAN, ANEW]),
        ("a relist", World { left: Left { relists: 1, patience: 1, losses: 1, ..SHORT_LIFE }, ..SMALL }, &[ANEW]),
        ("own writes are not waited for", World { left: Left { offers: 1, ..SHORT_LIFE }, mutation: waiting, ..SMALL }, &[REFUSED, ANEW]),
        ("what was raised is not made up for", World { left: Left { offers: 2, ..SHORT_LIFE }, mutation: deaf, ..LARGE }, &[REFUSED, ANEW]),
        ("two clusters and a crash", World { left: Left { crashes: 1, ..SHORT_LIFE }, ..WIDE }, &[]),
        ("two clusters and an offering", World { left: Left { offers: 1, crashes: 1, ..unmoved }, ..WIDE }, &[REFUSED]),
    ]
}

#[test]
fn larger_worlds_keep_every_rule() {
    if std::env::var("MODEL").is_ok_and(|model| model == "whole") {
        let began = Instant::now();
        let states: usize = whole().into_iter().map(|(name, world, reached)| holds(name, world, &[&[READY], reached].concat())).sum();
        println!("model: {states} unique states in all, {:.1} s", began.elapsed().as_secs_f64());
    }
}

#[test]
fn no_rule_depends_on_reading_our_own_writes() {
    let left = Left { orders: 1, ..SHORT_LIFE };
    holds("own writes are not waited for", World { left, mutation: Some(Mutation::NeverOwes), ..SMALL }, &[READY, WAITING]);
}

#[test]
fn the_finalizer_must_not_be_released_on_cached_absence() {
    breaks(Mutation::ReleaseOnCachedAbsence, Left { losses: 1, ..SHORT_LIFE }, K9);
}

#[test]
fn a_projection_must_not_be_created_before_the_finalizer() {
    breaks(Mutation::CreateBeforeFinalizer, SHORT_LIFE, K2);
}

#[test]
fn a_put_must_name_the_version_that_it_has_read() {
    breaks(Mutation::PutWithoutVersion, Left { offers: 1, losses: 1, ..SHORT_LIFE }, K1);
}

#[test]
fn a_cluster_whose_provider_has_lost_its_offering_must_keep_its_pin() {
    breaks(Mutation::UnpinOnLostOffering, Left { offers: 1, ..SHORT_LIFE }, K1);
}

#[test]
fn a_status_must_name_the_incarnation_that_it_speaks_of() {
    breaks(Mutation::StatusByName, SHORT_LIFE, K11);
}

#[test]
fn what_happens_while_a_call_goes_on_must_be_looked_at_after_it() {
    breaks(Mutation::DeafWhileCalled, LIFE, R10);
}

#[test]
fn a_change_of_the_projection_must_wake_its_cluster() {
    breaks(Mutation::DeafToTheProjection, SHORT_LIFE, K17);
}

#[test]
fn a_change_of_the_catalog_must_wake_whom_it_concerns() {
    breaks(Mutation::DeafToTheCatalog, Left { offers: 1, ..SHORT_LIFE }, K15);
}

#[test]
fn a_write_must_not_be_waited_for_once_its_object_is_gone_again() {
    breaks(Mutation::OwesWhatIsGone, SHORT_LIFE, RYW);
}
