//! What the simulation has found, each as a scenario of its own: what a seed means changes with the drawing, these do not.

use std::sync::Arc;

use trueload_load::{Arrivals, Load, Stage, Stop};
use trueload_sim::check;
use trueload_sim::scenario::{
    Accept, Bytes, Choice, Delay, End, Http2Manner, Http2Plan, Http2Trick, HttpPlan, KernelPlan,
    MS, Manner, PhasePlan, Protocol, Proxy, S, Scenario, Site, Start, Step, Talk, Trick,
};
use trueload_wire::shootout::Dialect;

fn closed(stop: Stop) -> PhasePlan {
    let load = Load::Closed { active: Arc::default() };
    PhasePlan { load, stop, connections: 2, idle: 0, pause_ns: 0, not_before_ns: 0 }
}

/// Plays a scenario with several seeds: what the kernel does at random differs.
fn every_law_holds(scenario: &Scenario) {
    for seed in 0..30 {
        let outcome = check(Scenario { seed, ..scenario.clone() }, false);
        assert_eq!(outcome.broken, [], "seed {seed}");
    }
}

// Found by "time does not go backwards": the next phase was reported as started behind the report that all had ended.
#[test]
fn a_thread_that_is_told_to_end_begins_no_phase_in_the_same_batch() {
    every_law_holds(&Scenario {
        threads: 3,
        phases: vec![closed(Stop::After(10 * MS)), closed(Stop::After(10 * MS))],
        stop_ns: Some(15 * MS + MS / 2),
        kernel: KernelPlan { late_ns: 3 * MS, ..KernelPlan::default() },
        ..Scenario::default()
    });
}

// Found by "no slot hangs" and by an overflow: the connection was taken for an open one, so that one too few was counted,
// and nobody was told that its set-up had failed.
#[test]
fn a_peer_that_floods_pings_while_it_is_joined_and_reads_nothing_is_a_failed_attempt() {
    let flood = Trick::FloodUnread(Bytes(b"\x89\x02hi"));
    let joins = Manner { tricks: vec![(0, flood)], ..Manner::default() };
    let turns = PhasePlan { load: Load::Turns { concurrent: 2 }, ..closed(Stop::Requests(5)) };
    for peers in [vec![joins.clone()], vec![Manner::default(), joins]] {
        every_law_holds(&Scenario {
            protocol: Protocol::Broadcast { dialect: Dialect::Json, padding: 10 },
            phases: vec![turns.clone()],
            kernel: KernelPlan { room: 2000, ..KernelPlan::default() },
            peers,
            ..Scenario::default()
        });
    }
}

// Found by an index that was out of bounds: connections that were taken away still waited for the next arrival.
#[test]
fn arrivals_behind_an_open_loop_find_no_connection_that_was_taken_away() {
    let (stages, arrivals) =
        ([Stage { ns: 10 * S, from: 3.0, to: 3.0 }].into(), Arrivals::Constant);
    let load = Load::Open { stages, arrivals };
    let open = PhasePlan { load, connections: 4, ..closed(Stop::After(900 * MS)) };
    every_law_holds(&Scenario {
        connections: 4,
        phases: vec![open, PhasePlan { pause_ns: 300 * MS, ..closed(Stop::Requests(10)) }],
        ..Scenario::default()
    });
}

// Found by an overflow: a violation was charged to one message more than the phase had to send, and its number of
// messages left wrapped.
#[test]
fn a_violation_behind_the_last_message_of_a_broadcast_is_no_message_of_the_load() {
    let twice = |number| (number, Trick::Double);
    let turns = PhasePlan {
        load: Load::Turns { concurrent: 1 },
        connections: 5,
        ..closed(Stop::Requests(4))
    };
    every_law_holds(&Scenario {
        protocol: Protocol::Broadcast { dialect: Dialect::Phoenix, padding: 1 },
        connections: 5,
        phases: vec![turns],
        kernel: KernelPlan { read_random: true, coalesce_ns: 133_165, ..KernelPlan::default() },
        peers: vec![Manner { tricks: vec![twice(1), twice(7)], ..Manner::default() }],
        ..Scenario::default()
    });
}

// Found by "nobody is accused falsely": how long connections had waited for their first request counted as time for which
// the peer keeps them. Its idle time-out, which is shorter, no longer explained the resets behind a pause.
#[test]
fn a_long_wait_for_the_first_request_says_nothing_of_an_idle_time_out() {
    let after = |pause_ns| PhasePlan { pause_ns, ..closed(Stop::Requests(20)) };
    every_law_holds(&Scenario {
        phases: vec![after(10 * S), after(4 * S)],
        peers: vec![Manner { forgets_ns: Some(2 * S), ..Manner::default() }],
        ..Scenario::default()
    });
}

// Found by "each delivery is had once or lost": the second phase is too short for a message of its own, was settled before
// the first, and what was still under way of that counted as lost.
#[test]
fn engines_that_share_a_broadcast_settle_its_phases_in_their_order() {
    let turns = |ns| PhasePlan {
        load: Load::Turns { concurrent: 8 },
        connections: 4,
        ..closed(Stop::After(ns))
    };
    every_law_holds(&Scenario {
        protocol: Protocol::Broadcast { dialect: Dialect::Json, padding: 10 },
        threads: 2,
        connections: 4,
        front_ns: 30 * MS,
        phases: vec![turns(MS), turns(MS)],
        peers: vec![Manner {
            delay: Delay { least_ns: 5 * MS, most_ns: 5 * MS },
            ..Manner::default()
        }],
        ..Scenario::default()
    });
}

// Found by "nobody is accused falsely": TLS makes small requests longer, so that more of them seemed to wait for the socket
// than did, and the answer to one that had left was taken for one that nobody had asked for.
#[test]
fn an_answer_over_tls_is_not_unasked_for_while_small_requests_wait_behind_its_own() {
    let arrivals = Arrivals::Constant;
    let stages = Arc::from([Stage { ns: 20 * MS, from: 10_000.0, to: 10_000.0 }]);
    let open = PhasePlan {
        load: Load::Open { stages, arrivals },
        connections: 1,
        ..closed(Stop::After(20 * MS))
    };
    let plan = HttpPlan { method: "GET", several: false, expect_body: true };
    every_law_holds(&Scenario {
        protocol: Protocol::Http(plan),
        tls: true,
        connections: 1,
        depth: 12,
        timeout_ns: 5 * S,
        connect_timeout_ns: 5 * S,
        phases: vec![open],
        kernel: KernelPlan { room: 50, late_ns: 3 * MS, ..KernelPlan::default() },
        ..Scenario::default()
    });
}

fn late_by(late_ns: u64) -> KernelPlan {
    KernelPlan { late_ns, ..KernelPlan::default() }
}

// Found by "requests take no more time than is permitted": the time of a connection that ended in the same batch as its
// phase was not permitted, though its requests had taken it.
#[test]
fn a_connection_that_ends_behind_its_phase_was_permitted_until_then() {
    for request in 5..15 {
        let announces = Manner {
            tricks: vec![(request, Trick::Announce(0))],
            delay: Delay { least_ns: MS, most_ns: MS },
            ..Manner::default()
        };
        every_law_holds(&Scenario {
            phases: vec![closed(Stop::After(10 * MS))],
            kernel: late_by(MS),
            peers: vec![announces],
            ..Scenario::default()
        });
    }
}

// Found by the same law: a place that stood empty when one phase ended was taken off the next, in which its connection had
// no part, and what was permitted there wrapped.
#[test]
fn a_place_that_no_request_may_take_is_not_taken_off_what_is_permitted() {
    let all = PhasePlan { connections: 4, ..closed(Stop::After(3 * MS)) };
    for (close, depth) in [(true, 2), (false, 2), (false, 3)] {
        every_law_holds(&Scenario {
            depth,
            close,
            connections: 4,
            phases: vec![all.clone(), PhasePlan { idle: 3, ..all.clone() }, all.clone()],
            kernel: late_by(MS),
            ..Scenario::default()
        });
    }
}

// Found by an overflow: a stream that waited for the connection's window, and whose own SETTINGS closed and opened again,
// stood in the queue of those with something to send twice, and was counted as done twice.
#[test]
fn an_upload_whose_window_is_closed_while_it_waits_for_the_connection_is_sent_once() {
    let http = HttpPlan { method: "POST", several: false, expect_body: true };
    let (body_bytes, window, connection_window) = (70_000, 65_535, 65_535);
    let plan = Http2Plan { http, body_bytes, window, connection_window, start: Start::Direct };
    let changes = (0..20).map(|nth: u64| {
        let window = if nth.is_multiple_of(2) { 0 } else { 100_000 };
        (nth * MS / 4, vec![(4, window)])
    });
    let http2 = Http2Manner {
        settings: vec![(4, 100_000)],
        changes: changes.collect(),
        opens_windows_ns: Some(MS),
        ..Http2Manner::default()
    };
    every_law_holds(&Scenario {
        protocol: Protocol::Http2(plan),
        depth: 3,
        phases: vec![closed(Stop::Requests(20))],
        peers: vec![Manner { http2, ..Manner::default() }],
        ..Scenario::default()
    });
}

// Found by seed 146341 and a fault of the simulated peer: a stream that it answered before the request came was open to
// it, and not to the client, which had opened another one in its place.
#[test]
fn a_stream_that_is_answered_before_its_request_comes_is_not_open() {
    let http = HttpPlan { method: "GET", several: false, expect_body: false };
    let (window, connection_window) = (65_535, 65_535);
    let plan = Http2Plan { http, body_bytes: 0, window, connection_window, start: Start::Direct };
    let http2 = Http2Manner {
        settings: vec![(3, 2)],
        tricks: vec![(1, Http2Trick::Elsewhere(2))],
        ..Http2Manner::default()
    };
    every_law_holds(&Scenario {
        protocol: Protocol::Http2(plan),
        depth: 3,
        phases: vec![closed(Stop::Requests(20))],
        peers: vec![Manner { http2, ..Manner::default() }],
        ..Scenario::default()
    });
}

// Found by "a connection counts as what it speaks": a connection over HTTP/1.1 that had something outstanding when the
// window of a phase ended counted twice in it.
#[test]
fn a_connection_that_has_chosen_http_1_counts_once_in_a_phase() {
    let http = HttpPlan { method: "GET", several: false, expect_body: true };
    let (window, connection_window, start) = (65_535, 65_535, Start::Negotiated(1));
    let plan = Http2Plan { http, body_bytes: 0, window, connection_window, start };
    let http2 = Http2Manner { choice: Choice::Http1, ..Http2Manner::default() };
    let delay = Delay { least_ns: 3 * MS, most_ns: 3 * MS };
    every_law_holds(&Scenario {
        protocol: Protocol::Http2(plan),
        tls: true,
        phases: vec![closed(Stop::After(10 * MS))],
        peers: vec![Manner { http2, delay, ..Manner::default() }],
        ..Scenario::default()
    });
}

// Found by seed 2030683 and a fault of the simulated kernel: a peer that reset a connection at once still sent on it, and
// was then sent a request whose beginning the kernel had dropped.
#[test]
fn a_peer_that_resets_a_connection_at_once_sends_nothing_on_it() {
    let http = HttpPlan { method: "HEAD", several: true, expect_body: false };
    let (window, connection_window, start) = (65_535, 65_535, Start::Direct);
    let plan = Http2Plan { http, body_bytes: 0, window, connection_window, start };
    let resets = Manner { accept: Accept::Reset, ..Manner::default() };
    every_law_holds(&Scenario {
        protocol: Protocol::Http2(plan),
        phases: vec![closed(Stop::Requests(20))],
        kernel: KernelPlan { room: 10, read_most: 11, read_all: false, ..KernelPlan::default() },
        peers: vec![resets, Manner::default()],
        ..Scenario::default()
    });
}

// Found by seed 858: bytes of nobody's came while the rest of a request that had ended waited to be sent. The length of
// the request asked last was wanted, and there was none.
#[test]
fn a_connection_that_follows_redirects_hears_bytes_while_nothing_is_outstanding() {
    let site = Site { hops_most: 1, ..Site::default() };
    let flood = Manner { greeting: Some(Trick::FloodUnread(Bytes(b"x"))), ..Manner::default() };
    let double =
        Manner { tricks: vec![(0, Trick::Double), (1, Trick::Double)], ..Manner::default() };
    every_law_holds(&Scenario {
        talk: Some(Talk { follow: Some(2), site, ..Talk::default() }),
        protocol: Protocol::Http(HttpPlan { method: "GET", several: false, expect_body: false }),
        connections: 4,
        timeout_ns: 10 * MS,
        phases: vec![PhasePlan { connections: 4, ..closed(Stop::Requests(40)) }],
        kernel: KernelPlan { read_most: 4, read_random: true, room: 8, ..KernelPlan::default() },
        peers: vec![flood, double],
        ..Scenario::default()
    });
}

// Found by "what is sent is as the protocol has it", and a fault of the simulation: its proxy let through what the
// server sent at once, and that was a good answer to the request for a tunnel.
#[test]
fn a_server_that_speaks_first_is_heard_behind_the_answer_of_its_proxy() {
    let speaks_first =
        |proxy| Manner { greeting: Some(Trick::EndBehind(End::Fin)), proxy, ..Manner::default() };
    let refuses = Proxy::Refuses(Bytes(b"HTTP/1.1 200 O"), End::Silence);
    for proxy in [Manner::default().proxy, refuses] {
        every_law_holds(&Scenario {
            talk: Some(Talk { tunnel: true, ..Talk::default() }),
            tls: true,
            phases: vec![closed(Stop::After(10 * MS))],
            peers: vec![speaks_first(proxy), Manner::default()],
            ..Scenario::default()
        });
    }
}

// Found by seed 262 and "what a conversation keeps is bounded": a request that was failed while it waited for its next
// connection was kept for ever, with where its redirects had led.
#[test]
fn a_redirected_request_that_ends_before_its_next_connection_is_forgotten() {
    let refuses = Manner { accept: Accept::Refused, ..Manner::default() };
    let site = Site { hops_most: 2, ..Site::default() };
    for (close, stop) in
        [(true, Stop::Requests(40)), (true, Stop::After(MS)), (false, Stop::After(MS))]
    {
        let ends = Manner { tricks: vec![(1, Trick::EndBehind(End::Fin))], ..Manner::default() };
        every_law_holds(&Scenario {
            talk: Some(Talk { follow: Some(2), site, ..Talk::default() }),
            protocol: Protocol::Http(HttpPlan {
                method: "GET",
                several: false,
                expect_body: false,
            }),
            close,
            connect_timeout_ns: 5 * MS,
            phases: vec![closed(stop); 4],
            peers: vec![ends, refuses.clone()],
            ..Scenario::default()
        });
    }
}

// Found by seed 35153 and "a session settles once", and a fault of that law: a short phase in which sessions ended was
// over before the one in which they had begun.
#[test]
fn sessions_end_in_a_phase_that_is_over_before_theirs() {
    let step = Step { method: "GET", repeat: 3, think_ns: (0, 2 * MS), takes: None };
    let site = Site { fails_one_in: 3, ..Site::default() };
    every_law_holds(&Scenario {
        talk: Some(Talk { steps: vec![step], site, ..Talk::default() }),
        protocol: Protocol::Http(HttpPlan { method: "GET", several: false, expect_body: false }),
        connections: 8,
        phases: [20, 3, 40]
            .map(|ms| PhasePlan { connections: 8, ..closed(Stop::After(ms * MS)) })
            .into(),
        kernel: KernelPlan { latency_ns: 2 * MS, jitter_ns: MS, ..KernelPlan::default() },
        ..Scenario::default()
    });
}
