//! Peers that end every connection are measured, but not stormed: in virtual time it shows how often they are called.

use std::sync::Arc;
use std::sync::mpsc::channel;

use trueload_engine::generator::{Command, Generator, PhaseShare};
use trueload_engine::outlet::Outlet;
use trueload_load::{Arrivals, Load, Stage, Stop};

use crate::table::{self, Case};
use crate::world::World;
use crate::{NS_PER_MS, NS_PER_S, WHOLE, config_of, http_of, play, world_now};

/// So many fruitless connections of a slot are made without a pause, and one each 10 ms behind them.
const AT_ONCE: u64 = 100;
const PAUSE_NS: u64 = 10 * NS_PER_MS;

fn row(name: &str) -> Case {
    let found = table::load().into_iter().find(|case| case.name == name);
    found.expect("a row of the table")
}

#[test]
fn a_peer_that_answered_once_and_then_closes_every_connection_is_not_stormed() {
    let row = row("answered once, and then every connection closed: each request but one is empty");
    let case = Case { connections: 1, requests: 301, ..row };
    let seen = play(&case, WHOLE).expect("an end");
    assert_eq!((seen.ok, seen.failed["empty"]), (1, 300), "{seen:?}");
    assert!(seen.took_ns >= (299 - AT_ONCE) * PAUSE_NS, "{seen:?}");
}

#[test]
fn a_peer_that_closes_connections_on_which_nothing_was_asked_is_not_stormed() {
    let case = Case {
        connections: 4,
        ..row("accepted, then closed before any byte: each request is empty")
    };
    let (to_generator, inbox) = channel();
    let (reports, _from_generator) = channel();
    let outlet = Outlet::to(reports, |report| report);
    let (config, http) = (Arc::new(config_of(&case)), http_of(&case, false));
    let mut generator = Generator::new(config, http, Arc::default(), inbox, outlet);
    let mut world = World::new(WHOLE, case.protocol, case.scripts.clone(), None);
    let began_ns = world_now(&world);
    let stage = Stage { ns: NS_PER_S, from: 2.0, to: 2.0 };
    let (stages, arrivals) = (Arc::from([stage]), Arrivals::Constant);
    to_generator.send(Command::Connections(case.connections)).unwrap();
    to_generator
        .send(Command::Phase(PhaseShare {
            load: Load::Open { stages, arrivals },
            stop: Stop::After(NS_PER_S),
            connections: case.connections,
            idle: 0,
            start_ns: began_ns,
        }))
        .unwrap();
    world.run(&mut generator, began_ns + 2 * NS_PER_S);
    let each = 2 + AT_ONCE + NS_PER_S / PAUSE_NS;
    let most = u64::from(case.connections) * each;
    assert!(world.attempts() as u64 <= most, "{} attempts, {most} at most", world.attempts());
}
