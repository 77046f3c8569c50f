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
    world.health(&of(S1, BINDING), Health::Broken { what: "down".into() });
    world.pass(secs(29));
    assert_eq!(forgotten(&mut world), [] as [String; 0]);
    world.pass(secs(1));
    assert_eq!((announced(&mut world), forgotten(&mut world)), (Vec::new(), vec!["a".into()]), "what is kept for it goes all the same");
    world.slice(&[S1, S2]);
    world.bind(S1, "a");
    assert_eq!(announced(&mut world), [], "it was never told of as gone");
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

/// The last tenant behind an endpoint unbinds, and the slice tells of it first: the endpoint has left, and its roster is asked once more.
fn leaving() -> World {
    let mut world = bound();
    world.pass(secs(1));
    world.refreshes();
    world.slice(&[S2]);
    assert_eq!(world.refreshes(), [of(S1, BINDING)]);
    assert!(!world.streams.contains_key(&of(S1, THING)), "nothing else is followed there any more");
    assert_eq!(announced(&mut world), []);
    world
}

#[test]
fn who_unbinds_last_is_told_of_by_the_roster_though_the_endpoint_has_left_before() {
    type Word = fn(&mut World);
    let words: [(&str, Word); 2] = [
        ("an event", |world| drop(world.delete(&of(S1, BINDING), binding("a", "Bound")))),
        ("a complete list", |world| drop(world.reset(&of(S1, BINDING), Vec::new()))),
    ];
    for (what, say) in words {
        let mut world = leaving();
        world.pass(secs(29));
        say(&mut world);
        assert_eq!((announced(&mut world), forgotten(&mut world)), (vec![told("a", false)], vec!["a".into()]), "{what}");
        world.pass(secs(1));
        assert!(!world.streams.contains_key(&of(S1, BINDING)), "with the grace its roster goes too");
        assert_eq!((announced(&mut world), forgotten(&mut world)), (Vec::new(), Vec::new()), "{what}: once");
        assert_eq!(world.core.shards.known(), 1);
    }
}

#[test]
fn a_roster_that_cannot_be_asked_when_its_endpoint_goes_has_an_hour_for_its_last_word() {
    type Word = fn(&mut World);
    let words: [(&str, Word, bool); 3] = [
        ("an event", |world| drop(world.delete(&of(S1, BINDING), binding("a", "Bound"))), false),
        ("nobody", |world| drop(world.reset(&of(S1, BINDING), Vec::new())), false),
        ("it is bound", |world| drop(world.reset(&of(S1, BINDING), vec![binding("a", "Bound")])), true),
    ];
    for (what, say, is_bound) in words {
        let mut world = leaving();
        world.pass(secs(3599));
        assert_eq!((announced(&mut world), forgotten(&mut world)), (Vec::new(), vec!["a".into()]), "{what}: what is kept goes");
        assert_eq!(world.core.shards.workspaces(), 0);
        say(&mut world);
        assert_eq!(announced(&mut world), if is_bound { Vec::new() } else { vec![told("a", false)] }, "{what}");
        assert_eq!((world.streams.contains_key(&of(S1, BINDING)), world.core.shards.known()), (false, 1), "{what}");
    }
    let mut world = leaving();
    world.pass(secs(3600));
    assert_eq!((world.streams.contains_key(&of(S1, BINDING)), world.core.shards.known()), (false, 1), "it may be gone for good");
    assert_eq!((announced(&mut world), world.core.wake_at()), (Vec::new(), None));
}

#[test]
fn an_endpoint_that_is_back_before_its_roster_could_be_asked_has_lost_nobody() {
    let mut world = leaving();
    world.pass(secs(600));
    world.slice(&[S1, S2]);
    world.reset(&of(S1, BINDING), vec![binding("a", "Bound")]);
    world.pass(secs(3600));
    assert_eq!((announced(&mut world), world.core.shards.workspaces()), (Vec::new(), 1));
    world.delete(&of(S1, BINDING), binding("a", "Bound"));
    assert_eq!(announced(&mut world), [told("a", false)]);
}

#[test]
fn who_moved_while_the_old_endpoint_could_not_be_asked_has_not_unbound() {
    let mut world = leaving();
    world.bind(S2, "a");
    world.pass(secs(60));
    world.reset(&of(S1, BINDING), Vec::new());
    assert_eq!((announced(&mut world), forgotten(&mut world)), (Vec::new(), Vec::new()));
}

#[test]
fn an_endpoint_that_leaves_for_a_while_or_for_good_unbinds_nobody_who_is_bound() {
    for back in [true, false] {
        let mut world = leaving();
        let roster = world.streams[&of(S1, BINDING)];
        world.reset(&of(S1, BINDING), vec![binding("a", "Bound")]);
        world.pass(secs(29));
        if back {
            world.slice(&[S1, S2]);
            assert_eq!(world.streams[&of(S1, BINDING)], roster, "it was followed all the time");
        }
        world.pass(secs(60));
        assert_eq!(announced(&mut world), [], "back: {back}");
        // Twice where it is away: a call that was under way may have learnt something in between.
        assert_eq!(forgotten(&mut world).is_empty(), back);
        assert_eq!(world.streams.contains_key(&of(S1, BINDING)), back);
    }
}

#[test]
fn where_nobody_was_bound_nothing_is_followed_any_more() {
    let mut world = bound();
    world.refreshes();
    world.slice(&[S1]);
    assert_eq!(world.refreshes(), [] as [String; 0]);
    assert!(!world.streams.contains_key(&of(S2, BINDING)));
}
