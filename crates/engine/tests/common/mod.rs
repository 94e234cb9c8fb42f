//! What the tests that play a generator or a server by hand share.

mod wire;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use trueload_drive::{Conn, Program, Token};
use trueload_engine::generator::{Command, Config, DoneReport, Generator, Protocol, Report};
use trueload_engine::outlet::Outlet;

pub use wire::{Sent, Wire};

/// The settings of a generator that has one thread, and one request on each connection.
pub fn config(timeout_ns: u64) -> Config {
    Config {
        addresses: vec!["127.0.0.1:80".parse().expect("an address")],
        local_addresses: Vec::new(),
        depth: 1,
        refill: 1,
        close: false,
        connect_open: false,
        timeout_ns,
        connect_timeout_ns: timeout_ns,
        connect_interval_ns: 10_000,
        tls: None,
        send_quantum_ns: 0,
        coalesce_ns: 0,
        seed: 0,
        thread: 0,
        threads: 1,
        origin: 0,
        origins: 1,
        places: None,
        turns: None,
    }
}

/// The connection with this index.
pub fn token(index: u32) -> Token {
    Token { index, generation: 0 }
}

/// The slot `key`'s connection with this index.
pub fn conn(key: u32, index: u32) -> Conn {
    Conn { key, token: token(index) }
}

/// A generator with the commands that it takes and the reports that it gives.
pub fn generator<P: Protocol>(
    config: Config,
    protocol: P,
) -> (Generator<P>, Sender<Command>, Receiver<Report>) {
    let (commands, inbox) = channel();
    let (to, reports) = channel();
    let outlet = Outlet::to(to, |report| report);
    let generator = Generator::new(Arc::new(config), protocol, Arc::default(), inbox, outlet);
    (generator, commands, reports)
}

/// Lets the clock go on to a moment, by way of all that is due before.
pub fn run_to(program: &mut impl Program, wire: &mut Wire, now_ns: u64) {
    while let Some(due_ns) = program.wake_at_ns().filter(|due_ns| *due_ns <= now_ns) {
        wire.now_ns = due_ns.max(wire.now_ns);
        program.handle_time(wire);
        program.handle_batch_end(wire);
    }
    wire.now_ns = now_ns;
}

/// The report of a phase that is over.
pub fn done(reports: &Receiver<Report>) -> DoneReport {
    let done = reports.try_iter().find_map(|report| match report {
        Report::Done(done) => Some(*done),
        _ => None,
    });
    done.expect("the phase is done")
}
