//! An aggregator as a process, with real engines below it.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

const ENGINE: &str = env!("CARGO_BIN_EXE_trueload-engine");

struct Aggregator {
    process: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Aggregator {
    fn start() -> Self {
        let mut process = Command::new(ENGINE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the engine starts");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let mut found = Aggregator { process, input, output };
        found.send(&json!({"type": "aggregate", "protocol": 1, "lease_ns": 10_000_000_000u64}));
        found
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().expect("it is open"), "{message}").expect("it reads");
    }

    /// The next line that is of this type, for this engine.
    fn next(&mut self, kind: &str, child: u64) -> Value {
        for line in self.output.by_ref() {
            let said: Value = serde_json::from_str(&line.expect("text")).expect("JSON");
            if said["type"] == kind && said["child"] == child {
                return said;
            }
            // It has a lease, as every engine.
            writeln!(self.input.as_mut().expect("it is open"), r#"{{"type":"lease"}}"#).ok();
        }
        panic!("it ended without '{kind}' of {child}");
    }

    /// Starts an engine below it, and returns its process id.
    fn open(&mut self, child: u64) -> u64 {
        self.send(&json!({"type": "open", "child": child, "argv": [ENGINE]}));
        let said = self.next("relayed", child);
        let hello: Value =
            serde_json::from_str(said["line"].as_str().expect("a line")).expect("JSON");
        hello["pid"].as_u64().expect("a process id")
    }
}

fn runs(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    !state.is_empty() && !state.starts_with('Z')
}

#[test]
fn the_end_of_its_input_ends_all_engines_below_it_before_itself() {
    let mut aggregator = Aggregator::start();
    let pids: Vec<u64> = (0..5).map(|child| aggregator.open(child)).collect();
    assert!(pids.iter().all(|pid| runs(*pid)));
    drop(aggregator.input.take());
    let status = aggregator.process.wait().expect("it ends");
    assert!(status.success());
    assert!(!pids.iter().any(|pid| runs(*pid)), "none is left");
}

#[test]
fn an_engine_that_does_not_end_is_killed_with_what_it_has_started() {
    let mut aggregator = Aggregator::start();
    let script = "trap '' TERM; sleep 1000 & echo $!; exec sleep 1000";
    aggregator.send(&json!({"type": "open", "child": 1, "argv": ["sh", "-c", script]}));
    let said = aggregator.next("relayed", 1);
    let pid = said["line"].as_str().and_then(|line| line.parse().ok()).expect("a process id");
    assert!(runs(pid));
    drop(aggregator.input.take());
    aggregator.process.wait().expect("it ends");
    assert!(!runs(pid), "what it had started is gone, too");
}

#[test]
fn an_engine_that_dies_is_told_with_its_code_and_its_last_words() {
    let mut aggregator = Aggregator::start();
    let pid = aggregator.open(1);
    aggregator.open(2);
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill runs");
    assert!(killed.success());
    assert_eq!(aggregator.next("ended", 1)["code"], -9);
    for (child, argv, code, log) in [
        (3, json!(["sh", "-c", "echo out of luck >&2; exit 7"]), json!(7), "out of luck"),
        (4, json!(["/no/such/program"]), json!(null), "/no/such/program cannot be started"),
    ] {
        aggregator.send(&json!({"type": "open", "child": child, "argv": argv}));
        let ended = aggregator.next("ended", child);
        assert_eq!(ended["code"], code);
        assert!(ended["log"].as_str().expect("text").contains(log), "{ended}");
    }
    aggregator
        .send(&json!({"type": "relay", "children": [1, 2, 9], "line": r#"{"type":"lease"}"#}));
    aggregator.send(&json!({"type": "close", "child": 2, "kill": false}));
    assert_eq!(aggregator.next("ended", 2)["code"], 0, "the other one takes part as before");
}

/// A process that reads nothing, one that floods its stderr, and one that ends a line late.
#[test]
fn an_engine_that_is_slow_or_floods_holds_up_no_other() {
    let mut aggregator = Aggregator::start();
    for (child, script) in [
        (1, "sleep 0.2; while read line; do echo ${#line}; done"),
        (2, "yes >&2"),
        (3, "printf be; sleep 0.2; printf 'gun\\nand no end'; sleep 1000"),
        (4, "cat"),
    ] {
        aggregator.send(&json!({"type": "open", "child": child, "argv": ["sh", "-c", script]}));
    }
    // More than a pipe takes, to one that reads slowly.
    let long = "x".repeat(60_000);
    for _ in 0..20 {
        aggregator.send(&json!({"type": "relay", "children": [1], "line": long}));
        aggregator.send(&json!({"type": "relay", "children": [4], "line": "at once"}));
    }
    for (child, kill) in [(1, false), (4, false), (2, true)] {
        aggregator.send(&json!({"type": "close", "child": child, "kill": kill}));
    }
    let mut said = Vec::new();
    while said.iter().filter(|each: &&Value| each["type"] == "ended").count() < 3
        || !said.iter().any(|each| each["child"] == 3)
    {
        let line = aggregator.output.next().expect("it goes on").expect("text");
        said.push(serde_json::from_str(&line).expect("JSON"));
    }
    let lines_of = |child: u64| -> Vec<&str> {
        let relayed = said.iter().filter(|each| each["type"] == "relayed");
        relayed
            .filter(|each| each["child"] == child)
            .filter_map(|each| each["line"].as_str())
            .collect()
    };
    assert_eq!(lines_of(1), ["60000"; 20], "its input ends behind what it was sent");
    assert_eq!(lines_of(4), ["at once"; 20]);
    assert_eq!(lines_of(3), ["begun"]);
    let end = |child: u64| {
        said.iter().find(|each| each["type"] == "ended" && each["child"] == child).expect("ended")
    };
    assert_eq!((&end(1)["code"], &end(2)["code"]), (&json!(0), &json!(-9)));
    assert!(end(2)["log"].as_str().expect("text").ends_with("y\n"), "the last part is kept");
}

#[test]
fn what_an_aggregator_cannot_do_is_refused() {
    for (message, why) in [
        (json!({"type": "open", "child": 1, "argv": []}), "argv: empty"),
        (json!({"type": "mark", "id": "a"}), "an aggregator takes open, relay and close"),
    ] {
        let mut aggregator = Aggregator::start();
        aggregator.send(&message);
        let said: Vec<String> = aggregator.output.by_ref().map_while(Result::ok).collect();
        assert!(said.iter().any(|line| line.contains(why)), "{said:?}");
        assert_eq!(aggregator.process.wait().expect("it ends").code(), Some(2));
    }
}
