//! Plays seeds and reports which of them break a law. It can also replay one seed so that people
//! can read what happened.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use trueload_sim::{Outcome, check, draw, keep_panics_quiet, run, run_twice};

/// One in this many seeds is played twice, to check that it gives the same history.
const TWICE_ONE_IN: u64 = 64;

const USAGE: &str = "\
Play the load generator against a simulated kernel, network and peers.

Usage: trueload-sim --seeds N [--from S] [--threads T] [--all]
       trueload-sim --seed N [--trace]

  --seeds N    Play N seeds and print the first that breaks a law.
  --from S     First seed [default: 0].
  --threads T  Threads to play on [default: 2].
  --all        Play on behind the first, and print the first seed for each law that is broken.
  --seed N     Play one seed and print its scenario.
  --trace      Print every event of it, in order.

Exit codes: 0 every law holds, 1 a law is broken, 2 the command is wrong.
Example: trueload-sim --seed 42 --trace";

#[derive(Clone, Debug, Default)]
struct Options {
    seeds: Option<u64>,
    from: u64,
    threads: u64,
    seed: Option<u64>,
    trace: bool,
    all: bool,
}

fn options() -> Result<Options, String> {
    let mut options = Options { threads: 2, ..Options::default() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let text = words.next().ok_or(format!("{word} needs a number"))?;
            text.replace('_', "")
                .parse()
                .map_err(|_| format!("{word} takes a number, not '{text}'"))
        };
        match word.as_str() {
            "--seeds" => options.seeds = Some(number()?),
            "--from" => options.from = number()?,
            "--threads" => options.threads = number()?,
            "--seed" => options.seed = Some(number()?),
            "--trace" => options.trace = true,
            "--all" => options.all = true,
            _ => return Err(format!("unknown option '{word}'")),
        }
    }
    if options.seed.is_none() == options.seeds.is_none() {
        return Err("give either --seeds or --seed".to_owned());
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(why) => {
            eprintln!("error: {why}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    keep_panics_quiet();
    let holds = match options.seed {
        Some(seed) => replay(seed, options.trace),
        None => play_all(&options),
    };
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn replay(seed: u64, trace: bool) -> bool {
    let scenario = draw::scenario(seed);
    println!("{scenario:#?}");
    let outcome = check(scenario, trace);
    outcome.lines.iter().for_each(|line| println!("{line}"));
    let (ok, failed) = outcome.requests;
    println!("hash {:016x}, {} events, {ok} ok, {failed} failed", outcome.hash, outcome.events);
    print_broken(seed, &outcome);
    outcome.broken.is_empty()
}

fn print_broken(seed: u64, outcome: &Outcome) {
    for (law, how) in &outcome.broken {
        println!("seed {seed} breaks a law: {law}: {how}");
    }
}

fn play_one(seed: u64) -> Outcome {
    if seed.is_multiple_of(TWICE_ONE_IN) { run_twice(seed) } else { run(seed) }
}

/// Plays all seeds until one breaks a law, or all of them with `--all`. Each thread takes the next
/// unplayed seed. Returns whether every law held.
fn play_all(options: &Options) -> bool {
    let count = options.seeds.unwrap_or(0);
    let (next, first_broken) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let by_law: Mutex<BTreeMap<&str, (u64, u64)>> = Mutex::default();
    let (played, events, requests) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    // All seeds before the first broken one are played, so that it really is the
                    // first.
                    let first = first_broken.load(Ordering::Relaxed);
                    if number >= if options.all { count } else { count.min(first) } {
                        return;
                    }
                    let outcome = play_one(options.from + number);
                    played.fetch_add(1, Ordering::Relaxed);
                    events.fetch_add(outcome.events, Ordering::Relaxed);
                    requests.fetch_add(outcome.requests.0 + outcome.requests.1, Ordering::Relaxed);
                    if !outcome.broken.is_empty() {
                        first_broken.fetch_min(number, Ordering::Relaxed);
                    }
                    for (law, _) in &outcome.broken {
                        let mut by_law = by_law.lock().expect("no thread panics");
                        let (first, times) = by_law.entry(law).or_insert((number, 0));
                        (*first, *times) = (number.min(*first), *times + 1);
                    }
                }
            });
        }
    });
    let (played, seconds) = (played.into_inner(), began.elapsed().as_secs_f64());
    println!(
        "{played} seeds in {seconds:.1} s: {:.0} runs/s, {:.1} million events, {:.1} million requests",
        played as f64 / seconds,
        events.into_inner() as f64 / 1e6,
        requests.into_inner() as f64 / 1e6,
    );
    let first_broken = first_broken.into_inner();
    if first_broken == u64::MAX {
        println!("every law holds");
        return true;
    }
    for (law, (first, times)) in by_law.into_inner().expect("no thread panics") {
        println!("{law}: broken by {times} seeds, first by {}", options.from + first);
    }
    let seed = options.from + first_broken;
    print_broken(seed, &play_one(seed));
    println!("replay it with: trueload-sim --seed {seed} --trace");
    false
}
