//! Some hundred seeds, and the scenarios that found something, played against every law.

use trueload_sim::scenario::{Protocol, Scenario, Start, Style, Version};
use trueload_sim::{check, draw, run, run_twice};

#[test]
fn every_law_holds_for_the_first_seeds() {
    for seed in 0..300 {
        let outcome = run(seed);
        assert_eq!(outcome.broken, [], "seed {seed}");
        assert_ne!(outcome.hash, 0, "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 0..40 {
        let once = run(seed);
        let again = std::thread::spawn(move || run(seed)).join().unwrap();
        assert_eq!(once, again, "seed {seed}");
        assert_eq!(run_twice(seed), once, "seed {seed}");
    }
}

#[test]
fn a_history_that_is_read_is_the_same_history() {
    for seed in 0..5 {
        let traced = check(draw::scenario(seed), true);
        assert_eq!(traced.hash, run(seed).hash, "seed {seed}");
        assert_eq!(traced.lines.len() as u64, traced.events, "seed {seed}");
    }
}

#[test]
fn different_seeds_give_different_histories() {
    let mut hashes: Vec<u64> = (0..100).map(|seed| run(seed).hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 100);
}

#[test]
fn the_seeds_draw_every_kind_of_run() {
    let scenarios: Vec<_> = (0..300).map(draw::scenario).collect();
    let some = |what: &str, count: usize| {
        assert!((15..300).contains(&count), "{what}: {count} of 300");
    };
    let count = |holds: &dyn Fn(&trueload_sim::scenario::Scenario) -> bool| {
        scenarios.iter().filter(|scenario| holds(scenario)).count()
    };
    some("HTTP/2", count(&|scenario| matches!(scenario.protocol, Protocol::Http2(_))));
    some("right peers", count(&|scenario| scenario.is_fair()));
    some("threads", count(&|scenario| scenario.threads > 1));
    some("pipelining", count(&|scenario| scenario.depth > 1));
    some("a connection per request", count(&|scenario| scenario.close));
    some("sends together", count(&|scenario| scenario.kernel.together));
    some("small buffers", count(&|scenario| scenario.kernel.room < 1000));
    some("phases", count(&|scenario| scenario.phases.len() > 1));
    some("TLS", count(&|scenario| scenario.tls));
    some("an early end", count(&|scenario| scenario.stop_ns.is_some()));
    some("unreadable waits", count(&|scenario| scenario.kernel.hides_waits));
}

#[test]
fn some_seeds_negotiate_the_version_of_connections() {
    let scenarios: Vec<_> = (0..2000).map(draw::scenario).collect();
    let count = |what: &str, holds: &dyn Fn(&Scenario, Start) -> bool| {
        let found = scenarios.iter().filter(|scenario| match &scenario.protocol {
            Protocol::Http2(plan) => holds(scenario, plan.start),
            _ => false,
        });
        let count = found.count();
        assert!(count >= 10, "{what}: {count} of 2000");
    };
    let negotiated = |start| matches!(start, Start::Negotiated(_));
    let chooses = |scenario: &Scenario, version| {
        scenario.peers.iter().any(|manner| manner.http2.choice.version() == version)
    };
    count("right choices", &|scenario, start| negotiated(start) && scenario.is_fair());
    count("both versions", &|scenario, start| {
        let both = [Version::Http1, Version::Http2];
        negotiated(start) && both.iter().all(|version| chooses(scenario, *version))
    });
}

#[test]
fn some_seeds_draw_servers_that_forget_connections_and_others_that_answer_with_a_status() {
    let scenarios: Vec<_> = (0..3000).map(draw::scenario).collect();
    let forgets = |scenario: &&Scenario| scenario.peers[0].forgets_ns.is_some();
    let refuses = |scenario: &&Scenario| matches!(scenario.peers[0].style, Style::Status(_));
    assert!(scenarios.iter().filter(forgets).count() >= 5);
    assert!(scenarios.iter().filter(refuses).count() >= 5);
    assert!(scenarios.iter().filter(refuses).all(|scenario| !scenario.is_fair()));
}
