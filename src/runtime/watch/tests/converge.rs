//! Whatever the server did, the consumer shows what it holds soon after it behaves again.

use proptest::prelude::*;

use super::model::{Fault, Serving, World};
use super::*;

/// One thing that happens in the world.
#[derive(Clone, Debug)]
enum Event {
    Write(u8),
    Delete(u8),
    Compact,
    Serving(Serving),
    /// The server says the next thing this many times.
    Serve(u8),
    Bookmark,
    Fault(Fault),
    Late,
    Nudge,
    Refresh,
    Pass(Duration),
}

fn fault() -> impl Strategy<Value = Fault> {
    let failure = prop_oneof![
        Just(Failure::NotServed),
        Just(Failure::Forbidden(String::new())),
        Just(Failure::Gone),
        (0_u64..90).prop_map(|after| Failure::Throttled { after: Some(Duration::from_secs(after)) }),
        Just(Failure::Throttled { after: None }),
        Just(Failure::Unauthorized),
        Just(server(500)),
        Just(Failure::Transport(String::new())),
    ];
    prop_oneof![
        4 => failure.prop_map(Fault::Fail),
        1 => Just(Fault::End(Ending::Clean)),
        1 => Just(Fault::End(Ending::Broken(String::new()))),
        1 => prop_oneof![Just(410), Just(500), Just(503)].prop_map(Fault::ErrorEvent),
        1 => Just(Fault::Garbage),
        2 => (1_u64..20).prop_map(Fault::Replay),
        1 => Just(Fault::Hang),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let serving = prop_oneof![3 => Just(Serving::Served), 1 => Just(Serving::NotFound), 1 => Just(Serving::SilentlyEmpty)];
    prop_oneof![
        6 => (0_u8..6).prop_map(Event::Write),
        3 => (0_u8..6).prop_map(Event::Delete),
        1 => Just(Event::Compact),
        2 => serving.prop_map(Event::Serving),
        8 => (1_u8..5).prop_map(Event::Serve),
        1 => Just(Event::Bookmark),
        4 => fault().prop_map(Event::Fault),
        1 => Just(Event::Late),
        1 => Just(Event::Nudge),
        1 => Just(Event::Refresh),
        4 => (0_u64..5_000).prop_map(|millis| Event::Pass(Duration::from_millis(millis))),
        1 => (5_u64..200).prop_map(|seconds| Event::Pass(Duration::from_secs(seconds))),
    ]
}

fn happen(world: &mut World, event: Event) {
    match event {
        Event::Write(key) => world.server.write(key),
        Event::Delete(key) => world.server.delete(key),
        Event::Compact => world.server.compact(),
        Event::Serving(serving) => world.server.serving = serving,
        Event::Serve(times) => {
            for _ in 0..times {
                world.serve();
            }
        }
        Event::Bookmark => world.bookmark(),
        Event::Fault(fault) => world.fault(fault),
        Event::Late => world.late(),
        Event::Nudge => world.step(Input::Nudge),
        Event::Refresh => world.step(Input::Refresh),
        Event::Pass(time) => world.pass(time),
    }
}

/// The longest that a stream may take: a hung watch is noticed at its watchdog (180 s), then the longest backoff (30 s).
const LONGEST: Duration = Duration::from_secs(180 + 30);

/// Lets a server that behaves serve for [`LONGEST`], and gives the time until the consumer showed what it holds.
fn settle(world: &mut World) -> Option<Duration> {
    let start = world.now;
    let mut settled = None;
    while world.now <= start + LONGEST {
        while world.serve() {}
        let good = world.consumer == world.server.now() && world.machine.health() == &Health::Live;
        settled = good.then(|| settled.unwrap_or(world.now.saturating_sub(start)));
        let next = world.machine.wake_at().min(world.now + 50 * SECOND);
        world.now = world.now.max(next);
        world.bookmark();
        world.step(Input::Elapsed);
    }
    settled
}

proptest! {
    /// In every step the consumer shows one state that the server had (asserted in the world), and in the end the present one.
    #[test]
    fn any_interleaving_converges(events in prop::collection::vec(event(), 0..120), jitter in 0.0..1.0) {
        let mut world = World::new(jitter);
        world.step(Input::Elapsed);
        for event in events {
            happen(&mut world, event);
        }
        world.server.serving = Serving::Served;
        let settled = settle(&mut world);
        prop_assert!(settled.is_some(), "{:?} shows {:?} of {:?}", world.machine, world.consumer, world.server.now());
    }

    /// A reset is only ever given by a server that serves the kind: neither 404 nor a list without version empties a cache.
    #[test]
    fn what_is_not_served_never_resets(events in prop::collection::vec(event(), 0..60), then in prop::collection::vec(event(), 0..60)) {
        let mut world = World::new(0.5);
        world.step(Input::Elapsed);
        for event in events {
            happen(&mut world, event);
        }
        // A list whose first page was served may still end; what begins from here on may not.
        world.step(Input::Refresh);
        world.fault(Fault::End(Ending::Clean));
        world.fault(Fault::Fail(server(500)));
        let before = world.resets;
        for (at, event) in then.into_iter().filter(|event| !matches!(event, Event::Serving(_))).enumerate() {
            world.server.serving = if at % 3 == 0 { Serving::SilentlyEmpty } else { Serving::NotFound };
            happen(&mut world, event);
        }
        prop_assert_eq!(world.resets, before);
    }
}

#[test]
fn an_object_made_on_a_silent_server_shows_with_the_first_poll_after_it_serves() {
    let mut world = World::new(0.0);
    world.server.serving = Serving::SilentlyEmpty;
    world.step(Input::Elapsed);
    while world.serve() {}
    assert_eq!(world.machine.health(), &Health::SyncedEmpty);
    world.pass(7 * SECOND);
    world.server.write(3);
    world.server.serving = Serving::Served;
    assert_eq!(settle(&mut world), Some(23 * SECOND), "the poll of 30 s is the safety net");
}

#[test]
fn a_watch_gone_silent_with_the_last_binding_shows_what_came_with_the_next_one() {
    let mut world = World::new(0.0);
    world.server.serving = Serving::Served;
    world.step(Input::Elapsed);
    while world.serve() {}
    world.fault(Fault::Hang);
    world.server.write(4);
    assert!(settle(&mut world).is_some_and(|after| after > 180 * SECOND), "the watchdog finds it");
    world.fault(Fault::Hang);
    world.server.delete(4);
    world.step(Input::Refresh);
    assert_eq!(settle(&mut world), Some(Duration::ZERO), "and somebody who knows of the binding finds it at once");
}
