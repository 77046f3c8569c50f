//! External work in the heart: what a call waits for, where work is begun, and what is proof that an object is gone.

use super::*;
use crate::api::reason::Reason;
use crate::runtime::external::{CONFIG_MAP, Entry, Keeping, Lack, SECRET};
use crate::runtime::secured::Kept;

const GRACE: Duration = DEFAULT_ABSENCE_GRACE;
const ALMOST: Duration = Duration::from_secs(15 * 60 - 1);

fn near(kind: KindRef) -> String {
    rest::within_namespace(BASE, kind, "kcm-system")
}

fn caster() -> Fake {
    Fake { external: External::Workload, ..Fake::new("caster") }
}

fn secret(name: &str, version: u64) -> Raw {
    let labels = json!({"runtime.edge-connect.eu/workload-purpose": "workload"});
    Raw {
        name: ObjectName::namespaced("kcm-system", name),
        ..raw("", name, version, json!({"metadata": {"name": name, "labels": labels}}))
    }
}

fn record(workspace: &str, name: &str, uid: &str, version: u64) -> Raw {
    record_of(workspace, name, uid, version, Keeping::Nothing)
}

fn record_of(workspace: &str, name: &str, uid: &str, version: u64, keeping: Keeping) -> Raw {
    let key = work(0, workspace, name).key;
    let record = Entry::record_name("export", "caster", &key, uid);
    let entry = Entry {
        controller: "caster".into(),
        export: "export".into(),
        key,
        uid: uid.into(),
        kind: "things.test".into(),
        path: None,
        cluster: Some("one".into()),
        object: json!({"metadata": {"name": name, "uid": uid}}).to_string().into(),
        keeping,
    };
    let mut body = entry.manifest("kcm-system", &record, None);
    body["metadata"]["resourceVersion"] = version.to_string().into();
    Raw { name: ObjectName::namespaced("kcm-system", &*record), ..raw("", &record, version, body) }
}

/// A world in which everything was listed, and every stream is as it should be.
fn live(secrets: &[Raw], records: &[Raw]) -> World {
    let mut world = World::ready(&[caster()]);
    world.reset(&of(BASE, ENDPOINT_SLICE), vec![raw("", "export", 1, json!({"status": {"endpoints": [{"url": S1}]}}))]);
    world.reset(&near(SECRET), secrets.to_vec());
    world.reset(&near(CONFIG_MAP), records.to_vec());
    let urls: Vec<String> = world.streams.keys().cloned().collect();
    for url in urls {
        world.health(&url, Health::Live);
    }
    world
}

fn chosen(world: &World, work: &Work) -> Result<String, Lack> {
    let choice = world.running[work].external.as_ref().unwrap().choice.as_ref().unwrap();
    choice.chosen.clone().map(|name| name.to_string())
}

#[test]
fn no_call_begins_before_pool_and_index_were_listed_and_after_ten_seconds_one_is_told_why() {
    let mut world = World::new(&[caster()]);
    world.slice(&[S1]);
    let urls: Vec<_> = world.streams.keys().filter(|url| **url != near(SECRET)).cloned().collect();
    for url in urls {
        world.reset(&url, Vec::new());
    }
    assert_eq!(world.upsert(&of(S1, THING), raw("a", "car", 1, json!({}))), []);
    assert_eq!(world.pass(secs(10)), [work(0, "a", "car")]);
    let lack = chosen(&world, &work(0, "a", "car")).unwrap_err();
    assert!(lack.passing && lack.reason == Reason::AccessPending && lack.what.contains("has not been listed completely yet"), "{lack:?}");
    let mut starved = settled();
    starved.starved = true;
    assert_eq!(world.end(&work(0, "a", "car"), starved), []);
    assert_eq!(world.reset(&near(SECRET), vec![secret("one", 1)]), [work(0, "a", "car")]);
    assert_eq!(chosen(&world, &work(0, "a", "car")).unwrap(), "one");
}

#[test]
fn what_was_promised_counts_before_it_is_recorded_and_is_kept_as_long_as_it_is_open() {
    let mut world = live(&[secret("one", 1), secret("two", 1)], &[]);
    for (name, wanted) in [("a1", "one"), ("a2", "two"), ("a3", "one")] {
        world.upsert(&of(S1, THING), raw("a", name, 1, json!({})));
        assert_eq!(chosen(&world, &work(0, "a", name)).unwrap(), wanted);
    }
    world.end(&work(0, "a", "a3"), Ended { outcome: Outcome::After(Duration::ZERO), ..settled() });
    assert_eq!(chosen(&world, &work(0, "a", "a3")).unwrap(), "one", "it is not drawn again");
    world.delete(&of(S1, THING), raw("a", "a1", 2, json!({})));
    world.upsert(&of(S1, THING), raw("a", "a4", 1, json!({})));
    assert_eq!(chosen(&world, &work(0, "a", "a4")).unwrap(), "one", "what went takes nothing with it");
}

#[test]
fn a_member_that_leaves_and_comes_back_wakes_whose_work_is_there() {
    let mut world = live(&[secret("one", 1), secret("two", 1)], &[record("a", "car", "u1", 1)]);
    world.upsert(&of(S1, THING), raw("a", "car", 1, json!({})));
    world.drain();
    assert_eq!(world.delete(&near(SECRET), secret("two", 2)), []);
    assert_eq!(world.delete(&near(SECRET), secret("one", 2)), [work(0, "a", "car")]);
    assert_eq!(chosen(&world, &work(0, "a", "car")).unwrap(), "one", "it is the recorded one, whether it is there or not");
    world.drain();
    assert_eq!(world.upsert(&near(SECRET), secret("one", 3)), [work(0, "a", "car")]);
}

#[test]
fn another_purpose_takes_what_waits_and_moves_nothing() {
    let mut world = World::ready(&[Fake { config: true, ..caster() }]);
    world.reset(&near(SECRET), vec![secret("one", 1)]);
    world.reset(&near(CONFIG_MAP), vec![record("a", "car", "u1", 1)]);
    world.reset(&of(BASE, CONFIG), vec![raw("", "config", 1, json!({"spec": {"text": "x", "purpose": "forge"}}))]);
    for name in ["boat", "car"] {
        world.upsert(&of(S1, THING), raw("a", name, 1, json!({})));
    }
    let lack = chosen(&world, &work(0, "a", "boat")).unwrap_err();
    assert!(lack.what.contains("workload-purpose=forge") && !lack.passing, "{lack:?}");
    assert_eq!(chosen(&world, &work(0, "a", "car")).unwrap(), "one", "where it is recorded");
    let mut starved = settled();
    starved.starved = true;
    world.end(&work(0, "a", "boat"), starved);
    world.end(&work(0, "a", "car"), settled());
    let back = raw("", "config", 2, json!({"metadata": {"generation": 2}, "spec": {"text": "x", "purpose": "workload"}}));
    assert!(world.upsert(&of(BASE, CONFIG), back).contains(&work(0, "a", "boat")));
    assert_eq!(chosen(&world, &work(0, "a", "boat")).unwrap(), "one");
}

/// Whether the end of the work of an object that is not there is asked for, under this doubt.
fn ended_under(doubt: impl FnOnce(&mut World)) -> bool {
    let mut world = live(&[secret("one", 1)], &[record("a", "car", "u1", 1)]);
    world.bind(S1, "b");
    doubt(&mut world);
    world.pass(ALMOST);
    assert!(world.running.is_empty(), "before the grace is over nothing is asked for");
    !world.pass(secs(600)).is_empty()
}

#[test]
fn the_work_of_what_is_not_seen_is_ended_where_there_is_no_doubt_and_nowhere_else() {
    assert!(ended_under(|_| {}));
    assert!(ended_under(|world| world.bind(S1, "a")), "its workspace is there, and it is not");
    let broken = || Health::Broken { what: "no answer".into() };
    let forbidden = || Health::Forbidden { what: "no rule".into() };
    for url in [of(S1, THING), of(S1, BINDING), of(BASE, ENDPOINT_SLICE), near(CONFIG_MAP)] {
        for health in [broken(), forbidden(), Health::NotServed, Health::Syncing] {
            let what = format!("{url} is {health:?}");
            assert!(!ended_under(|world| drop(world.health(&url, health))), "{what}");
        }
    }
    assert!(
        !ended_under(|world| drop(world.health(&of(S1, THING), Health::SyncedEmpty))),
        "somebody is bound there, so that it is to be served"
    );
    assert!(!ended_under(|world| drop(world.slice(&[S1, S2]))), "nobody has looked behind the other endpoint");
    assert!(ended_under(|world| drop(world.slice(&[]))), "nobody is bound anywhere");
    for (uid, why) in [("u1", "it is there"), ("u2", "a later one of its name is there")] {
        let there = |world: &mut World| {
            world.upsert(&of(S1, THING), incarnation("a", "car", uid, 1, json!({})));
            world.drain();
        };
        assert!(!ended_under(there), "{why}");
    }
}

#[test]
fn an_absence_is_counted_from_when_it_was_clear() {
    let mut world = World::new(&[caster()]);
    world.slice(&[S1]);
    world.reset(&near(CONFIG_MAP), vec![record("a", "car", "u1", 1)]);
    world.pass(GRACE * 4);
    let urls: Vec<_> = world.streams.keys().cloned().collect();
    for url in urls.iter().filter(|url| **url != near(CONFIG_MAP)) {
        world.reset(url, Vec::new());
    }
    world.slice(&[S1]);
    for url in urls {
        world.health(&url, Health::Live);
    }
    assert_eq!(world.pass(ALMOST), []);
    assert_eq!(world.pass(secs(1)), [work(0, "a", "car")]);
    let run = &world.running[&work(0, "a", "car")];
    let probe = run.external.as_ref().unwrap().orphan.clone().unwrap();
    assert_eq!((probe.is_bound, probe.endpoints.len(), &*run.raw.uid), (false, 1, "u1"));
    world.end(&work(0, "a", "car"), settled());
    world.delete(&near(CONFIG_MAP), record("a", "car", "u1", 2));
    assert_eq!(world.pass(GRACE * 4), [], "once is enough");
}

#[test]
fn a_call_knows_what_is_kept_and_is_made_once_more_where_that_goes_though_its_record_counts_on_it() {
    let mut world = World::new(&[Fake { external: External::Elsewhere, secures: true, ..Fake::new("caster") }]);
    world.slice(&[S1]);
    let urls: Vec<_> = world.streams.keys().filter(|url| **url != near(SECRET)).cloned().collect();
    for url in urls {
        world.reset(&url, Vec::new());
    }
    world.upsert(&near(CONFIG_MAP), record_of("a", "car", "u1", 1, Keeping::Kept));
    world.upsert(&near(CONFIG_MAP), record_of("a", "boat", "u1", 1, Keeping::Ended));
    let beside = |name: &str, version: u64, digest: &str| {
        let name = Entry::record_name("export", "caster", &work(0, "a", name).key, "u1");
        let tags = json!({"metadata": {"name": name, "annotations": {"runtime.edge-connect.eu/digest": digest}}});
        Raw { name: ObjectName::namespaced("kcm-system", &*name), ..raw("", &name, version, tags) }
    };
    let digest =
        |world: &World, work: &Work| world.running[work].external.as_ref().unwrap().kept.as_ref().map(|kept| kept.digest.to_string());
    for name in ["boat", "car"] {
        assert_eq!(world.upsert(&of(S1, THING), raw("a", name, 1, json!({}))), [], "nobody has looked yet what is kept");
    }
    let (boat, car) = (work(0, "a", "boat"), work(0, "a", "car"));
    assert_eq!(world.reset(&near(SECRET), vec![beside("car", 5, "x"), beside("boat", 5, "z")]), [boat.clone(), car.clone()]);
    assert_eq!((digest(&world, &car).as_deref(), digest(&world, &boat).as_deref()), (Some("x"), Some("z")));
    world.core.handle(moment(world.now), Event::Secured(Kept::read(&beside("car", 7, "y"))));
    world.drain();
    assert_eq!(world.upsert(&near(SECRET), beside("car", 6, "w")), [], "an earlier state");
    assert_eq!(world.delete(&near(SECRET), beside("boat", 8, "z")), [], "nobody needs it any more");
    assert_eq!(world.reset(&near(SECRET), Vec::new()), std::slice::from_ref(&car));
    assert_eq!(digest(&world, &car), None);
    world.end(&car, Ended { outcome: Outcome::After(Duration::ZERO), ..settled() });
    world.core.handle(moment(world.now), Event::Secured(Kept::read(&beside("car", 9, "y"))));
    world.end(&car, Ended { outcome: Outcome::After(Duration::ZERO), ..settled() });
    assert_eq!(digest(&world, &car).as_deref(), Some("y"), "what a call has kept is known to the next one");
}
