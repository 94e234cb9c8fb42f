//! Plays a scenario: runs the generators, each on its own kernel, and the front, in order of time.

mod plan;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

use trueload_drive::{Address, Program};
use trueload_engine::failure::Failure;
use trueload_engine::generate::Threads;
use trueload_engine::generator::{
    Broadcast, Broadcasting, Command, Config, Footprint, Generator, Measured, Protocol as Spoken,
    TcpEcho, UdpEcho, WsEcho,
};
use trueload_engine::outlet::Outlet;
use trueload_engine::role::Event;
use trueload_load::{Load, Stop};
use trueload_wire::echo::Messages;
use trueload_wire::tls::client;
use trueload_wire::websocket::Kind;
use trueload_wire::websocket::client::Opening;
use trueload_wire::websocket::echo::Outgoing;

use crate::chance::Chance;
use crate::front::Front;
use crate::kernel::{Kernel, Setups};
use crate::peer::{Book, Drawn, DrawnHttp2, Listeners, Numbers, Shared};
use crate::peers::Peers;
use crate::scenario::{BEGIN_NS, Http2Plan, Protocol, S, Scenario, Start};

/// Maximum number of steps of a run, far more than any needs: 90 uploads of 38 KB through a socket
/// with room for two bytes take over 3 million.
pub const STEPS_MOST: u64 = 30_000_000;
/// Number of messages of an echo before the first is used again.
const MESSAGES: usize = 7;

/// The result of a run.
#[derive(Debug)]
pub struct Played {
    /// The scenario that was played.
    pub scenario: Arc<Scenario>,
    /// The front, with all commands to the generators and all their reports.
    pub front: Front,
    /// The kernels, with what they observed.
    pub kernels: Vec<Kernel>,
    /// The time at which the run ended.
    pub end_ns: u64,
    /// Number of steps that it took.
    pub steps: u64,
    /// What the site of a conversation knows about it.
    pub book: Book,
    /// The most that conversations kept for a slot, or a thread.
    pub footprint: Footprint,
}

/// Plays a scenario to its end. With `trace` the lines of the history are kept.
#[must_use]
pub fn play(scenario: &Arc<Scenario>, trace: bool) -> Played {
    match &scenario.protocol {
        Protocol::Http(_) | Protocol::Http2(_) | Protocol::Chat { .. } => {
            play_plan(scenario, trace)
        }
        Protocol::Tcp { size, half_close } => {
            let protocol = TcpEcho::new(messages(*size), *half_close);
            play_in(scenario, trace, |_| protocol.clone())
        }
        Protocol::Udp { size } => play_in(scenario, trace, |thread| {
            let seed = Chance::part(scenario.seed, 100 + u64::from(thread)).draw();
            UdpEcho::new(messages(*size), seed)
        }),
        Protocol::Ws { size } => {
            let opening = Opening::new("/echo", &[("Host".to_owned(), "a".to_owned())]);
            let opening = opening.expect("the header is not one of the handshake's own");
            let words = Outgoing::Plain(messages(*size), Kind::Text);
            play_in(scenario, trace, |thread| {
                let seed = Chance::part(scenario.seed, 100 + u64::from(thread)).draw();
                WsEcho::new(opening.clone(), words.clone(), seed)
            })
        }
        Protocol::Broadcast { dialect, padding } => {
            let mut headers = vec![("Host".to_owned(), "a".to_owned())];
            if let Some(name) = dialect.subprotocol() {
                headers.push(("Sec-WebSocket-Protocol".to_owned(), name.to_owned()));
            }
            let opening = Opening::new("/ws", &headers).expect("no header of the handshake's own");
            let (dialect, padding, timeout_ns) = (*dialect, *padding, scenario.timeout_ns);
            let protocol = |thread| {
                let (opening, seed) = (opening.clone(), scenario.seed);
                Broadcast::new(opening, dialect, padding, timeout_ns, seed).of_part(
                    thread,
                    scenario.threads,
                    scenario.seed,
                )
            };
            play_drawn(scenario, trace, protocol, Broadcasting::new)
        }
    }
}

fn messages(size: usize) -> Messages {
    let text = (0..MESSAGES * size).map(|at| b'a' + (at % 23) as u8);
    Messages::new(text.collect(), size).expect("the payload is whole messages")
}

/// The dead address, and that of each origin.
fn addresses() -> &'static [Address; 4] {
    static ADDRESSES: OnceLock<[Address; 4]> = OnceLock::new();
    ADDRESSES.get_or_init(|| {
        let texts = ["127.0.0.1:81", "127.0.0.1:80", "127.0.0.2:80", "127.0.0.3:80"];
        texts.map(|text| text.parse().expect("an address"))
    })
}

fn config(scenario: &Scenario, thread: u32, tls: Option<client::Setup>) -> Config {
    let first = usize::from(!scenario.dead_address);
    Config {
        addresses: addresses()[first..2].to_vec(),
        local_addresses: Vec::new(),
        depth: scenario.depth,
        refill: scenario.refill,
        close: scenario.close,
        connect_open: false,
        tls,
        timeout_ns: scenario.timeout_ns,
        connect_timeout_ns: scenario.connect_timeout_ns,
        connect_interval_ns: scenario.connect_interval_ns,
        send_quantum_ns: scenario.send_quantum_ns,
        coalesce_ns: if scenario.kernel.coalesces { 100_000 } else { 0 },
        seed: scenario.seed,
        thread,
        threads: threads_of(scenario, thread),
        origin: 0,
        origins: 1,
        places: None,
        turns: None,
    }
}

/// The number of threads over which the load is divided at first, as this thread knows it.
fn threads_of(scenario: &Scenario, thread: u32) -> u32 {
    let joins = scenario.joins_ns.is_some() && thread + 1 < scenario.threads;
    scenario.threads - u32::from(joins)
}

/// The parts of a run that a test may replace. Each function takes a thread's number and returns
/// the part for that thread.
pub struct Cast<'a, P: Spoken, G> {
    /// The protocol.
    pub protocol: &'a dyn Fn(u32) -> P,
    /// The program that runs: the generator, or a wrapper around it.
    pub program: &'a dyn Fn(Generator<P>) -> G,
    /// The peers of the thread's connections.
    pub peers: &'a dyn Fn(u32) -> Box<dyn Peers>,
    /// The TLS setups of both ends.
    pub tls: Setups,
}

/// A program and its kernel.
struct Thread<G> {
    program: G,
    kernel: Kernel,
    /// Tells how much the program keeps, and the most that it has kept.
    measure: fn(&G) -> Footprint,
    footprint: Footprint,
}

/// A thread, whatever its program is.
trait Playing {
    /// The time of its next step; none if there is none.
    fn next_ns(&self) -> Option<u64>;

    /// Does the next step.
    fn step(&mut self);

    fn kernel(&mut self) -> &mut Kernel;

    /// The most that the program has kept.
    fn footprint(&self) -> Footprint;

    fn into_kernel(self: Box<Self>) -> Kernel;
}

impl<G: Program> Playing for Thread<G> {
    fn next_ns(&self) -> Option<u64> {
        let Thread { program, kernel, .. } = self;
        let next_ns = kernel.next_ns(program).filter(|_| !program.is_done());
        next_ns.map(|at_ns| at_ns.max(kernel.clock_ns()))
    }

    fn step(&mut self) {
        self.kernel.step(&mut self.program);
        self.footprint = self.footprint.max((self.measure)(&self.program));
    }

    fn kernel(&mut self) -> &mut Kernel {
        &mut self.kernel
    }

    fn footprint(&self) -> Footprint {
        self.footprint
    }

    fn into_kernel(self: Box<Self>) -> Kernel {
        self.kernel
    }
}

/// The threads of a run, as they are made.
struct Stage<'a> {
    scenario: &'a Arc<Scenario>,
    trace: bool,
    tls: Setups,
    peers: &'a dyn Fn(u32) -> Box<dyn Peers>,
    threads: Vec<Box<dyn Playing>>,
    inboxes: Vec<Sender<Command>>,
}

impl<'a> Stage<'a> {
    fn new(
        scenario: &'a Arc<Scenario>,
        trace: bool,
        tls: Setups,
        peers: &'a dyn Fn(u32) -> Box<dyn Peers>,
    ) -> Self {
        Stage { scenario, trace, tls, peers, threads: Vec::new(), inboxes: Vec::new() }
    }

    /// Adds a thread. `measure` tells how much its program keeps.
    fn add<G: Program + 'static>(
        &mut self,
        thread: u32,
        inbox: Sender<Command>,
        program: G,
        measure: fn(&G) -> Footprint,
    ) {
        let (peers, server) = ((self.peers)(thread), self.tls.server.clone());
        let kernel = Kernel::new(self.scenario, thread, peers, addresses(), server, self.trace);
        let footprint = Footprint::default();
        self.threads.push(Box::new(Thread { program, kernel, measure, footprint }));
        self.inboxes.push(inbox);
    }

    /// Plays to the end.
    fn play(mut self, reports: &Receiver<Event>) -> Played {
        let mut front = Front::new(self.scenario, self.inboxes, self.trace);
        front.begin(BEGIN_NS);
        let steps = run(self.scenario, &mut self.threads, reports, &mut front);
        let footprints = self.threads.iter().map(|thread| thread.footprint());
        let footprint = footprints.fold(Footprint::default(), Footprint::max);
        let mut kernels: Vec<_> = self.threads.into_iter().map(Playing::into_kernel).collect();
        kernels.iter_mut().for_each(Kernel::settle);
        let end_ns = kernels.iter().map(Kernel::clock_ns).max().unwrap_or(0);
        let (scenario, book) = (Arc::clone(self.scenario), Book::default());
        Played { scenario, front, kernels, end_ns, steps, book, footprint }
    }
}

impl Threads for Stage<'_> {
    /// Keeps what the scenario says, where a plan is coarser or says nothing. TLS has the certificate
    /// and the clock of the run.
    fn config(&self, config: Config) -> Config {
        let Scenario { connect_timeout_ns, connect_interval_ns, send_quantum_ns, .. } =
            **self.scenario;
        let (tls, threads) = (self.tls.client.clone(), threads_of(self.scenario, config.thread));
        let times = Config { connect_timeout_ns, connect_interval_ns, send_quantum_ns, ..config };
        Config { tls, threads, ..times }
    }

    fn take<P: Program + Measured + Send + 'static>(
        &mut self,
        thread: u32,
        inbox: Sender<Command>,
        program: P,
    ) -> Result<(), Failure> {
        self.add(thread, inbox, program, P::footprint);
        Ok(())
    }
}

/// Plays a scenario over HTTP, with the programs that the engine makes of its plan.
fn play_plan(scenario: &Arc<Scenario>, trace: bool) -> Played {
    let (listeners, numbers) = (Listeners::default(), Numbers::default());
    let site = Shared::of(scenario);
    let peers = |thread| -> Box<dyn Peers> {
        match &scenario.protocol {
            Protocol::Http2(plan) => {
                Box::new(DrawnHttp2::new(scenario, plan, thread, &numbers, site.as_ref()))
            }
            _ => Box::new(Drawn::new(scenario, thread, &listeners, site.as_ref())),
        }
    };
    let (sink, reports) = channel();
    let mut stage = Stage::new(scenario, trace, tls_of(scenario), &peers);
    plan::make(scenario, &sink, &mut stage).expect("the engine takes what is drawn");
    let played = stage.play(&reports);
    Played { book: site.map_or_else(Book::default, |site| site.book()), ..played }
}

fn play_in<P: Spoken + 'static>(
    scenario: &Arc<Scenario>,
    trace: bool,
    protocol: impl Fn(u32) -> P,
) -> Played {
    play_drawn(scenario, trace, protocol, |generator| generator)
}

/// Plays a scenario like [`play_in`], with `program` wrapped around each generator.
fn play_drawn<P: Spoken, G: Program + 'static>(
    scenario: &Arc<Scenario>,
    trace: bool,
    protocol: impl Fn(u32) -> P,
    program: impl Fn(Generator<P>) -> G,
) -> Played {
    let listeners = Listeners::default();
    let peers =
        |thread| -> Box<dyn Peers> { Box::new(Drawn::new(scenario, thread, &listeners, None)) };
    let tls = tls_of(scenario);
    let cast = Cast { protocol: &protocol, program: &program, peers: &peers, tls };
    play_as(scenario, trace, &cast)
}

fn tls_of(scenario: &Scenario) -> Setups {
    let alpn: &[&str] = match &scenario.protocol {
        Protocol::Http2(Http2Plan { start: Start::Negotiated(_), .. }) => &["h2", "http/1.1"],
        _ => &[],
    };
    if scenario.tls { Setups::both(alpn, scenario.tunnel()) } else { Setups::default() }
}

/// Plays a scenario with the protocol and peers of `cast` instead of the scenario's own.
#[must_use]
pub fn play_as<P: Spoken, G: Program + 'static>(
    scenario: &Arc<Scenario>,
    trace: bool,
    cast: &Cast<'_, P, G>,
) -> Played {
    let served = Arc::default();
    let (sink, reports) = channel();
    let mut stage = Stage::new(scenario, trace, cast.tls.clone(), cast.peers);
    for thread in 0..scenario.threads {
        let (inbox, commands) = channel();
        let config = Arc::new(config(scenario, thread, cast.tls.client.clone()));
        let outlet = Outlet::to(sink.clone(), move |report| Event::Generator(thread, report));
        let (protocol, served) = ((cast.protocol)(thread), Arc::clone(&served));
        let generator = Generator::new(config, protocol, served, commands, outlet);
        stage.add(thread, inbox, (cast.program)(generator), |_| Footprint::default());
    }
    stage.play(&reports)
}

/// Runs until all threads have ended, nothing more can happen, or the promised end has passed.
/// Returns the number of steps.
fn run(
    scenario: &Scenario,
    threads: &mut [Box<dyn Playing>],
    reports: &Receiver<Event>,
    front: &mut Front,
) -> u64 {
    let mut chance = Chance::part(scenario.seed, 99);
    let end_ns = BEGIN_NS + promised_ns(scenario);
    let mut now_ns = BEGIN_NS;
    for step in 0..STEPS_MOST {
        if front.is_over() {
            front.stop(now_ns);
        }
        if front.take_rings() {
            for thread in threads.iter_mut() {
                thread.kernel().ring(now_ns + chance.below(20_000));
            }
        }
        let all = threads.iter().enumerate();
        let next = all.filter_map(|(index, thread)| Some((thread.next_ns()?, index))).min();
        if let Some(front_ns) = front.next_ns()
            && next.is_none_or(|(at_ns, _)| front_ns <= at_ns)
        {
            now_ns = front_ns.max(now_ns);
            front.time(now_ns);
            continue;
        }
        let Some((at_ns, index)) = next.filter(|(at_ns, _)| *at_ns <= end_ns) else { return step };
        threads[index].step();
        let kernel = threads[index].kernel();
        if kernel.seen.stuck.is_some() {
            return step;
        }
        now_ns = now_ns.max(at_ns);
        let (reported_ns, mail) = (kernel.clock_ns(), kernel.mail());
        for event in reports.try_iter() {
            if let Event::Generator(reporter, report) = event {
                front.handle_report(reporter, reported_ns, report);
            }
        }
        for (to, act) in mail {
            threads[to as usize].kernel().deliver_mail(act);
        }
    }
    STEPS_MOST
}

/// The time after which a run is over, whatever the peers do. It allows for connecting, and for
/// each phase what law 3 permits.
#[must_use]
pub fn promised_ns(scenario: &Scenario) -> u64 {
    let connecting_ns = 3 * scenario.connect_timeout_ns + 2 * S;
    let phases = scenario.phases.iter().map(|phase| {
        let sending_ns = match phase.stop {
            Stop::After(ns) => ns,
            // Each request may be the last one before all patience ends (three timeouts and 2 s
            // since the last success).
            Stop::Requests(count) => {
                (count + 4) * session_ns(scenario) + 2 * S + scheduled_ns(&phase.load)
            }
        };
        phase.pause_ns.max(phase.not_before_ns)
            + sending_ns
            + scenario.timeout_ns
            + 2 * S
            + connecting_ns
    });
    connecting_ns + phases.sum::<u64>()
}

/// The longest time that a session takes, or a request without sessions, if all of its requests
/// run into the timeout and their connections have to be opened again.
fn session_ns(scenario: &Scenario) -> u64 {
    let request_ns = scenario.timeout_ns + 1_100_000_000;
    if let Protocol::Chat { says, .. } = scenario.protocol {
        return (1 + u64::from(says)) * request_ns;
    }
    let steps = scenario.talk.iter().flat_map(|talk| &talk.steps);
    let steps_ns = steps.map(|step| u64::from(step.repeat) * (request_ns + step.think_ns.1));
    steps_ns.sum::<u64>().max(request_ns)
}

/// The duration of an open loop's schedule, in ns; 0 for other loads.
fn scheduled_ns(load: &Load) -> u64 {
    match load {
        Load::Open { stages, .. } => stages.iter().map(|stage| stage.ns).sum(),
        Load::Recorded { recording, from_ns } => recording.last_ns().saturating_sub(*from_ns),
        _ => 0,
    }
}
