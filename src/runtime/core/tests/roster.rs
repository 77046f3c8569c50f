//! Who binds and unbinds: what is told of it, and that nothing is kept for whoever is gone.

use super::*;

/// A binding as the roster shows it.
fn binding(workspace: &str, phase: &str) -> Raw {
    raw(workspace, "binding", 1, json!({"status": {"phase": phase}}))
}

fn announced(world: &mut World) -> Vec<(String, bool)> {
    std::mem::take(&mut world.announced)
}

fn forgotten(world: &mut World) -> Vec<String> {
    world.forgotten.drain(..).map(|workspace| workspace.to_string()).collect()
}

fn told(workspace: &str, bound: bool) -> (String, bool) {
    (workspace.to_owned(), bound)
}

/// Two endpoints, and `a` bound behind the first.
fn bound() -> World {
    let mut world = World::ready(&[Fake::new("one")]);
    world.slice(&[S1, S2]);
    world.bind(S1, "a");
    assert_eq!(announced(&mut world), [told("a", true)]);
    world
}

#[test]
fn a_workspace_is_told_of_once_it_is_bound_and_once_it_has_unbound() {
    let mut world = World::ready(&[Fake::new("one")]);
    world.upsert(&of(S1, BINDING), binding("a", "Binding"));
    assert_eq!(announced(&mut world), []);
    for _ in 0..3 {
        world.upsert(&of(S1, BINDING), binding("a", "Bound"));
    }
    world.upsert(&of(S1, BINDING), raw("a", "second", 1, json!({"status": {"phase": "Bound"}})));
    world.delete(&of(S1, BINDING), binding("a", "Bound"));
    assert_eq!(announced(&mut world), [told("a", true)]);
    world.delete(&of(S1, BINDING), raw("a", "second", 2, json!({})));
    assert_eq!((announced(&mut world), forgotten(&mut world)), (vec![told("a", false)], vec!["a".into()]));
    world.bind(S1, "a");
    assert_eq!(announced(&mut world), [told("a", true)]);
}

#[test]
fn a_list_tells_of_everybody_once_and_of_whoever_is_not_in_it() {
    let mut world = World::ready(&[Fake::new("one")]);
    let all = |names: &[&str]| names.iter().map(|name| binding(name, "Bound")).collect::<Vec<_>>();
    world.reset(&of(S1, BINDING), all(&["a", "b", "c"]));
    assert_eq!(announced(&mut world), ["a", "b", "c"].map(|name| told(name, true)));
    world.reset(&of(S1, BINDING), all(&["a", "b", "c"]));
    assert_eq!(announced(&mut world), []);
    world.reset(&of(S1, BINDING), all(&["b", "d"]));
    assert_eq!(announced(&mut world), [told("d", true), told("a", false), told("c", false)]);
}

#[test]
fn what_cannot_be_reached_has_not_unbound() {
    let mut world = bound();
    world.health(&of(S1, BINDING), Health::Broken { what: "down".into() });
    world.health(&of(S1, BINDING), Health::NotServed);
    world.pass(secs(3600));
    assert_eq!((announced(&mut world), forgotten(&mut world)), (Vec::new(), Vec::new()));
    world.slice(&[S2]);
    world.pass(secs(29));
    assert_eq!(forgotten(&mut world), [] as [String; 0]);
    world.pass(secs(1));
    assert_eq!((announced(&mut world), forgotten(&mut world)), (Vec::new(), vec!["a".into()]), "what is kept for it goes all the same");
    world.slice(&[S1, S2]);
    world.bind(S1, "a");
    assert_eq!(announced(&mut world), [told("a", true)], "and it is told of anew when it is there again");
}

#[test]
fn a_workspace_that_moves_has_neither_bound_nor_unbound() {
    let mut world = bound();
    world.bind(S2, "a");
    world.delete(&of(S1, BINDING), binding("a", "Bound"));
    world.slice(&[S2]);
    world.pass(secs(60));
    assert_eq!((announced(&mut world), forgotten(&mut world)), (Vec::new(), Vec::new()));
    world.delete(&of(S2, BINDING), binding("a", "Bound"));
    assert_eq!((announced(&mut world), forgotten(&mut world)), (vec![told("a", false)], vec!["a".into()]));
}

#[test]
fn what_a_call_learns_of_a_workspace_that_unbinds_under_it_is_forgotten_too() {
    let mut world = bound();
    world.upsert(&of(S1, THING), raw("a", "x", 5, json!({})));
    world.reset(&of(S1, BINDING), Vec::new());
    assert_eq!(forgotten(&mut world), ["a"]);
    world.end(&work(0, "a", "x"), settled());
    assert_eq!(forgotten(&mut world), ["a"], "a token that it asked for came after the first time");
}
