//! What runs for all objects at once and panics: the last good state stays, whoever reads it knows, and the next change is a new chance.

use std::cell::RefCell;

use super::*;

/// What a fold was handed: whether a value, and what had changed.
type Tried = (bool, Vec<String>);

thread_local! {
    static TRIED: RefCell<Vec<Tried>> = const { RefCell::new(Vec::new()) };
}

/// Writes down what a fold is handed, and panics where it is to.
pub(super) fn note(before: bool, changed: &[&str], panics: bool) {
    TRIED.with_borrow_mut(|tried| tried.push((before, changed.iter().map(ToString::to_string).collect())));
    assert!(!panics, "a secret");
}

fn tried() -> Vec<Tried> {
    TRIED.take()
}

fn was(before: bool, changed: &[&str]) -> Tried {
    (before, changed.iter().map(ToString::to_string).collect())
}

fn part(name: &str, version: u64, panics: bool) -> Raw {
    raw("", name, version, if panics { json!({"panics": true}) } else { json!({}) })
}

/// What is wrong with a view, for how long, and whether it does not count any more.
type Wrong = (String, Duration, bool);

/// What a call sees of the view: the names in it, and what is wrong with it.
fn seen(world: &mut World, version: u64) -> (Option<Vec<String>>, Option<Wrong>) {
    world.upsert(&of(S1, THING), raw("a", "x", version, json!({"parts": ["p"]})));
    let sight = world.running[&work(0, "a", "x")].seen.views[&TypeId::of::<Parts>()].clone();
    world.drain();
    let value = sight.value.map(|parts| parts.downcast_ref::<Parts>().unwrap().keys().cloned().collect());
    (value, sight.trouble.map(|trouble| (trouble.what, trouble.lasted, trouble.hard)))
}

fn live(world: &mut World) -> String {
    let parts = of(BASE, PART);
    world.health(&parts, Health::Live);
    parts
}

const PROBLEM: &str = "the provider panicked over parts.test";

#[test]
fn a_fold_that_panics_keeps_the_last_view_and_is_tried_again_with_the_next_change() {
    let mut world = World::ready(&[Fake::full()]);
    let parts = live(&mut world);
    world.upsert(&parts, part("p", 1, false));
    assert_eq!(seen(&mut world, 1), (Some(vec!["p".into()]), None));
    tried();
    assert_eq!(world.upsert(&parts, part("q", 2, true)), [], "it is not known whom this concerns");
    assert_eq!(tried(), [was(true, &["q"])]);
    world.pass(secs(60));
    assert_eq!(seen(&mut world, 2), (Some(vec!["p".into()]), Some((PROBLEM.into(), secs(60), false))));
    world.reset(&parts, vec![part("p", 1, false), part("q", 2, true)]);
    assert_eq!(tried(), [], "nothing has changed");
    world.upsert(&parts, part("r", 3, false));
    world.pass(secs(60));
    assert_eq!(tried(), [was(false, &["p", "q", "r"])], "over everything");
    assert_eq!(seen(&mut world, 3).1, Some((PROBLEM.into(), secs(120), false)), "since the first time");
    assert_eq!(world.delete(&parts, part("q", 4, true)), [], "the part that is listened to has not changed");
    assert_eq!(tried(), [was(false, &["p", "q", "r"])]);
    assert_eq!(seen(&mut world, 4), (Some(vec!["p".into(), "r".into()]), None));
    world.upsert(&parts, part("r", 5, false));
    assert_eq!(tried(), [was(true, &["r"])], "what changes is enough again");
}

#[test]
fn a_first_fold_that_panics_is_missed_and_whoever_starved_of_it_is_looked_at_once_it_does_not() {
    let mut world = World::new(&[Fake::full()]);
    world.slice(&[S1]);
    for url in [of(BASE, ENDPOINT_SLICE), of(S1, CHILD), of(S1, NAME), of(S1, THING), of(S1, BINDING)] {
        world.reset(&url, Vec::new());
    }
    let parts = live(&mut world);
    world.reset(&parts, vec![part("p", 1, true)]);
    assert_eq!(seen(&mut world, 1), (None, Some((PROBLEM.into(), Duration::ZERO, true))));
    assert_eq!(world.core.overview(moment(world.now)).missing, [PROBLEM]);
    world.upsert(&of(S1, THING), raw("a", "x", 2, json!({})));
    world.end(&work(0, "a", "x"), Ended { starved: true, ..settled() });
    assert_eq!(world.upsert(&parts, part("q", 2, false)), [], "it still panics");
    assert_eq!(world.delete(&parts, part("p", 3, true)), [work(0, "a", "x")]);
    world.drain();
    assert_eq!(seen(&mut world, 3), (Some(vec!["q".into()]), None));
    assert_eq!(world.core.overview(moment(world.now)).missing, [] as [String; 0]);
}

#[test]
fn whoever_starved_of_a_view_that_could_not_be_made_anew_is_looked_at_once_it_is() {
    let mut world = World::ready(&[Fake::full()]);
    let parts = live(&mut world);
    world.upsert(&parts, part("p", 1, true));
    world.upsert(&of(S1, THING), raw("a", "x", 1, json!({})));
    world.end(&work(0, "a", "x"), Ended { starved: true, ..settled() });
    assert_eq!(world.upsert(&parts, part("p", 2, false)), [work(0, "a", "x")]);
}

#[test]
fn where_it_cannot_be_told_whom_a_change_concerns_it_concerns_everybody_who_reads_the_input() {
    let mut world = World::ready(&[Fake::full(), Fake::new("reads nothing")]);
    for (at, workspace, name) in [(1, "a", "x"), (2, "a", "y"), (3, "b", "x")] {
        world.upsert(&of(S1, THING), raw(workspace, name, at, json!({})));
    }
    world.drain();
    assert_eq!(world.upsert(&of(S1, NAME), raw("a", "unsaid", 4, json!({}))), [work(0, "a", "x"), work(0, "a", "y")]);
    world.drain();
    let mut begun = world.upsert(&of(BASE, PART), part("unsaid", 5, false));
    begun.sort();
    assert_eq!(begun, [work(0, "a", "x"), work(0, "a", "y"), work(0, "b", "x")]);
    world.drain();
    assert_eq!(world.upsert(&of(S1, NAME), raw("a", "said", 6, json!({}))), [], "the next one is told again");
}

#[test]
fn a_change_that_concerns_everybody_during_a_call_that_wrote_is_not_missed() {
    let mut world = World::ready(&[Fake::full()]);
    world.upsert(&of(S1, THING), raw("a", "x", 1, json!({})));
    world.upsert(&of(S1, NAME), raw("a", "unsaid", 2, json!({})));
    assert_eq!(world.end(&work(0, "a", "x"), settled()), [work(0, "a", "x")]);
}
