//! Runs a generator over one phase in a [`World`], and gives what it reports and what it sent.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use trueload_engine::generator::{
    Command, Config, DoneReport, Generator, Http, PhaseShare, Report,
};
use trueload_engine::outlet::Outlet;
use trueload_load::{Load, Stop, refill};
use trueload_meter::EncodedTimes;
use trueload_wire::http1::client::Rules;

use crate::model::{Model, S};
use crate::world::{Sent, World};

/// The phase begins so long after the engine was told of it.
const START_IN_NS: u64 = 20_000_000;
const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// What is played.
#[derive(Clone, Debug)]
pub struct Play {
    pub model: Model,
    pub load: Load,
    pub stop: Stop,
    /// Over all threads.
    pub connections: u32,
    /// Of them.
    pub idle: u32,
    pub depth: usize,
    pub thread: u32,
    pub threads: u32,
    pub generator_stalls: Option<(u64, u64)>,
    /// The kernel works so long on each send.
    pub send_cost_ns: u64,
}

impl Play {
    pub fn new(model: Model, load: Load, window_ns: u64, connections: u32) -> Self {
        Play {
            model,
            load,
            stop: Stop::After(window_ns),
            connections,
            idle: 0,
            depth: 1,
            thread: 0,
            threads: 1,
            generator_stalls: None,
            send_cost_ns: 0,
        }
    }
}

/// What came of it.
pub struct Played {
    pub done: DoneReport,
    pub sent: Vec<Sent>,
    /// From when each request left to when its answer was given to the generator.
    pub served_ns: Vec<u64>,
    /// Two times of each answer on a watched connection: from when the request left to when the answer arrived, and how
    /// long the answer waited to be read.
    pub watched_ns: Vec<(u64, u64)>,
    /// When the thread was made prompt or no longer, from the phase's start on, in ns.
    pub prompt: Vec<(i64, bool)>,
    /// From when until when it was to stay awake, likewise.
    pub awake: Vec<(i64, i64)>,
}

impl Played {
    pub fn latency(&self) -> Histogram<u64> {
        decoded(&self.times().latency.expect("answers"))
    }

    pub fn service(&self) -> Histogram<u64> {
        decoded(&self.times().service.expect("answers"))
    }

    pub fn send_lag(&self) -> Histogram<u64> {
        decoded(&self.times().send_lag.expect("sends"))
    }

    pub fn receive_lag(&self) -> Histogram<u64> {
        decoded(&self.times().receive_lag.expect("answers of watched connections"))
    }

    pub fn round_trip(&self) -> Histogram<u64> {
        decoded(&self.times().round_trip.expect("answers of watched connections"))
    }

    fn times(&self) -> EncodedTimes {
        self.done.meter.times.clone().encoded()
    }

    /// The law of every load: what was asked for was sent or is unsent, what was sent has ended.
    pub fn adds_up(&self) {
        let meter = &self.done.meter;
        assert_eq!(meter.scheduled, meter.issued + meter.unsent());
        assert_eq!(meter.issued, meter.ok + meter.failed_sum() + meter.cancelled);
        assert_eq!(meter.issued, self.sent.len() as u64, "each is sent once");
        assert_eq!(self.latency().len(), meter.ok);
    }
}

fn decoded(encoded: &str) -> Histogram<u64> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).expect("base64");
    Deserializer::new().deserialize(&mut bytes.as_slice()).expect("an HdrHistogram")
}

pub fn play(play: &Play) -> Played {
    let (to_generator, inbox) = channel();
    let (reports, heard) = channel();
    let mut generator = Generator::new(
        Arc::new(config(play)),
        http(play),
        Arc::default(),
        inbox,
        Outlet::to(reports, |report| report),
    );
    let mut world = World::new(play.model, REQUEST.len());
    to_generator.send(Command::Connections(play.connections)).expect("it listens");
    let connected_ns = now_ns(&world) + S;
    world.run(&mut generator, connected_ns, || false);
    assert!(matches!(heard.try_recv(), Ok(Report::Connected(_))));

    world.zero_ns = now_ns(&world) + START_IN_NS;
    world.generator_stalls = play.generator_stalls;
    world.send_cost_ns = play.send_cost_ns;
    let phase = PhaseShare {
        load: play.load.clone(),
        stop: play.stop,
        connections: play.connections,
        idle: play.idle,
        start_ns: world.zero_ns,
    };
    to_generator.send(Command::Phase(phase)).expect("it listens");
    let done = until_done(&mut world, &mut generator, &heard);
    let World { sent, served_ns, watched_ns, prompt, awake, .. } = world;
    Played { done, sent, served_ns, watched_ns, prompt, awake }
}

fn until_done(
    world: &mut World,
    generator: &mut Generator<Http>,
    heard: &Receiver<Report>,
) -> DoneReport {
    let found = std::cell::RefCell::new(None);
    let over = || {
        let done = heard.try_iter().find_map(|report| match report {
            Report::Done(done) => Some(*done),
            _ => None,
        });
        if done.is_some() {
            *found.borrow_mut() = done;
        }
        found.borrow().is_some()
    };
    world.run(generator, u64::MAX - 1, over);
    found.into_inner().expect("the phase ends")
}

fn now_ns(world: &World) -> u64 {
    trueload_drive::Net::now_ns(world)
}

fn http(play: &Play) -> Http {
    let rules = Rules { idempotent: true, ..Rules::default() };
    Http::plain(REQUEST.repeat(play.depth).into_bytes().into(), play.depth, rules)
}

fn config(play: &Play) -> Config {
    Config {
        addresses: vec!["127.0.0.1:80".parse().expect("an address")],
        local_addresses: Vec::new(),
        depth: play.depth,
        refill: refill(play.depth),
        close: false,
        timeout_ns: 60 * S,
        connect_timeout_ns: 5 * S,
        connect_interval_ns: 10_000,
        tls: None,
        send_quantum_ns: 0,
        coalesce_ns: 0,
        seed: 0,
        thread: play.thread,
        threads: play.threads,
        places: None,
    }
}
