//! Several phases over the same clients: more of them, fewer, those that come back, and a stop in the middle.

use trueload_drive::Program;
use trueload_engine::generator::{Command, DoneReport};
use trueload_load::Stop;
use trueload_wire::shootout::Dialect;

use crate::peer::{Peer, Vice, Way};
use crate::world::{Cut, World};
use crate::{Engine, NS_PER_S};

fn counts(done: &DoneReport) -> [u64; 5] {
    let of = done.deliveries.as_ref().expect("deliveries");
    [of.expected, of.delivered, of.lost, of.duplicate, of.out_of_order]
}

#[test]
fn clients_are_added_and_taken_away_between_phases() {
    let mut world = World::new(Peer::new(Vice::None, Dialect::Phoenix), Cut::Whole);
    let mut engine = Engine::new(Dialect::Phoenix);
    for (clients, messages) in [(4, 10), (9, 20), (2, 5), (70, 3)] {
        let connected = engine.connect(&mut world, clients);
        assert_eq!((connected.established, connected.failed.len()), (clients, 0));
        let done = engine.phase(&mut world, 4, Stop::Requests(messages));
        let all = messages * u64::from(clients);
        assert_eq!(counts(&done), [all, all, 0, 0, 0], "{clients} clients");
        assert_eq!((done.meter.ok, done.meter.failed_sum()), (messages, 0), "{clients} clients");
        let of = done.deliveries.expect("deliveries");
        assert!(
            [of.delivery(), of.first(), of.median(), of.p95(), of.last()]
                .iter()
                .all(Option::is_some)
        );
    }
}

#[test]
fn who_was_dropped_loses_all_until_connections_are_asked_for_again() {
    let vice = Vice::DropsHalf(Way::Fin);
    let mut world = World::new(Peer::new(vice, Dialect::Json), Cut::Whole);
    let mut engine = Engine::new(Dialect::Json);
    engine.connect(&mut world, 4);
    engine.phase(&mut world, 1, Stop::Requests(4));
    let done = engine.phase(&mut world, 1, Stop::Requests(3));
    assert_eq!(counts(&done), [12, 6, 6, 0, 0]);
    assert_eq!(done.meter.failed().map(|(class, _)| class.name()).collect::<Vec<_>>(), ["lost"]);
    let connected = engine.connect(&mut world, 5);
    assert_eq!(connected.failed, []);
    let done = engine.phase(&mut world, 1, Stop::Requests(3));
    assert_eq!(counts(&done), [15, 15, 0, 0, 0]);
}

#[test]
fn clients_of_phoenix_give_a_sign_of_life_every_half_minute_and_others_none() {
    for (dialect, each) in [(Dialect::Phoenix, 2), (Dialect::Json, 0)] {
        let mut world = World::new(Peer::new(Vice::None, dialect), Cut::Whole);
        let mut engine = Engine::new(dialect);
        engine.connect(&mut world, 100);
        let until_ns = world.now_ns + 60 * NS_PER_S;
        engine.run_until(&mut world, until_ns);
        assert!(world.peer.heartbeats.abs_diff(each * 100) <= 2, "{}", world.peer.heartbeats);
        let done = engine.phase(&mut world, 4, Stop::Requests(10));
        assert_eq!(counts(&done), [1000, 1000, 0, 0, 0], "{}", dialect.name());
    }
}

#[test]
fn a_phase_by_time_sends_in_turns_until_it_is_over() {
    let mut world = World::new(Peer::new(Vice::None, Dialect::Binary), Cut::Whole);
    let mut engine = Engine::new(Dialect::Binary);
    engine.connect(&mut world, 3);
    let done = engine.phase(&mut world, 2, Stop::After(NS_PER_S / 100));
    let ok = done.meter.ok;
    assert!(ok > 100 && done.meter.failed_sum() == 0, "{ok}");
    assert_eq!(counts(&done), [3 * ok, 3 * ok, 0, 0, 0]);
    let sums = &done.meter.slots;
    assert_eq!(sums.asked, 3);
    assert!(sums.answers_max - sums.answers_min <= 1, "in turn: {sums:?}");
    assert_eq!(done.meter.permitted_ns, 2 * NS_PER_S / 100);
}

#[test]
fn what_is_open_when_the_engine_is_stopped_is_neither_delivered_nor_lost() {
    let mut world = World::new(Peer::new(Vice::Misses, Dialect::Json), Cut::Whole);
    let mut engine = Engine::new(Dialect::Json);
    engine.connect(&mut world, 4);
    let commands = engine.commands.clone();
    let load = trueload_load::Load::Turns { concurrent: 2 };
    let share = trueload_engine::generator::PhaseShare {
        load,
        stop: Stop::Requests(10),
        connections: 4,
        idle: 0,
        start_ns: world.now_ns,
    };
    commands.send(Command::Phase(share)).expect("listened to");
    let until_ns = world.now_ns + NS_PER_S / 2;
    engine.run_until(&mut world, until_ns);
    commands.send(Command::Stop).expect("listened to");
    engine.run(&mut world, |heard| !heard.done.borrow().is_empty());
    assert!(engine.generator.is_done());
    let done = engine.done.borrow_mut().pop().expect("reported");
    assert!(done.partial);
    assert_eq!((counts(&done), done.meter.ok), ([39, 39, 0, 0, 0], 10));
}
