"""The table of attacks: how each is made, and what trueload has to show. Declarations only.

`server.c` explains the options of the scripted servers.
"""

from __future__ import annotations

from redteam.attack import Attack as Attack
from redteam.broadcasts import Broadcast, found_at_most, found_none, out_of_order
from redteam.cut import CUT, PRECISION, UNEVEN
from redteam.demands import (
    crossed,
    ended,
    failed,
    never_prints,
    not_invalid,
    percentile,
    prints,
    quiet,
    refused_unless,
    suspect,
    throughput,
    valid,
)
from redteam.elsewhere import Contained, Far, Proxied, Reference, Unshared
from redteam.hidden import HIDDEN
from redteam.other_protocols import Echoed, all_answered, counted
from redteam.scenes import Burn, Crowd, Http, Quota, Stop
from redteam.sessions import (
    SESSION,
    SearchedSessions,
    Sessions,
    TimedSessions,
    as_served,
    each_row_once,
    failed_share,
    never_fast,
    of_sessions,
)
from redteam.suites import Client, Subject, behind_honest, completed

STALLS = ("hiccup", "send-lag", "cpu-limit")
"""Checks that may see that the generator was paused."""

WINDOW = (
    Attack(
        "window-1s",
        "64 connections, each answer takes 1 s, window of 2.1 s",
        Http("fixed=1s", "-c 64 -d 2.1s --warmup 0", true_per_s=64),
        (throughput(64), crossed("window")),
    ),
    Attack(
        "window-2.2s",
        "64 connections, each answer takes 2.2 s, window of 10 s",
        Http("fixed=2.2s", "-c 64 -d 10s --warmup 0", true_per_s=64 / 2.2),
        (throughput(64 / 2.2), crossed("window")),
    ),
    Attack(
        "window-0.9s",
        "64 connections, each answer takes 0.9 s, window of 5 s",
        Http("fixed=900ms", "-c 64 -d 5s --warmup 0", true_per_s=64 / 0.9),
        (throughput(64 / 0.9), crossed("window")),
    ),
    Attack(
        "window-queue",
        "1,000 connections, a server of 496/s, no warm-up, 5 s",
        Http("serves=496", "-c 1000 -d 5s --warmup 0", true_per_s=496),
        (refused_unless(throughput(496)), crossed("window", "steady-state")),
    ),
    Attack(
        "window-longer",
        "16 connections, each answer takes twice the window",
        Http("fixed=2s", "-c 16 -d 1s --warmup 0", true_per_s=8),
        (throughput(8), crossed("window")),
    ),
    Attack(
        "window-spread",
        "answers take 0.9 to 1.1 s, window of 1.7 s behind a warm-up",
        Http("uniform=900ms:1100ms", "-c 64 -d 1.7s --warmup 3s", true_per_s=64),
        (throughput(64, 0.03), crossed("window")),
    ),
    Attack(
        "requests",
        "1,000 requests, one takes 4 s, the others come at 6,000/s",
        Http("fixed=10.6ms nth=500:4s", "-c 64 --requests 1000"),
        (throughput(64 / 0.0106, 0.05), prints(r"(?i)last 1 of 1,000")),
    ),
)

HONEST = (
    Attack(
        "honest",
        "each answer takes 5 ms: honest",
        Http("fixed=5ms", "-c 64 -d 5s"),
        (throughput(), percentile("p50"), percentile("p99"), percentile("p999"), valid),
    ),
    Attack(
        "honest-short",
        "the same in a window of 500 ms",
        Http("fixed=5ms", "-c 64 -d 500ms"),
        (throughput(), percentile("p50"), percentile("p99"), valid),
    ),
    Attack(
        "honest-exponential",
        "exponential answers, mean 5 ms",
        Http("exp=5ms", "-c 64 -d 5s"),
        (throughput(), percentile("p50"), percentile("p99"), percentile("p999"), valid),
    ),
    Attack(
        "honest-modes",
        "one answer in ten takes 50 ms, the others 1 ms",
        Http("modes=1ms:50ms:0.1", "-c 64 -d 5s"),
        (throughput(), percentile("p50"), percentile("p99"), valid),
    ),
    Attack(
        "honest-queue",
        "one queue for all, 2,000/s: each of 64 waits for the others",
        Http("serves=2000", "-c 64 -d 5s"),
        (throughput(2_000), percentile("p50"), percentile("p99"), valid),
    ),
)

FLOW = (
    Attack(
        "backlog-2000",
        "2,000/s asked of a server of 990/s, 5,000 connections, 4 s",
        Http("serves=990", "-c 5000 -d 4s --warmup 0 --rate 2k/s"),
        (throughput(990, 0.03), failed("backlog"), ended(4)),
    ),
    Attack(
        "backlog-1500",
        "1,500/s asked of a server of 990/s, 5 s",
        Http("serves=990", "-c 5000 -d 5s --warmup 0 --rate 1.5k/s"),
        (throughput(990, 0.03), failed("backlog"), ended(4)),
    ),
    Attack(
        "backlog-1150",
        "1,150/s asked of a server of 990/s, 10 s",
        Http("serves=990", "-c 5000 -d 10s --warmup 0 --rate 1150/s"),
        (throughput(990, 0.03), failed("backlog"), ended(4)),
    ),
    Attack(
        "kept-up",
        "900/s asked of a server of 990/s: honest",
        Http("serves=990", "-c 500 -d 5s --rate 900/s"),
        (throughput(900), quiet("backlog", "stall", "steady-state"), valid),
    ),
    Attack(
        "half-speed",
        "half speed for the first 3 s of 10",
        Http("fixed=3.76ms speed=0:0.5:3:0.5:3:1", "-c 64 -d 10s --warmup 0"),
        (suspect, crossed("steady-state")),
    ),
    Attack(
        "no-answer",
        "no answer at all for 3.9 s of 10",
        Http("fixed=3.76ms freeze=3.9s:0:3s", "-c 64 -d 10s --warmup 0"),
        (suspect, crossed("stall", "steady-state")),
    ),
    Attack(
        "slows",
        "slows to a third within 8 s",
        Http("fixed=3.76ms speed=0:1:8:0.333", "-c 64 -d 8s --warmup 0"),
        (suspect, crossed("steady-state")),
    ),
    Attack(
        "v-shape",
        "slows to a third and recovers, the same in both halves",
        Http("fixed=3.76ms speed=0:1:3:0.333:6:1", "-c 64 -d 6s --warmup 0"),
        (suspect, crossed("steady-state")),
    ),
    Attack(
        "freeze-closed",
        "a freeze of 300 ms every 3 s, closed loop",
        Http("fixed=1ms freeze=300ms:3s", "-c 16 -d 9s --warmup 0"),
        (suspect, crossed("stall"), prints(r"(?i)coordinated omission|open loop")),
    ),
    Attack(
        "freeze-open",
        "the same freeze under an open loop, whose figures are right",
        Http("fixed=1ms freeze=300ms:3s", "-c 2000 -d 9s --warmup 0 --rate 2k/s"),
        (percentile("p99", 271, 0.1), not_invalid),
    ),
)

LATE = (
    Attack(
        "stop-50",
        "the generator is paused for 50 of 500 ms",
        Http("fixed=9ms", "-c 64 -d 500ms --warmup 0", Stop(50, after_ms=200)),
        (refused_unless(percentile("p99")), crossed(*STALLS)),
    ),
    Attack(
        "stop-90",
        "the generator is paused for 90 of 500 ms",
        Http("fixed=9ms", "-c 64 -d 500ms --warmup 0", Stop(90, after_ms=200)),
        (refused_unless(percentile("p99"), throughput(within=0.05)), crossed(*STALLS)),
    ),
    Attack(
        "stop-9-of-100",
        "the generator is paused for 9 of every 100 ms",
        Http("fixed=5.3ms", "-c 64 -d 3s --warmup 0", Stop(9, 100, 40)),
        (refused_unless(percentile("p99"), throughput(64 / 0.0054, 0.05)), crossed(*STALLS)),
    ),
    Attack(
        "stop-5-of-10",
        "the generator is paused for 5 of every 10 ms",
        Http("fixed=9ms", "-c 64 -d 3s --warmup 0", Stop(5, 10, 400)),
        (refused_unless(throughput(7_100, 0.05)), crossed(*STALLS)),
    ),
    Attack(
        "stop-95-of-2000",
        "1,000 connections, the generator is paused for 95 ms in 2 s",
        Http("fixed=100ms", "-c 1000 -d 2s --warmup 0", Stop(95, after_ms=1000)),
        (refused_unless(percentile("p99")), crossed(*STALLS)),
    ),
    Attack(
        "quota-50",
        "the generator may use 50 % of each 10 ms of CPU time",
        Http("fixed=5ms", "-c 64 -d 3s", Quota(0.5, 10)),
        (refused_unless(percentile("p99"), percentile("p999"), throughput()),),
    ),
    Attack(
        "quota-10",
        "the generator may use 10 % of each 10 ms of CPU time",
        Http("fixed=5ms", "-c 64 -d 3s", Quota(0.1, 10)),
        (refused_unless(throughput(12_400, 0.05)), prints("(?i)throttled")),
    ),
    Attack(
        "quota-server",
        "the server may use 20 % of each 50 ms: right figures, and the reason is told",
        Http("fixed=5ms work=50us", "-c 64 -d 5s", Quota(0.2, 50, "server")),
        (not_invalid, prints("(?i)throttled")),
    ),
    Attack(
        "loaded",
        "a window of 500 ms while others want both CPUs",
        Http("fixed=1ms", "-c 64 -d 500ms", Crowd((Burn(1, 1), Burn(1, 1, 0)))),
        (crossed("noise", *STALLS),),
    ),
    Attack(
        "burst",
        "another process takes 9 of every 110 ms of the generator's CPU",
        Http("fixed=5.5ms", "-c 64 -d 5s", Burn(9, 110)),
        (refused_unless(percentile("p99"), throughput()),),
    ),
)

SLOTS = (
    Attack(
        "slow-6",
        "six of 64 connections always take 900 ms",
        Http("fixed=5ms slow=6:900ms", "-c 64 -d 10s"),
        (suspect, crossed("slow-connections"), prints(r"\b6\b")),
    ),
    Attack(
        "slow-1",
        "one of 64 connections always takes 900 ms",
        Http("fixed=5ms slow=1:900ms", "-c 64 -d 10s"),
        (suspect, crossed("slow-connections")),
    ),
    Attack(
        "starved",
        "one of 64 connections is never answered",
        Http("fixed=5ms starve=1", "-c 64 -d 3s --timeout 2s"),
        (failed("starvation"), ended(4)),
    ),
    Attack(
        "hangs",
        "one of 64 connections is answered once and never again, the others every 200 ms",
        Http("fixed=200ms hang=1", "-c 64 -d 4s --warmup 0"),
        (suspect, crossed("starvation")),
    ),
    Attack(
        "slow-requests",
        "one request in 1,000 takes 1 s, on connections by chance: honest",
        Http("fixed=5ms chance=0.001:1s", "-c 64 -d 10s"),
        (valid, quiet("starvation", "slow-connections")),
    ),
    Attack(
        "slow-requests-open",
        "one request in 500 takes 1.2 s, at 200/s: honest",
        Http("fixed=5ms chance=0.002:1.2s", "-c 64 -d 10s --rate 200/s"),
        (valid, quiet("starvation", "slow-connections")),
    ),
    Attack(
        "idle-408",
        "idle connections are ended after 0.5 s with a 408, at 20/s: honest",
        Http("fixed=1ms idle=500ms:408", "-c 64 -d 10s --rate 20/s"),
        (not_invalid, quiet("unsolicited", "connections"), prints("(?i)idle")),
    ),
    Attack(
        "idle-close",
        "idle connections are closed after 1.5 s, at 20/s: honest",
        Http("fixed=1ms idle=1500ms:0", "-c 64 -d 10s --rate 20/s"),
        (not_invalid, quiet("unsolicited", "connections"), prints("(?i)idle")),
    ),
)

ANSWERS = (
    Attack(
        "few",
        "100 answers of an exponential server, mean 10 ms: no p99 can be told",
        Http("exp=10ms", "-c 10 --requests 100"),
        (prints("(?i)too few"), prints("(?i)largest of 100")),
    ),
    Attack(
        "varying",
        "right answers to the first 1,000 requests, then empty ones",
        Http("changes=1000", "-c 64 -d 2s --warmup 0"),
        (prints("(?i)2 kinds of answer"),),
    ),
    Attack(
        "varying-late",
        "answers become empty after the warm-up",
        Http("fixed=5ms changes=20000", "-c 64 -d 3s --warmup 500ms"),
        (suspect, crossed("varying")),
    ),
    Attack(
        "varying-same",
        "the same, where all have to be alike",
        Http("fixed=5ms changes=20000", "-c 64 -d 3s --warmup 500ms --expect-same"),
        (failed("varying", "errors"), ended(4)),
    ),
)

MORE = (
    Attack(
        "predicted",
        "answers every 7 ms over a round trip of 10 ms, whether asked for or not",
        Far(5, "predict=7ms", "-c 8 -d 5s"),
        (failed("predicted"), ended(4)),
    ),
    Attack(
        "predicted-late",
        "answers every 12 ms over a round trip of 10 ms, each after its request has arrived",
        Far(5, "predict=12ms", "-c 64 -d 5s"),
        (failed("unsolicited", "predicted"), ended(4)),
    ),
    Attack(
        "far",
        "an answer at once over a round trip of 10 ms: honest",
        Far(5, "fixed=1ms", "-c 8 -d 5s"),
        (valid, quiet("predicted", "unsolicited")),
    ),
    Attack(
        "proxy",
        "a proxy in front of the server that works: right figures, and a word about it",
        Proxied("work=200us", "-c 64 -d 5s"),
        (throughput(), not_invalid, quiet("noise"), prints("(?i)--server-pid")),
    ),
    Attack(
        "container",
        "the server in another network namespace: honest",
        Contained("work=200us", "-c 64 -d 5s"),
        (throughput(), valid, quiet("noise")),
    ),
    Attack(
        "pid-namespace",
        "trueload in a process namespace of its own: honest",
        Unshared("work=200us", "-c 64 -d 5s"),
        (throughput(), valid, quiet("noise")),
    ),
    Attack(
        "lower-bound",
        "an ordinary run against a server that is as fast as the generator",
        Reference("-c 64 -d 5s"),
        (valid, never_prints("more connections")),
    ),
    Attack(
        "limit",
        "the largest rate with p99 < 1 s of a server of 990/s, in steps of 2 s",
        Http("serves=990", "-c 5000 -d 2s --warmup 0 --rate 1k/s --limit p99<1s"),
        (found_at_most(990),),
    ),
)

SUITES = (
    Attack(
        "over-pool",
        "a client with a pool of 32 that opens 34 connections",
        Client("over=2"),
        (failed("over-pool"), behind_honest),
    ),
    Attack(
        "over-pool-39",
        "a client with a pool of 32 that opens 39 connections",
        Client("over=7"),
        (failed("over-pool"), behind_honest),
    ),
    Attack(
        "late-client",
        "a client that begins 1 s after it is told to",
        Client("late=1"),
        (completed(1_650), behind_honest),
    ),
    Attack(
        "headers",
        "a subject that drops its headers under load",
        Subject("bare=100"),
        (crossed("varying"),),
    ),
    Attack(
        "blind",
        "a subject that answers any path alike under load",
        Subject("blind=100"),
        (crossed("varying"),),
    ),
)

BROADCASTS = (
    Attack(
        "late-delivery",
        "receipts at once, messages 1 s later: p95<500ms is not kept",
        Broadcast("late", "--step 10 --steps 1 --samples 10 --timeout 5s --limit p95<500ms"),
        (found_none, prints("a receipt says little")),
    ),
    Attack(
        "one-left-out",
        "a room that leaves out one client",
        Broadcast("leaves one out", "--step 10 --steps 2 --samples 20 --timeout 2s"),
        (found_none, failed("ledger"), ended(4)),
    ),
    Attack(
        "swapped",
        "two messages of each sender change places",
        Broadcast("swaps one sender's", "--step 4 --steps 1 --samples 40 --limit p95<3s"),
        (out_of_order(True),),
    ),
    Attack(
        "swapped-across",
        "messages of two senders come in different orders, as they may",
        Broadcast("swaps two senders'", "--step 4 --steps 1 --samples 40 --limit p95<3s"),
        (out_of_order(False), quiet("ledger")),
    ),
)

AS_SERVED = refused_unless(
    as_served("log in", "p50", "p95"),
    as_served("list", "p50", "p95", "p99"),
    as_served(SESSION, "p50", "p95"),
)
"""Percentiles of each step and of sessions, as the server has noted them."""

SESSIONS = (
    Attack(
        "sessions",
        "every twentieth log-in fails, and the pages behind it are never asked for",
        Sessions("-c 8 -d 3s --warmup 0", fail_every=20),
        (failed_share(0.05), never_fast, failed("sessions"), ended(4)),
    ),
    Attack(
        "sessions-data",
        "a user for each session, and 100 users for a run of 60 s",
        Sessions("-c 8 -d 60s --data-order unique", users=100),
        (each_row_once(100), suspect, crossed("data"), prints("(?i)all 100 rows were used up")),
    ),
    Attack(
        "sessions-times",
        "each step takes a drawn time, and one page in ten is slow",
        TimedSessions("-c 16 --requests 400"),
        (AS_SERVED,),
    ),
    Attack(
        "sessions-rate",
        "the same, when 40 sessions begin each second",
        TimedSessions("-c 64 --requests 400 --rate 40/s"),
        (AS_SERVED,),
    ),
    Attack(
        "sessions-limit",
        "the largest rate of sessions of five requests, where 40 can begin each second",
        SearchedSessions("-c 64 -d 2s --warmup 500ms --rate 30/s --limit p95<200ms"),
        (of_sessions,),
    ),
)

DATAGRAMS = (
    Attack(
        "udp-invented",
        "UDP: one datagram in 20 is invented, beside the answer",
        Echoed("-c 16 -d 3s --warmup 0", invents_every=20),
        (all_answered, counted("unsolicited"), failed("unsolicited"), ended(4)),
    ),
    Attack(
        "udp-few-invented",
        "UDP: one in 500",
        Echoed("-c 16 -d 3s --warmup 0", invents_every=500),
        (all_answered, counted("unsolicited"), suspect, crossed("unsolicited")),
    ),
    Attack(
        "udp-doubled",
        "UDP: one datagram in 20 comes twice, as a network may do it: honest",
        Echoed("-c 16 -d 3s --warmup 0", doubles_every=20),
        (all_answered, counted("duplicated"), not_invalid, quiet("unsolicited")),
    ),
)

ATTACKS = (
    *(*HONEST, *WINDOW, *FLOW, *UNEVEN, *PRECISION, *LATE, *SLOTS, *ANSWERS, *MORE),
    *(*SUITES, *BROADCASTS, *SESSIONS, *CUT, *HIDDEN, *DATAGRAMS),
)
