//! Plays one plain load in virtual time, to count what a request costs: `instructions LOAD REQUESTS`.
//! Prints the number of good answers. `bench/instructions.py` runs it under callgrind.

use std::sync::Arc;

use trueload_load::{Arrivals, Load, Stage, Stop};
use trueload_sim::play::play;
use trueload_sim::scenario::{
    Http2Plan, HttpPlan, PhasePlan, Protocol, S, Scenario, Start, Step, Talk,
};

const CONNECTIONS: u32 = 64;

/// Changes a scenario to this load. The default is a closed loop of GET over HTTP/1.1.
fn ask(name: &str, http: HttpPlan, scenario: &mut Scenario) -> Option<Load> {
    let (window, connection_window) = (1 << 20, 1 << 30);
    let http2 = Http2Plan { http, body_bytes: 0, window, connection_window, start: Start::Direct };
    match name {
        "depth-1" => {}
        "depth-16" => scenario.depth = 16,
        "http2-1" => scenario.protocol = Protocol::Http2(http2),
        "http2-10" => (scenario.protocol, scenario.depth) = (Protocol::Http2(http2), 10),
        "close" => scenario.close = true,
        "open" => {
            let stages = [Stage { ns: u64::MAX / 4, from: 30_000.0, to: 30_000.0 }].into();
            return Some(Load::Open { stages, arrivals: Arrivals::Constant });
        }
        "sessions" => {
            let step = Step { method: "GET", repeat: 1, think_ns: (0, 0), takes: None };
            scenario.talk = Some(Talk { steps: vec![step; 3], ..Talk::default() });
        }
        _ => return None,
    }
    Some(Load::Closed { active: Arc::default() })
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, requests] = &words[..] else { panic!("name a load and a number of requests") };
    let http = HttpPlan { method: "GET", several: false, expect_body: false };
    let mut scenario = Scenario {
        protocol: Protocol::Http(http.clone()),
        connections: CONNECTIONS,
        timeout_ns: 5 * S,
        connect_timeout_ns: 5 * S,
        ..Scenario::default()
    };
    scenario.kernel.together = true;
    let load = ask(name, http, &mut scenario).expect("a known load");
    let stop = Stop::Requests(requests.parse().expect("a number of requests"));
    let (connections, idle, pause_ns, not_before_ns) = (CONNECTIONS, 0, 0, 0);
    scenario.phases = vec![PhasePlan { load, stop, connections, idle, pause_ns, not_before_ns }];
    let played = play(&Arc::new(scenario), false);
    println!("{}", played.front.done.iter().map(|reported| reported.done.meter.ok).sum::<u64>());
}
