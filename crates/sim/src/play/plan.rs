//! The plan of a scenario over HTTP, as the front would send it to the engine. The engine makes the
//! generators of it, so that nothing here names their parts.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use trueload_engine::failure::Failure;
use trueload_engine::generate::{self, Threads};
use trueload_engine::protocol::{
    AddressPlan, Blob, DataFormat, DataOrder, DataPlan, DriverPlan, ExpectPlan, FromPlan,
    GeneratePlan, MessagePlan, MessagesPlan, OriginPlan, PROTOCOL, PartPlan, RequestPlan, StepPlan,
    StreamEndPlan, StreamKindPlan, StreamPlan, TakePlan, TargetPlan, ThinkPlan, TlsPlan, TrustPlan,
    WindowsPlan,
};
use trueload_engine::role::Event;

use super::addresses;
use crate::kernel::UNIX_NS;
use crate::peer::{PATTERN, UPLOAD, host, path, path_of_step, row_text, value_name};
use crate::scenario::{
    BODY, HttpPlan, Order, PartEnd, PartKind, Place, Protocol, Scenario, Start, Step, Stream, Talk,
};

/// Has the engine make the programs of a scenario.
///
/// # Errors
/// If the engine refuses the scenario's plan.
pub(super) fn make(
    scenario: &Scenario,
    sink: &Sender<Event>,
    threads: &mut impl Threads,
) -> Result<(), Failure> {
    let mut bodies = Bodies::default();
    let plan = match scenario.protocol {
        Protocol::Chat { says, .. } => chat(scenario, says, &mut bodies),
        _ => plan(scenario, &mut bodies),
    };
    generate::make(&plan, &bodies.0, Duration::from_nanos(UNIX_NS), sink, threads)
}

/// The bodies that a plan names.
#[derive(Debug, Default)]
struct Bodies(Vec<Blob>);

impl Bodies {
    /// Adds a body; returns its name.
    fn add(&mut self, bytes: &[u8]) -> String {
        let sha256: String =
            Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        self.0.push(Blob { sha256: sha256.clone(), base64: STANDARD.encode(bytes) });
        sha256
    }
}

fn http(scenario: &Scenario) -> &HttpPlan {
    match &scenario.protocol {
        Protocol::Http(plan) => plan,
        Protocol::Http2(plan) => &plan.http,
        other => panic!("{other:?} is not HTTP"),
    }
}

fn plan(scenario: &Scenario, bodies: &mut Bodies) -> GeneratePlan {
    let Scenario { talk, connections, threads, depth, refill, close, .. } = scenario;
    let talk = talk.as_ref();
    let origins = talk.map_or(&[][..], |talk| &talk.origins);
    let tls = scenario.tls.then(|| tls(scenario, bodies));
    let expect = expect(scenario, bodies);
    let steps = talk.map_or(&[][..], |talk| &talk.steps);
    let (request, targets) = match talk {
        Some(_) if !steps.is_empty() => (None, Vec::new()),
        Some(talk) if origins.is_empty() => (Some(asked(scenario, talk, 0, bodies)), Vec::new()),
        Some(talk) => (None, targets_of_origins(scenario, talk, &expect, bodies)),
        None if http(scenario).several => (None, several(scenario, &expect, bodies)),
        None => (Some(alike(scenario, false, bodies)), Vec::new()),
    };
    let first = usize::from(!scenario.dead_address);
    let addresses_of = |origin: usize| {
        let dead = addresses()[first..1].iter();
        dead.chain([&addresses()[origin + 1]]).cloned().map(AddressPlan).collect::<Vec<_>>()
    };
    let origin = |origin| OriginPlan { addresses: addresses_of(origin), tls: tls.clone() };
    let one = origins.is_empty();
    GeneratePlan {
        protocol: PROTOCOL,
        addresses: if one { addresses_of(0) } else { Vec::new() },
        origins: (0..origins.len()).map(origin).collect(),
        local_addresses: Vec::new(),
        exchange: None,
        request,
        http2: windows(scenario),
        stream: talk.and_then(|talk| talk.stream).map(stream),
        follow: talk.and_then(|talk| talk.follow),
        targets,
        environment: BTreeMap::new(),
        data: talk.and_then(|talk| data(talk, bodies)),
        scenario: talk.map_or(Vec::new(), |talk| {
            let step = |(index, step)| self::step(talk, index, step, &expect, bodies);
            steps.iter().enumerate().map(step).collect()
        }),
        expect,
        replay: None,
        ignore_unexpected: false,
        replies: Vec::new(),
        deflate: false,
        seed: scenario.seed,
        connections: *connections,
        pipeline: *depth as u32,
        close: *close,
        connect_open: talk.is_some_and(|talk| talk.connect_open),
        threads: *threads,
        cpus: Vec::new(),
        timeout_ns: scenario.timeout_ns,
        // The stage has the interval of the scenario, and its patience while it connects.
        connect_rate_per_s: 1_000_000_000,
        driver: DriverPlan::default(),
        read_rate_per_s: None,
        write_rate_per_s: None,
        spin_ns: 0,
        coalesce_ns: if scenario.kernel.coalesces { 100_000 } else { 0 },
        refill: Some(*refill as u32),
        tls: tls.filter(|_| one).map(Box::new),
        part: PartPlan::default(),
    }
}

/// Conversations: the upgrade, then so many messages, each of which is to come back.
fn chat(scenario: &Scenario, says: u32, bodies: &mut Bodies) -> GeneratePlan {
    let Scenario { protocol: asked, .. } = Scenario::default();
    let plan = plan(&Scenario { protocol: asked, talk: None, ..scenario.clone() }, bodies);
    let text = "{counter}: {repeat}";
    let step = |name: &str, body_sha256, messages, repeat| StepPlan {
        name: name.to_owned(),
        upgrade: Option::is_none(&messages),
        request: RequestPlan {
            method: "GET".to_owned(),
            path: "/chat".to_owned(),
            headers: vec![("Host".to_owned(), "a".to_owned())],
            body_sha256,
            template: true,
        },
        messages,
        expect: ExpectPlan { statuses: None, body_sha256: None },
        take: Vec::new(),
        think: ThinkPlan::default(),
        repeat,
        users: None,
    };
    let expected = MessagePlan::Text { text: text.to_owned() };
    let messages =
        MessagesPlan { text: true, expected: Some(expected), within_ns: None, endless: false };
    let sent = bodies.add(text.as_bytes());
    GeneratePlan {
        request: None,
        targets: Vec::new(),
        scenario: vec![
            step("connect", None, None, 1),
            step("say", Some(sent), Some(messages), says),
        ],
        connect_open: scenario.connect_open(),
        ..plan
    }
}

fn windows(scenario: &Scenario) -> Option<WindowsPlan> {
    let Protocol::Http2(plan) = &scenario.protocol else { return None };
    let http1_pipeline = match plan.start {
        // The depth of the scenario is the most over either version.
        Start::Negotiated(depth) => Some(depth.min(scenario.depth) as u32),
        Start::Direct => None,
    };
    Some(WindowsPlan {
        stream_window: plan.window,
        connection_window: plan.connection_window,
        header_table_bytes: 4096,
        http1_pipeline,
    })
}

/// The stage has the setup itself: the certificate and the clock are those of the simulation.
fn tls(scenario: &Scenario, bodies: &mut Bodies) -> TlsPlan {
    let either = windows(scenario).is_some_and(|plan| plan.http1_pipeline.is_some());
    let alpn = if either { &["h2", "http/1.1"][..] } else { &[] };
    TlsPlan {
        server_name: "localhost".to_owned(),
        alpn: alpn.iter().map(|name| (*name).to_owned()).collect(),
        alpn_required: false,
        trust: TrustPlan::Anybody,
        certificate_sha256: None,
        key_sha256: None,
        resumption: true,
        tunnel_sha256: scenario.tunnel().map(|request| bodies.add(request)),
    }
}

fn expect(scenario: &Scenario, bodies: &mut Bodies) -> ExpectPlan {
    let plan = http(scenario);
    let compared = plan.expect_body && plan.method != "HEAD";
    let body_sha256 = compared.then(|| bodies.add(BODY.as_bytes()));
    ExpectPlan { statuses: None, body_sha256 }
}

/// A request with these headers besides Host and Connection.
fn request(
    scenario: &Scenario,
    (method, path, host): (&str, String, String),
    headers: &[(&str, String)],
    body: Option<&[u8]>,
    bodies: &mut Bodies,
) -> RequestPlan {
    let close = scenario.close.then(|| ("Connection", "close".to_owned()));
    let all = [("Host", host)].into_iter().chain(headers.iter().cloned()).chain(close);
    let headers = all.map(|(name, value)| (name.to_owned(), value)).collect();
    let body_sha256 = body.map(|body| bodies.add(body));
    RequestPlan { method: method.to_owned(), path, headers, body_sha256, template: false }
}

/// The body of a request by itself.
fn body(scenario: &Scenario) -> Option<Vec<u8>> {
    let posts = http(scenario).method == "POST";
    posts.then(|| match &scenario.protocol {
        Protocol::Http2(plan) => vec![b'z'; plan.body_bytes],
        _ => UPLOAD.as_bytes().to_vec(),
    })
}

/// A request outside of a conversation. Those with places differ.
fn alike(scenario: &Scenario, places: bool, bodies: &mut Bodies) -> RequestPlan {
    let several = http(scenario).several;
    let body = body(scenario);
    let mut headers = Vec::new();
    if places {
        headers.push(("X-Number", "{counter} {random}".to_owned()));
    }
    // Templates that are filled state the length themselves.
    if let Some(body) = body.as_ref().filter(|_| !several) {
        headers.push(("Content-Length", body.len().to_string()));
    }
    let at = (http(scenario).method, "/".to_owned(), "a".to_owned());
    let request = request(scenario, at, &headers, body.as_deref(), bodies);
    RequestPlan { template: several, ..request }
}

/// Three targets of the same request, taken in turn by weight. Over HTTP/1.1 only the second has
/// places.
fn several(scenario: &Scenario, expect: &ExpectPlan, bodies: &mut Bodies) -> Vec<TargetPlan> {
    let http2 = matches!(scenario.protocol, Protocol::Http2(_));
    let target = |(index, weight)| {
        let request = alike(scenario, http2 || index == 1, bodies);
        TargetPlan { name: None, weight, origin: 0, request, expect: expect.clone() }
    };
    [2, 1, 1].into_iter().enumerate().map(target).collect()
}

/// A request by itself of a conversation with an origin.
fn asked(scenario: &Scenario, talk: &Talk, origin: u32, bodies: &mut Bodies) -> RequestPlan {
    let (body, template) = (body(scenario), talk.is_numbered());
    let length = body.as_ref().filter(|_| !template).map(|body| body.len().to_string());
    let headers: Vec<_> = length.map(|length| ("Content-Length", length)).into_iter().collect();
    let at = (http(scenario).method, path(talk), host(talk, origin));
    let request = request(scenario, at, &headers, body.as_deref(), bodies);
    RequestPlan { template, ..request }
}

fn targets_of_origins(
    scenario: &Scenario,
    talk: &Talk,
    expect: &ExpectPlan,
    bodies: &mut Bodies,
) -> Vec<TargetPlan> {
    let target = |(origin, weight): (u32, &u32)| {
        let request = asked(scenario, talk, origin, bodies);
        TargetPlan { name: None, weight: *weight, origin, request, expect: expect.clone() }
    };
    (0..).zip(&talk.origins).map(target).collect()
}

fn step(
    talk: &Talk,
    index: usize,
    step: &Step,
    expect: &ExpectPlan,
    bodies: &mut Bodies,
) -> StepPlan {
    let from = step.takes.map(|place| match place {
        Place::Json => FromPlan::Json { pointer: "/t".to_owned() },
        Place::Header => FromPlan::Header { name: "X-Value".to_owned() },
        Place::Cookie => FromPlan::Cookie { name: "t".to_owned() },
        Place::Body => FromPlan::Regex { pattern: PATTERN.to_owned() },
    });
    let (least_ns, most_ns) = step.think_ns;
    StepPlan {
        name: format!("step {index}"),
        upgrade: false,
        messages: None,
        users: None,
        request: RequestPlan {
            method: step.method.to_owned(),
            path: path_of_step(talk, index),
            headers: vec![("Host".to_owned(), host(talk, 0))],
            body_sha256: (step.method == "POST").then(|| bodies.add(UPLOAD.as_bytes())),
            template: true,
        },
        expect: expect.clone(),
        take: from.map(|from| TakePlan { value: value_name(index), from }).into_iter().collect(),
        think: ThinkPlan { least_ns, most_ns },
        repeat: step.repeat,
    }
}

fn stream(stream: Stream) -> StreamPlan {
    StreamPlan {
        kind: match stream.kind {
            PartKind::Event => StreamKindPlan::Sse,
            PartKind::Chunk => StreamKindPlan::Chunks,
            PartKind::Line => StreamKindPlan::Jsonl,
        },
        end: match stream.end {
            PartEnd::Body => None,
            PartEnd::Content => Some(StreamEndPlan::Content { text: "[DONE]".to_owned() }),
            PartEnd::Event => Some(StreamEndPlan::Event { name: "end".to_owned() }),
        },
        stall_ns: stream.stall_ns,
    }
}

fn data(talk: &Talk, bodies: &mut Bodies) -> Option<DataPlan> {
    let rows = talk.rows?;
    let text: String = (0..rows.count).map(|row| format!("{}\n", row_text(row))).collect();
    Some(DataPlan {
        path: None,
        blobs: vec![bodies.add(format!("row\n{text}").as_bytes())],
        format: DataFormat::Csv,
        columns: vec!["row".to_owned()],
        order: match rows.order {
            Order::Sequential => DataOrder::Sequential,
            Order::Shuffled => DataOrder::Shuffled,
            Order::Unique => DataOrder::Unique,
        },
    })
}
