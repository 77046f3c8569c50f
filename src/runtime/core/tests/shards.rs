//! Endpoints that come and go, workspaces that move, and bindings that end.

use super::*;

/// A world with `a/x`, its child and a name behind the first endpoint.
fn bound() -> World {
    let mut world = World::ready(&[Fake::full()]);
    world.bind(S1, "a");
    show(&mut world, S1);
    world.drain();
    world
}

/// Every stream of an endpoint shows the same objects.
fn show(world: &mut World, place: &str) {
    world.reset(&of(place, NAME), vec![raw("a", "n", 2, json!({}))]);
    world.reset(&of(place, CHILD), vec![raw("a", "x", 3, json!({}))]);
    world.reset(&of(place, BINDING), vec![raw("a", "binding", 1, json!({"status": {"phase": "Bound"}}))]);
    world.reset(&of(place, THING), vec![raw("a", "x", 1, json!({"names": ["n"]}))]);
}

fn is_forgotten(world: &World) {
    let core = &world.core;
    assert_eq!((core.objects.len(THING), core.objects.len(CHILD), core.objects.debts()), (0, 0, 0));
    assert!(core.names[&NAME].of_shard_is_empty(), "names");
    assert!(core.parked.is_empty() && core.starved.is_empty() && core.unseen.is_empty(), "what waits");
    assert!(core.rechecks.next().is_none(), "timers");
    assert!(core.actors.iter().all(|actor| actor.index.is_empty()), "subscriptions");
    let stats = core.queue.stats(world.now);
    assert_eq!((stats.fresh, stats.resync, stats.blocked, stats.delayed), (0, 0, 0, 0));
}

impl super::super::platform::NamesOfKind {
    fn of_shard_is_empty(&self) -> bool {
        self.get(&LogicalCluster::new("a")).is_empty()
    }
}

#[test]
fn a_deleted_binding_drops_everything_of_its_workspace_and_calls_nothing() {
    type Prepare = fn(&mut World);
    let cases: [(&str, Prepare); 6] = [
        ("at rest", |_| {}),
        ("while it waits for its next look", |world| {
            world.upsert(&of(S1, THING), raw("a", "x", 5, json!({})));
            world.end(&work(0, "a", "x"), Ended { recheck: Some(secs(60)), ..settled() });
            world.pass(secs(60));
        }),
        ("while it starves", |world| {
            world.upsert(&of(S1, THING), raw("a", "x", 5, json!({})));
            world.end(&work(0, "a", "x"), Ended { starved: true, outcome: Outcome::Backoff, ..settled() });
        }),
        ("while its write is unseen", |world| {
            world.upsert(&of(S1, THING), raw("a", "x", 5, json!({})));
            world.end(&work(0, "a", "x"), wrote(THING, "x", "u1", Some(10)));
            world.upsert(&of(S1, THING), raw("a", "x", 6, json!({})));
        }),
        ("while a child it made is unseen", |world| {
            world.delete(&of(S1, CHILD), raw("a", "x", 4, json!({})));
            world.end(&work(0, "a", "x"), wrote(CHILD, "x", "u2", Some(10)));
        }),
        ("while its endpoint is away", |world| {
            world.slice(&[]);
            world.slice(&[S1]);
            world.reset(&of(S1, THING), vec![raw("a", "x", 9, json!({}))]);
            assert_eq!(world.core.parked.len(), 1);
        }),
    ];
    for (why, prepare) in cases {
        let mut world = bound();
        prepare(&mut world);
        assert_eq!(world.delete(&of(S1, BINDING), raw("a", "binding", 20, json!({}))), [], "{why}");
        is_forgotten(&world);
        assert_eq!(world.pass(secs(100)), [], "{why}");
    }
}

#[test]
fn a_call_under_way_when_the_binding_goes_ends_in_nothing() {
    let mut world = bound();
    world.upsert(&of(S1, THING), raw("a", "x", 5, json!({})));
    world.reset(&of(S1, BINDING), Vec::new());
    world.end(&work(0, "a", "x"), Ended { starved: true, recheck: Some(secs(9)), outcome: Outcome::Backoff, ..settled() });
    is_forgotten(&world);
}

#[test]
fn a_second_binding_that_goes_leaves_the_workspace_to_the_first() {
    let mut world = bound();
    world.upsert(&of(S1, BINDING), raw("a", "second", 2, json!({"status": {"phase": "Binding"}})));
    world.delete(&of(S1, BINDING), raw("a", "second", 3, json!({})));
    assert_eq!(world.core.objects.len(THING), 1);
    world.reset(&of(S1, BINDING), vec![raw("a", "third", 4, json!({}))]);
    assert_eq!(world.core.objects.len(THING), 1, "replaced within one list");
    world.reset(&of(S1, BINDING), Vec::new());
    assert_eq!(world.core.objects.len(THING), 0);
}

#[test]
fn a_new_binding_nudges_the_streams_of_its_shard_once() {
    let mut world = bound();
    world.orders.clear();
    let binding = |workspace: &str| raw(workspace, "binding", 9, json!({"status": {"phase": "Bound"}}));
    world.reset(&of(S1, BINDING), ["a", "b", "c", "d"].map(binding).to_vec());
    let mut nudged: Vec<_> = world.orders.drain(..).map(|(url, order)| (url, order == Order::Nudge)).collect();
    nudged.sort();
    let mut wanted: Vec<_> = [BINDING, CHILD, NAME, THING].map(|kind| (of(S1, kind), true)).to_vec();
    wanted.sort();
    assert_eq!(nudged, wanted);
}

#[test]
fn a_slice_that_does_not_exist_is_missing_and_one_without_endpoints_is_not() {
    let missing = |world: &World| world.core.overview(moment(world.now)).missing;
    let mut world = World::new(&[Fake::new("one")]);
    let slices = of(BASE, ENDPOINT_SLICE);
    assert_eq!(missing(&world), ["apiexportendpointslices.apis.kcp.io: not listed yet"]);
    world.reset(&slices, Vec::new());
    assert_eq!(missing(&world), ["apiexportendpointslices.apis.kcp.io export: there is none; is the export set up?"]);
    world.slice(&[]);
    assert_eq!(missing(&world), Vec::<String>::new());
    world.reset(&slices, Vec::new());
    assert_eq!(missing(&world), Vec::<String>::new(), "one that was there and is gone leaves what it said in force");
}

#[test]
fn a_slice_that_is_deleted_keeps_its_endpoints() {
    let mut world = bound();
    world.delete(&of(BASE, ENDPOINT_SLICE), raw("", "export", 9, json!({})));
    world.reset(&of(BASE, ENDPOINT_SLICE), Vec::new());
    assert!(world.closed.is_empty());
    assert_eq!(world.upsert(&of(S1, THING), raw("a", "x", 5, json!({}))), [work(0, "a", "x")]);
}

#[test]
fn an_endpoint_that_left_is_forgotten_after_a_grace_and_calls_nothing_meanwhile() {
    let mut world = bound();
    let stream = world.streams[&of(S1, THING)];
    world.slice(&[]);
    assert_eq!(world.closed.len(), 3, "all but the roster");
    assert_eq!(world.tell_as(stream, News::Upsert(raw("a", "x", 9, json!({})))), [], "a closed stream says nothing");
    world.pass(secs(29));
    assert_eq!(world.core.objects.len(THING), 1);
    assert_eq!(world.pass(secs(1)), []);
    is_forgotten(&world);
    assert_eq!(world.core.shards.workspaces(), 0);
}

#[test]
fn an_endpoint_that_is_back_within_the_grace_goes_on_as_if_nothing_had_been() {
    let mut world = bound();
    world.upsert(&of(S1, THING), raw("a", "x", 5, json!({"names": ["n"]})));
    world.upsert(&of(S1, THING), raw("a", "x", 6, json!({"names": ["n"]})));
    world.slice(&[]);
    assert_eq!(world.end(&work(0, "a", "x"), settled()), [], "nobody follows what the call would see");
    world.pass(secs(20));
    world.slice(&[S1]);
    assert!(world.running.is_empty());
    world.reset(&of(S1, THING), vec![raw("a", "x", 6, json!({"names": ["n"]}))]);
    world.reset(&of(S1, CHILD), vec![raw("a", "x", 3, json!({}))]);
    assert!(world.running.is_empty(), "the names have not been listed yet");
    assert_eq!(world.reset(&of(S1, NAME), vec![raw("a", "n", 2, json!({}))]), [work(0, "a", "x")]);
    world.drain();
    assert_eq!(world.pass(secs(60)), []);
    assert_eq!(world.core.objects.len(THING), 1);
}

#[test]
fn a_workspace_that_moved_behind_another_endpoint_keeps_what_is_there() {
    let mut world = bound();
    world.slice(&[S2]);
    show(&mut world, S2);
    assert_eq!(world.drain(), [work(0, "a", "x")], "it is looked at over there");
    world.pass(secs(60));
    assert_eq!((world.core.objects.len(THING), world.core.objects.len(CHILD)), (1, 1));
    world.upsert(&of(S2, NAME), raw("a", "other", 9, json!({})));
    assert_eq!(world.delete(&of(S2, NAME), raw("a", "n", 10, json!({}))), [work(0, "a", "x")], "and still hears");
    assert_eq!(&*world.running[&work(0, "a", "x")].endpoint, S2);
}

#[test]
fn what_has_moved_survives_what_is_left_behind() {
    let mut world = bound();
    world.slice(&[S1, S2]);
    for kind in [CHILD, NAME] {
        world.reset(&of(S2, kind), Vec::new());
    }
    world.upsert(&of(S1, THING), raw("a", "old", 4, json!({})));
    world.drain();
    // The thing has moved and its change waits; its child, the name and another thing are still shown by the first endpoint only.
    world.reset(&of(S2, THING), vec![raw("a", "x", 1, json!({"names": ["n"]}))]);
    world.upsert(&of(S2, THING), raw("a", "x", 2, json!({"names": ["n"]})));
    assert_eq!(world.delete(&of(S1, BINDING), raw("a", "binding", 9, json!({}))), []);
    assert_eq!(world.core.objects.len(THING), 1);
    assert_eq!(world.end(&work(0, "a", "x"), settled()), [work(0, "a", "x")], "the change that waited is not lost");
    world.drain();
    assert_eq!(world.upsert(&of(S2, NAME), raw("a", "n", 9, json!({}))), [work(0, "a", "x")], "it still listens");
}

#[test]
fn work_parked_behind_one_endpoint_waits_for_the_other_after_a_move() {
    let mut world = World::new(&[Fake::full()]);
    world.slice(&[S1]);
    world.reset(&of(BASE, PART), Vec::new());
    world.reset(&of(S1, THING), vec![raw("a", "x", 1, json!({}))]);
    world.pass(secs(5));
    world.slice(&[S1, S2]);
    world.reset(&of(S2, THING), vec![raw("a", "x", 1, json!({}))]);
    assert_eq!(world.reset(&of(S1, CHILD), Vec::new()), []);
    assert_eq!(world.reset(&of(S1, NAME), Vec::new()), [], "the first endpoint's inputs are not those of the object any more");
    world.reset(&of(S2, CHILD), Vec::new());
    assert_eq!(world.reset(&of(S2, NAME), Vec::new()), [work(0, "a", "x")]);
}

#[test]
fn endpoints_that_come_and_go_leave_nothing_behind() {
    let mut world = bound();
    for round in 0..20 {
        let url = format!("https://s{round}/x");
        world.slice(&[&url]);
        world.pass(secs(31));
    }
    assert_eq!(world.core.shards.known(), 1);
}
