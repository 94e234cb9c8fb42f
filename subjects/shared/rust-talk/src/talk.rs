//! The protocol between trueload and a client in Rust, and the tally of an order. This file must
//! not use an HTTP library.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::process::exit;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The first line: `concurrency` requests at once, over `pools` client objects of `pool_size`
/// connections each.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    pub url: String,
    pub concurrency: usize,
    pub pools: usize,
    pub pool_size: usize,
    pub timeout_ms: u64,
    pub pipelining: usize,
    pub keep_alive: bool,
}

/// The results of one order. Only answered requests have latencies.
#[derive(Debug, Default)]
pub struct Tally {
    pub latencies: Vec<Duration>,
    pub failed: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct Figures {
    p50: f64,
    p90: f64,
    p99: f64,
    max: f64,
}

#[derive(Serialize)]
struct Claim {
    ok: usize,
    failed: BTreeMap<&'static str, u64>,
    elapsed_s: f64,
    latency_us: Option<Figures>,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.latencies.extend(other.latencies);
        for (class, count) in other.failed {
            *self.failed.entry(class).or_default() += count;
        }
    }

    fn claim(mut self, elapsed: Duration) -> Claim {
        self.latencies.sort_unstable();
        let all = &self.latencies;
        let at = |share: f64| {
            let rank = (share * all.len() as f64).ceil() as usize;
            all[rank - 1].as_nanos() as f64 / 1e3
        };
        let latency_us = (!all.is_empty()).then(|| Figures {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: at(1.0),
        });
        Claim { ok: all.len(), failed: self.failed, elapsed_s: elapsed.as_secs_f64(), latency_us }
    }
}

pub fn die(why: &str) -> ! {
    eprintln!("{why}");
    exit(1);
}

fn say(line: &str) {
    let mut output = io::stdout().lock();
    if writeln!(output, "{line}").and_then(|()| output.flush()).is_err() {
        exit(1);
    }
}

/// Reads the setup from the first line. Ends the program if it is invalid, or asks for
/// pipelining. With `streams` the client speaks HTTP/2, and pipelining is the number of streams
/// per connection.
pub fn hear_setup(streams: bool) -> Setup {
    let mut line = String::new();
    if let Err(error) = io::stdin().lock().read_line(&mut line) {
        die(&format!("no setup: {error}"));
    }
    let setup: Setup =
        serde_json::from_str(&line).unwrap_or_else(|error| die(&format!("no setup: {error}")));
    if setup.pipelining > 1 && !streams {
        say(r#"{"unsupported": "it does not pipeline"}"#);
        exit(0);
    }
    setup
}

/// Performs each order until the end of the input.
pub fn hear_orders(mut go: impl FnMut(usize) -> (Tally, Duration)) {
    say(r#"{"ready": true}"#);
    for line in io::stdin().lock().lines() {
        let line = line.unwrap_or_else(|error| die(&format!("no order: {error}")));
        let number = line.strip_prefix("go ").and_then(|number| number.trim().parse().ok());
        let (tally, elapsed) = go(number.unwrap_or_else(|| die("no order")));
        match serde_json::to_string(&tally.claim(elapsed)) {
            Ok(line) => say(&line),
            Err(error) => die(&error.to_string()),
        }
    }
}

/// Returns the failure class of an error, according to its chain of sources.
pub fn class_of(error: &(dyn Error + 'static)) -> &'static str {
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            match io.kind() {
                io::ErrorKind::ConnectionRefused => return "connect.refused",
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => return "reset",
                io::ErrorKind::TimedOut => return "timeout.total",
                io::ErrorKind::UnexpectedEof => return "empty",
                io::ErrorKind::AddrNotAvailable => return "local.ports",
                _ => {}
            }
        }
        at = error.source();
    }
    "other"
}
