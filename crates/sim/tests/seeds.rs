//! Some hundred seeds, and the scenarios that found something, played against every law.

use trueload_load::Stop;
use trueload_sim::scenario::{
    Manner, Order, Pace, Protocol, Scenario, Start, Style, Talk, Trick, Version, permitted,
};
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

#[test]
fn the_seeds_draw_every_part_of_conversations_over_each_version() {
    let scenarios: Vec<_> = (0..6000).map(draw::scenario).collect();
    let talks =
        || scenarios.iter().filter_map(|scenario| Some((scenario, scenario.talk.as_ref()?)));
    let some = |what: &str, holds: &dyn Fn(&Scenario, &Talk) -> bool| {
        let count = talks().filter(|(scenario, talk)| holds(scenario, talk)).count();
        assert!(count >= 10, "{what}: {count} of 6000");
    };
    let http2 = |scenario: &Scenario| matches!(scenario.protocol, Protocol::Http2(_));
    let either = |scenario: &Scenario| match &scenario.protocol {
        Protocol::Http2(plan) => matches!(plan.start, Start::Negotiated(_)),
        _ => false,
    };
    for over_http2 in [false, true] {
        some("sessions", &|it, talk| http2(it) == over_http2 && !talk.steps.is_empty());
        some("redirects", &|it, talk| http2(it) == over_http2 && talk.follow.is_some());
        some("streams", &|it, talk| http2(it) == over_http2 && talk.stream.is_some());
        some("origins", &|it, talk| http2(it) == over_http2 && !talk.origins.is_empty());
        some("connect-open", &|it, talk| http2(it) == over_http2 && talk.connect_open);
        some("closing hops", &|it, talk| {
            http2(it) == over_http2 && talk.follow.is_some() && it.close
        });
    }
    some("streams over either", &|it, talk| either(it) && talk.stream.is_some());
    some("proxies", &|_, talk| talk.tunnel);
    some("streams that stall", &|_, talk| !talk.flows());
    some("streams that lack their last part", &|_, talk| talk.cuts());
    some("rows", &|_, talk| talk.rows.is_some_and(|rows| rows.order == Order::Unique));
    some("failures", &|it, talk| it.is_well_formed() && talk.site.fails_one_in > 0);
    some("redirects that end badly", &|_, talk| talk.site.leads.is_some());
    some("right conversations", &|it, _| it.is_fair());
    assert!(talks().all(|(it, talk)| permitted(talk, &it.protocol, (it.depth, it.close, it.tls))));
}

#[test]
fn the_seeds_draw_what_any_protocol_may_have() {
    let scenarios: Vec<_> = (0..6000).map(draw::scenario).collect();
    let least = |least: usize, what: &str, holds: &dyn Fn(&Scenario) -> bool| {
        let count = scenarios.iter().filter(|scenario| holds(scenario)).count();
        assert!(count >= least, "{what}: {count} of 6000");
    };
    let http2 = |scenario: &Scenario| matches!(scenario.protocol, Protocol::Http2(_));
    for over_http2 in [false, true] {
        least(10, "joins", &|it| http2(it) == over_http2 && it.joins_ns.is_some());
    }
    least(100, "slow peers", &|it| it.peers.iter().any(|manner| manner.pace != Pace::default()));
    let endless = |manner: &Manner| manner.tricks.iter().any(|(_, it)| *it == Trick::Endless);
    least(10, "answers without end", &|it| it.peers.iter().any(endless));
    let long = |it: &Scenario| it.phases.iter().any(|phase| phase.stop == Stop::Requests(3_000));
    least(20, "requests that are held back", &|it| long(it) && it.talk.is_none());
    least(1, "some over either version", &|it| long(it) && http2(it));
    least(1, "some in conversations", &|it| long(it) && it.talk.is_some());
}
