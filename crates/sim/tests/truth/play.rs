//! Plays one phase against a server whose delays are known, and gives what the generator reports and what it sent.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use trueload_wire::message::Rules;

use hdrhistogram::Histogram;
use trueload_drive::{Net as _, ThreadUse};
use trueload_engine::generator::{DoneReport, Http1, OverHttp1, Plain, Sending};
use trueload_load::{Load, Stop, refill};
use trueload_meter::EncodedTimes;
use trueload_sim::kernel::{Kernel, Setups};
use trueload_sim::laws::{self, decoded};
use trueload_sim::peers::Peers;
use trueload_sim::play::{Cast, play_as};
use trueload_sim::scenario::{BEGIN_NS, KernelPlan, PhasePlan, Scenario};

use super::model::{Model, ONE_WAY_NS, S};
use super::server::{REQUEST, Server};

/// The phase begins so long after the run: all have connected by then.
const ZERO_NS: u64 = S;

/// What is played.
#[derive(Clone, Debug)]
pub struct Play {
    pub model: Model,
    pub load: Load,
    pub stop: Stop,
    /// Over all threads.
    pub connections: u32,
    /// Connections that never send; `connections` includes them.
    pub idle: u32,
    pub depth: usize,
    pub threads: u32,
    /// The generator does not run from here to there, from the phase's start on.
    pub generator_stalls: Option<(u64, u64)>,
    pub timeout_ns: u64,
    /// The kernel works so long on each send.
    pub send_cost_ns: u64,
    /// From one end to the other.
    pub one_way_ns: u64,
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
            threads: 1,
            generator_stalls: None,
            timeout_ns: 60 * S,
            send_cost_ns: 0,
            one_way_ns: ONE_WAY_NS,
        }
    }

    fn scenario(&self) -> Scenario {
        let phase = PhasePlan {
            load: self.load.clone(),
            stop: self.stop,
            connections: self.connections,
            idle: self.idle,
            pause_ns: 0,
            not_before_ns: ZERO_NS,
        };
        Scenario {
            threads: self.threads,
            connections: self.connections,
            depth: self.depth,
            refill: refill(self.depth),
            timeout_ns: self.timeout_ns,
            connect_timeout_ns: 5 * S,
            connect_interval_ns: 10_000,
            phases: vec![phase],
            kernel: KernelPlan {
                together: self.send_cost_ns > 0,
                latency_ns: self.one_way_ns,
                batch_cost_ns: 1,
                send_cost_ns: self.send_cost_ns,
                stalls: self.generator_stalls.map(|(from, to)| (ZERO_NS + from, ZERO_NS + to)),
                ..KernelPlan::default()
            },
            peers: Vec::new(),
            ..Scenario::default()
        }
    }
}

/// A request left a generator.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// From the phase's start on.
    pub at_ns: u64,
    pub slot: u32,
}

/// What came of it.
pub struct Played {
    /// By thread.
    pub done: Vec<DoneReport>,
    /// In the order of their times.
    pub sent: Vec<Sent>,
    /// Requests that were ever in flight on one connection, at most.
    pub in_flight_most: usize,
    kernels: Vec<Kernel>,
}

impl Played {
    /// What the first thread reports.
    pub fn done(&self) -> &DoneReport {
        &self.done[0]
    }

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
        self.done().meter.times.clone().encoded()
    }

    /// From when each request was handed over to when its answer was given to the generator.
    pub fn served_ns(&self) -> Vec<u64> {
        self.kernels[0].seen.service_ns.clone()
    }

    /// Two times of each answer on a watched connection: from when the request was handed over to when the answer was
    /// there, and how long the answer waited to be read.
    pub fn watched_ns(&self) -> Vec<(u64, u64)> {
        self.kernels[0].seen.watched_ns.clone()
    }

    /// When the first thread was made prompt or no longer, from the phase's start on.
    pub fn prompt(&self) -> Vec<(i64, bool)> {
        let prompt = self.kernels[0].seen.prompt.iter();
        prompt.map(|(at_ns, prompt)| (since_zero_ns(*at_ns), *prompt)).collect()
    }

    /// From when until when it was to stay awake, likewise.
    pub fn awake(&self) -> Vec<(i64, i64)> {
        let awake = self.kernels[0].seen.awake.iter();
        awake.map(|(from_ns, to_ns)| (since_zero_ns(*from_ns), since_zero_ns(*to_ns))).collect()
    }

    /// What the first thread used in all.
    pub fn used(&self) -> ThreadUse {
        self.kernels[0].thread_use()
    }

    /// Each request is sent once.
    pub fn adds_up(&self) {
        let issued: u64 = self.done.iter().map(|done| done.meter.issued).sum();
        assert_eq!(issued, self.sent.len() as u64, "each is sent once");
        let meter = &self.done().meter;
        assert_eq!(meter.scheduled, meter.issued + meter.unsent());
    }
}

fn since_zero_ns(at_ns: u64) -> i64 {
    at_ns as i64 - (BEGIN_NS + ZERO_NS) as i64
}

/// Plays it, and checks every law of the simulation.
pub fn play(play: &Play) -> Played {
    let server = |_| Rc::new(RefCell::new(Server::new(play.model, BEGIN_NS + ZERO_NS)));
    let servers: Vec<Rc<RefCell<Server>>> = (0..play.threads).map(server).collect();
    let rules = Rules { idempotent: true, ..Rules::default() };
    let burst: Arc<[u8]> = REQUEST.repeat(play.depth).into_bytes().into();
    let cast = Cast {
        protocol: &|_| {
            let sending = Sending::http1(Arc::clone(&burst), play.depth, rules.clone());
            OverHttp1::new(Http1::default(), Plain::new(sending, None), false)
        },
        program: &|generator| generator,
        peers: &|thread| -> Box<dyn Peers> { Box::new(Rc::clone(&servers[thread as usize])) },
        tls: Setups::default(),
    };
    let mut played = play_as(&Arc::new(play.scenario()), false, &cast);
    assert_eq!(laws::check(&mut played), []);
    assert_eq!(played.front.assigned[0].share.start_ns, BEGIN_NS + ZERO_NS);
    let mut sent = Vec::new();
    for (at_ns, slot, bytes) in played.kernels.iter().flat_map(|kernel| &kernel.seen.sends) {
        let at_ns = at_ns - BEGIN_NS - ZERO_NS;
        sent.extend((0..bytes / REQUEST.len()).map(|_| Sent { at_ns, slot: *slot }));
    }
    sent.sort_by_key(|sent| sent.at_ns);
    let mut reported = played.front.done;
    reported.sort_by_key(|reported| reported.thread);
    Played {
        done: reported.into_iter().map(|reported| *reported.done).collect(),
        sent,
        in_flight_most: servers.iter().map(|it| it.borrow().in_flight_most).max().unwrap_or(0),
        kernels: played.kernels,
    }
}
