//! Plays a scenario: runs the generators, each on its own kernel, and the front, in order of time.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use trueload_wire::message::{Rules, Texts};

use trueload_drive::{Address, Program};
use trueload_engine::generator::{
    Alike, Broadcast, Broadcasting, Config, Generator, Http, Http1, Http2, OverEither, OverHttp1,
    OverHttp2, Plain, Protocol as Spoken, Report, Requests, Sending, Target, TcpEcho, Text,
    UdpEcho, Versions, WsEcho,
};
use trueload_engine::outlet::Outlet;
use trueload_load::{Load, Mix, Stop};
use trueload_wire::echo::Messages;
use trueload_wire::http1::template::Template;
use trueload_wire::http2::client::Windows;
use trueload_wire::http2::request::Template as Http2Template;
use trueload_wire::tls::client;
use trueload_wire::websocket::Kind;
use trueload_wire::websocket::client::Opening;
use trueload_wire::websocket::echo::Outgoing;

use crate::chance::Chance;
use crate::front::Front;
use crate::kernel::{Kernel, Setups};
use crate::peer::{Drawn, DrawnHttp2, Listeners, Numbers};
use crate::peers::Peers;
use crate::scenario::{BODY, Http2Plan, HttpPlan, Protocol, S, Scenario, Start};

/// The time at which every run begins.
pub const BEGIN_NS: u64 = S;
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
}

/// Plays a scenario to its end. With `trace` the lines of the history are kept.
#[must_use]
pub fn play(scenario: &Arc<Scenario>, trace: bool) -> Played {
    match &scenario.protocol {
        Protocol::Http(plan) => play_in(scenario, trace, http(scenario, plan)),
        Protocol::Http2(plan) => play_http2(scenario, trace, plan),
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

fn play_http2(scenario: &Arc<Scenario>, trace: bool, plan: &Http2Plan) -> Played {
    let Start::Negotiated(in_flight) = plan.start else {
        return play_over_http2(scenario, trace, plan, http2(scenario, plan));
    };
    let (sending, windows) = (over_both(scenario, plan), windows(plan));
    play_over_http2(scenario, trace, plan, |_| -> OverEither<Plain> {
        let versions = Versions::either(Http2::new(windows), in_flight, scenario.depth);
        Http::new(versions, Plain::new(sending.clone(), None), false)
    })
}

fn play_over_http2<P: Spoken>(
    scenario: &Arc<Scenario>,
    trace: bool,
    plan: &Http2Plan,
    protocol: impl Fn(u32) -> P,
) -> Played {
    let numbers = Numbers::default();
    let peers =
        |thread| -> Box<dyn Peers> { Box::new(DrawnHttp2::new(scenario, plan, thread, &numbers)) };
    let program = |generator| generator;
    let tls = tls_of(scenario);
    play_as(scenario, trace, &Cast { protocol: &protocol, program: &program, peers: &peers, tls })
}

/// The parts of the requests of a plan that HTTP/2 may carry.
struct Parts {
    method: &'static str,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Parts {
    fn of(scenario: &Scenario, plan: &Http2Plan) -> Self {
        let HttpPlan { method, several, .. } = plan.http;
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut headers = vec![header("Host", "a")];
        if several {
            headers.push(header("X-Number", "{counter} {random}"));
        }
        if scenario.close {
            // HTTP/2 leaves it out.
            headers.push(header("Connection", "close"));
        }
        let body = (method == "POST").then(|| vec![b'z'; plan.body_bytes]);
        // Templates that are filled state the length themselves.
        if !several && let Some(body) = &body {
            headers.push(header("Content-Length", &body.len().to_string()));
        }
        Parts { method, headers, body }
    }

    fn texts(&self) -> Texts<'_> {
        let Parts { method, headers, body } = self;
        Texts { method, path: "/", headers, body: body.as_deref() }
    }
}

fn scheme(scenario: &Scenario) -> &'static str {
    if scenario.tls { "https" } else { "http" }
}

fn http2(scenario: &Scenario, plan: &Http2Plan) -> impl Fn(u32) -> OverHttp2<Plain> + use<> {
    let parts = Parts::of(scenario, plan);
    let (scheme, texts, rules) = (scheme(scenario), parts.texts(), rules(&plan.http));
    let sending = if plan.http.several {
        let text = Text::Http2(Http2Template::filled(scheme, &texts));
        let target = Target { text, whole: None, rules };
        Sending::Several(requests(scenario, vec![target; 3]))
    } else {
        Sending::http2(Http2Template::plain(scheme, &texts), rules)
    };
    let windows = windows(plan);
    move |_| Http::new(Http2::new(windows), Plain::new(sending.clone(), None), false)
}

fn windows(plan: &Http2Plan) -> Windows {
    Windows { stream: plan.window, connection: plan.connection_window }
}

/// The same requests over HTTP/1.1 and over HTTP/2.
fn over_both(scenario: &Scenario, plan: &Http2Plan) -> Sending {
    let parts = Parts::of(scenario, plan);
    let (scheme, texts, rules) = (scheme(scenario), parts.texts(), rules(&plan.http));
    if plan.http.several {
        let (http1, http2) = (Template::filled(&texts), Http2Template::filled(scheme, &texts));
        let target = Target { text: Text::Both(http1, http2), whole: None, rules };
        return Sending::Several(requests(scenario, vec![target; 3]));
    }
    let mut request = Vec::new();
    Template::plain(&texts).write(&(), &mut |part| request.extend_from_slice(part.bytes()));
    let (len, burst) = (request.len(), request.repeat(scenario.depth).into());
    let http2 = Some(Http2Template::plain(scheme, &texts));
    Sending::Alike(Alike { burst, len, http2, whole: None, rules })
}

/// Requests that take turns by weight.
fn requests(scenario: &Scenario, targets: Vec<Target>) -> Arc<Requests> {
    let order = Mix::new(&[2, 1, 1]).expect("weights");
    Arc::new(Requests::new(targets, order, scenario.seed, true, (0, 1)))
}

/// The rules that decide whether an answer is good.
fn rules(plan: &HttpPlan) -> Rules {
    Rules {
        body: plan.expect_body.then(|| BODY.into()).filter(|_| plan.method != "HEAD"),
        head_request: plan.method == "HEAD",
        idempotent: plan.method != "POST",
        ..Rules::default()
    }
}

fn http(scenario: &Scenario, plan: &HttpPlan) -> impl Fn(u32) -> OverHttp1<Plain> + use<> {
    let body = if plan.method == "POST" { "name=value" } else { "" };
    let fields = match plan.method {
        "POST" => format!("Content-Length: {}\r\n", body.len()),
        _ => String::new(),
    };
    let close = if scenario.close { "Connection: close\r\n" } else { "" };
    let request = format!("{} / HTTP/1.1\r\nHost: a\r\n{fields}{close}\r\n{body}", plan.method);
    let rules = rules(plan);
    let sending = if plan.several {
        Sending::Several(several(scenario, plan, &rules))
    } else {
        Sending::http1(request.repeat(scenario.depth).into_bytes().into(), scenario.depth, rules)
    };
    move |_| Http::new(Http1::default(), Plain::new(sending.clone(), None), false)
}

/// Builds three targets of the same request, taken in turn by weight. The second has placeholders
/// to fill in.
fn several(scenario: &Scenario, plan: &HttpPlan, rules: &Rules) -> Arc<Requests> {
    let target = |places: bool| {
        let mut headers = vec![("Host".to_owned(), "a".to_owned())];
        if places {
            headers.push(("X-Number".to_owned(), "{counter} {random}".to_owned()));
        }
        if scenario.close {
            headers.push(("Connection".to_owned(), "close".to_owned()));
        }
        let body = (plan.method == "POST").then_some(&b"name=value"[..]);
        let texts = Texts { method: plan.method, path: "/", headers: &headers, body };
        Target { text: Text::Http1(Template::filled(&texts)), whole: None, rules: rules.clone() }
    };
    requests(scenario, vec![target(false), target(true), target(false)])
}

fn addresses() -> &'static [Address; 2] {
    static ADDRESSES: OnceLock<[Address; 2]> = OnceLock::new();
    ADDRESSES.get_or_init(|| {
        ["127.0.0.1:81", "127.0.0.1:80"].map(|text| text.parse().expect("an address"))
    })
}

fn config(scenario: &Scenario, thread: u32, tls: Option<client::Setup>) -> Config {
    let first = usize::from(!scenario.dead_address);
    Config {
        addresses: addresses()[first..].to_vec(),
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
        threads: scenario.threads,
        places: None,
        turns: None,
    }
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

/// A generator, its kernel, and the channel of its reports.
struct Thread<G> {
    generator: G,
    kernel: Kernel,
    reports: Receiver<Report>,
}

fn play_in<P: Spoken>(
    scenario: &Arc<Scenario>,
    trace: bool,
    protocol: impl Fn(u32) -> P,
) -> Played {
    play_drawn(scenario, trace, protocol, |generator| generator)
}

/// Plays a scenario like [`play_in`], with `program` wrapped around each generator.
fn play_drawn<P: Spoken, G: Program>(
    scenario: &Arc<Scenario>,
    trace: bool,
    protocol: impl Fn(u32) -> P,
    program: impl Fn(Generator<P>) -> G,
) -> Played {
    let listeners = Listeners::default();
    let peers = |thread| -> Box<dyn Peers> { Box::new(Drawn::new(scenario, thread, &listeners)) };
    let tls = tls_of(scenario);
    let cast = Cast { protocol: &protocol, program: &program, peers: &peers, tls };
    play_as(scenario, trace, &cast)
}

fn tls_of(scenario: &Scenario) -> Setups {
    let alpn: &[&str] = match &scenario.protocol {
        Protocol::Http2(Http2Plan { start: Start::Negotiated(_), .. }) => &["h2", "http/1.1"],
        _ => &[],
    };
    if scenario.tls { Setups::both(alpn) } else { Setups::default() }
}

/// Plays a scenario with the protocol and peers of `cast` instead of the scenario's own.
#[must_use]
pub fn play_as<P: Spoken, G: Program>(
    scenario: &Arc<Scenario>,
    trace: bool,
    cast: &Cast<'_, P, G>,
) -> Played {
    let served = Arc::default();
    let (mut threads, mut inboxes) = (Vec::new(), Vec::new());
    for thread in 0..scenario.threads {
        let (to_generator, inbox) = channel();
        let (sender, reports) = channel();
        let config = Arc::new(config(scenario, thread, cast.tls.client.clone()));
        let outlet = Outlet::to(sender, |it| it);
        let (protocol, served) = ((cast.protocol)(thread), Arc::clone(&served));
        let generator = Generator::new(config, protocol, served, inbox, outlet);
        let generator = (cast.program)(generator);
        let (peers, server) = ((cast.peers)(thread), cast.tls.server.clone());
        let dead = addresses()[0].clone();
        let kernel = Kernel::new(scenario, thread, peers, dead, server, trace);
        threads.push(Thread { generator, kernel, reports });
        inboxes.push(to_generator);
    }
    let mut front = Front::new(scenario, inboxes, trace);
    front.begin(BEGIN_NS);
    let steps = run(scenario, &mut threads, &mut front);
    let mut kernels: Vec<Kernel> = threads.into_iter().map(|thread| thread.kernel).collect();
    kernels.iter_mut().for_each(Kernel::settle);
    let end_ns = kernels.iter().map(Kernel::clock_ns).max().unwrap_or(0);
    Played { scenario: Arc::clone(scenario), front, kernels, end_ns, steps }
}

/// Runs until all threads have ended, nothing more can happen, or the promised end has passed.
/// Returns the number of steps.
fn run<G: Program>(scenario: &Scenario, threads: &mut [Thread<G>], front: &mut Front) -> u64 {
    let mut chance = Chance::part(scenario.seed, 99);
    let end_ns = BEGIN_NS + promised_ns(scenario);
    let mut now_ns = BEGIN_NS;
    for step in 0..STEPS_MOST {
        if front.is_over() {
            front.stop(now_ns);
        }
        if front.take_rings() {
            for thread in threads.iter_mut() {
                thread.kernel.ring(now_ns + chance.below(20_000));
            }
        }
        let running = (0..threads.len()).filter(|index| !threads[*index].generator.is_done());
        let next = running.filter_map(|index| {
            let Thread { generator, kernel, .. } = &threads[index];
            Some((kernel.next_ns(generator)?.max(kernel.clock_ns()), index))
        });
        let next = next.min();
        if let Some(front_ns) = front.next_ns()
            && next.is_none_or(|(at_ns, _)| front_ns <= at_ns)
        {
            now_ns = front_ns.max(now_ns);
            front.time(now_ns);
            continue;
        }
        let Some((at_ns, index)) = next.filter(|(at_ns, _)| *at_ns <= end_ns) else { return step };
        let Thread { generator, kernel, reports } = &mut threads[index];
        kernel.step(generator);
        if kernel.seen.stuck.is_some() {
            return step;
        }
        now_ns = now_ns.max(at_ns);
        let reported_ns = kernel.clock_ns();
        reports
            .try_iter()
            .for_each(|report| front.handle_report(index as u32, reported_ns, report));
        for (to, act) in threads[index].kernel.mail() {
            threads[to as usize].kernel.deliver_mail(act);
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
                (count + 4) * (scenario.timeout_ns + 1_100_000_000)
                    + 2 * S
                    + scheduled_ns(&phase.load)
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

/// The duration of an open loop's schedule, in ns; 0 for other loads.
fn scheduled_ns(load: &Load) -> u64 {
    match load {
        Load::Open { stages, .. } => stages.iter().map(|stage| stage.ns).sum(),
        Load::Recorded { recording, from_ns } => recording.last_ns().saturating_sub(*from_ns),
        _ => 0,
    }
}
