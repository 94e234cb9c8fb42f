//! A stand-in for an engine, for `bench/many_hosts.py`: it replays what a real one reported, on its
//! own clock, and sends no load. `stand_in RECORDING AHEAD_NS`, the lead of its clock.
//!
//! It is small, so that a machine can run thousands. A recording has the lines `hello`, `ready`, the
//! ticks and `phase_done`; times in them count from the start of the window.

use std::collections::VecDeque;
use std::io;
use std::{env, fs, process};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{read, write};
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde_json::Value;

/// The results of all stand-ins come within so long, as over a network; at one moment, this machine
/// would be too busy with them to answer anything.
const SPREAD_NS: i64 = 1_500_000_000;

/// A line of a phase. It is written when it is due: all at once would keep thousands of stand-ins busy
/// just when the window begins.
enum Line {
    Edge(String),
    Tick(usize),
    Done,
}

struct Recording {
    hello: String,
    ready: String,
    ticks: Vec<String>,
    done: String,
}

fn main() {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().expect("a recording");
    let ahead_ns: i64 = arguments.next().and_then(|text| text.parse().ok()).expect("a lead");
    let text = fs::read_to_string(path).expect("the recording can be read");
    let mut lines = text.lines().map(str::to_owned);
    let (hello, ready) = (lines.next().expect("hello"), lines.next().expect("ready"));
    let mut ticks: Vec<String> = lines.collect();
    let done = ticks.pop().expect("phase_done");
    play(&Recording { hello, ready, ticks, done }, ahead_ns);
}

/// The lines of a phase that began at this time, each with the time when it is due.
#[derive(Default)]
struct Due {
    start_ns: i64,
    lines: VecDeque<(i64, Line)>,
}

fn play(recording: &Recording, ahead_ns: i64) {
    let now_ns = || {
        let now = clock_gettime(ClockId::Monotonic);
        (now.tv_sec * 1_000_000_000 + now.tv_nsec) + ahead_ns
    };
    say(&recording.hello);
    let mut due = Due::default();
    let (mut received, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let left_ns = due.lines.front().map(|(at_ns, _)| (at_ns - now_ns()).max(0));
        let left =
            left_ns.map(|ns| Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 });
        let stdin = io::stdin();
        let mut wanted = [PollFd::new(&stdin, PollFlags::IN)];
        if poll(&mut wanted, left.as_ref()).expect("stdin can be awaited") > 0 {
            match read(&stdin, &mut chunk).expect("stdin can be read") {
                0 => process::exit(0),
                count => received.extend_from_slice(&chunk[..count]),
            }
        }
        while let Some(end) = received.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = received.drain(..=end).collect();
            answer(recording, ahead_ns, &line, now_ns(), &mut due);
        }
        while due.lines.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns()) {
            match due.lines.pop_front() {
                Some((_, Line::Edge(line))) => say(&line),
                Some((_, Line::Tick(nth))) => {
                    say(&moved(&recording.ticks[nth], "at_ns", due.start_ns));
                }
                _ => {
                    let done = moved(&recording.done, "started_ns", due.start_ns);
                    say(&moved(&done, "began_ns", due.start_ns));
                }
            }
        }
    }
}

fn answer(recording: &Recording, ahead_ns: i64, line: &[u8], now_ns: i64, due: &mut Due) {
    let message: Value = serde_json::from_slice(line).expect("the front speaks JSON");
    match message["type"].as_str().unwrap_or_default() {
        "clock" => say(&format!(r#"{{"type":"clock","id":{},"at_ns":{now_ns}}}"#, message["id"])),
        "generate" => say(&moved(&recording.ready, "at_ns", now_ns)),
        "phase" => {
            let start_ns = message["at_ns"].as_i64().expect("a start").max(now_ns);
            due.start_ns = start_ns;
            due.lines.extend(phase(recording, &message["id"], start_ns, ahead_ns % SPREAD_NS));
        }
        "stop" => {
            due.lines.clear();
            say(r#"{"type":"done","why":"stopped"}"#);
        }
        _ => {}
    }
}

/// The lines of a phase, in the order in which they are due.
fn phase(recording: &Recording, id: &Value, start_ns: i64, late_ns: i64) -> Vec<(i64, Line)> {
    let edge = |kind, at_ns| {
        (at_ns, Line::Edge(format!(r#"{{"type":"{kind}","id":{id},"at_ns":{at_ns}}}"#)))
    };
    let stop_ns = start_ns + number(&recording.done, "window_ns");
    let mut lines = vec![edge("phase_started", start_ns)];
    for (nth, tick) in recording.ticks.iter().enumerate() {
        lines.push((start_ns + number(tick, "at_ns"), Line::Tick(nth)));
    }
    let last_ns = lines.last().map_or(0, |(at_ns, _)| *at_ns);
    let done_ns = last_ns.max(stop_ns + number(&recording.done, "drain_ns")) + late_ns;
    lines.extend([edge("phase_stopped", stop_ns), (done_ns, Line::Done)]);
    lines.sort_by_key(|(at_ns, _)| *at_ns);
    lines
}

/// Where the value of a field begins and ends, in a line whose first field of this name it is.
fn place(line: &str, field: &str) -> (usize, usize) {
    let name = format!("\"{field}\":");
    let from = line.find(&name).expect("the field is there") + name.len();
    let length = line[from..].find([',', '}']).expect("the value ends");
    (from, from + length)
}

fn number(line: &str, field: &str) -> i64 {
    let (from, to) = place(line, field);
    line[from..to].parse().expect("a number")
}

/// A line whose time in this field counts from another time.
fn moved(line: &str, field: &str, start_ns: i64) -> String {
    let (from, to) = place(line, field);
    format!("{}{}{}", &line[..from], start_ns + number(line, field), &line[to..])
}

/// Writes a line at once, as an engine does: in two parts it would wake its reader twice.
fn say(line: &str) {
    let whole = [line, "\n"].concat();
    let mut left = whole.as_bytes();
    while !left.is_empty() {
        match write(io::stdout(), left) {
            Ok(count) => left = &left[count..],
            Err(_) => process::exit(0),
        }
    }
}
