"""Attacks on what a window cuts, and on what is said of a percentile. Declarations only."""

from __future__ import annotations

from redteam.attack import Attack
from redteam.demands import (
    crossed,
    ended,
    failed,
    not_invalid,
    percentile,
    prints,
    quiet,
    throughput,
    valid,
)
from redteam.scenes import Http
from redteam.sessions import CutSessions, p95_at_least
from redteam.uneven import Replayed, Streamed, burst, parts_per_s, set_back

UNEVEN = (
    Attack(
        "ramp",
        "a ramp of 10 to 100/s in 20 s, answers of 800 ms",
        Http("fixed=800ms", "-c 200 --stages 20s@10..100 --warmup 0"),
        (throughput(55), quiet("backlog"), not_invalid),
    ),
    Attack(
        "ramp-short",
        "the same ramp in 5 s",
        Http("fixed=800ms", "-c 200 --stages 5s@10..100 --warmup 0"),
        (throughput(55), quiet("backlog"), not_invalid),
    ),
    Attack(
        "ramp-steps",
        "10/s for 2 s and 200/s for 4 s, answers of 800 ms",
        Http("fixed=800ms", "-c 400 --stages 2s@10,4s@200 --warmup 0"),
        (throughput(820 / 6), quiet("backlog"), not_invalid),
    ),
    Attack(
        "ramp-down",
        "a ramp of 100 to 10/s in 5 s",
        Http("fixed=800ms", "-c 200 --stages 5s@100..10 --warmup 0"),
        (throughput(55), quiet("backlog"), not_invalid),
    ),
    Attack(
        "ramp-beyond",
        "a ramp of 100 to 2,000/s in 5 s against a server of 990/s",
        Http("serves=990", "-c 5000 --stages 5s@100..2000 --warmup 0"),
        (throughput(781, 0.05), failed("backlog"), ended(4)),
    ),
    Attack(
        "replay-burst",
        "a replay of 200 in 2 s, then 100 at once, answers of 50 ms",
        Replayed("fixed=50ms", burst(200, 2, 100), "-c 200"),
        (throughput(150, 0.03), quiet("backlog")),
    ),
    Attack(
        "replay-burst-first",
        "a replay of 100 at once, then 200 in 2 s",
        Replayed("fixed=50ms", burst(200, 2, 100, first=True), "-c 200"),
        (throughput(150, 0.03), quiet("backlog")),
    ),
    Attack(
        "replay-burst-quick",
        "a replay of 20 in 2 s, then 100 at once, answers of 9 ms",
        Replayed("fixed=9ms", burst(20, 2, 100), "-c 200"),
        (throughput(60, 0.03), quiet("backlog")),
    ),
    Attack(
        "replay-burst-slow",
        "the same against one queue of 100/s: the burst waits",
        Replayed("serves=100", burst(20, 2, 100), "-c 200"),
        (failed("backlog"), ended(4)),
    ),
    Attack(
        "log-back",
        "an access log of 50/s whose clock is set back 4 s in the middle",
        Replayed("fixed=5ms", set_back(50, 8, 4), "-c 50"),
        (throughput(50, 0.03), prints("(?i)clock goes back by 4.00 s")),
    ),
    Attack(
        "log-back-far",
        "the same by 30 min",
        Replayed("fixed=5ms", set_back(50, 4, 1800), "-c 50"),
        (throughput(50, 0.03), prints("(?i)clock goes back by")),
    ),
    Attack(
        "streams-cut",
        "16 streams of 2 s, window of 11 s",
        Streamed(20, 100, "-c 16 -d 11s --warmup 0"),
        (parts_per_s(160),),
    ),
    Attack(
        "streams-most",
        "16 streams of 3 s, window of 4 s behind a warm-up",
        Streamed(30, 100, "-c 16 -d 4s --warmup 1s"),
        (parts_per_s(160),),
    ),
    Attack(
        "streams-window",
        "16 streams as long as the window",
        Streamed(20, 100, "-c 16 -d 2s --warmup 0"),
        (parts_per_s(160),),
    ),
)

PRECISION = (
    Attack(
        "interval-freezes",
        "a freeze of 300 ms every 3 s, three times, with p99 claimed",
        Http("fixed=1ms freeze=300ms:3s", "-c 2000 -d 9s --warmup 0 --rate 2k/s --fail-on p99>1s"),
        (crossed("quantile-width"), prints("with no interval")),
    ),
    Attack(
        "interval-second",
        "one bad second of 12, with p99 claimed",
        Http("fixed=5ms freeze=400ms:0:5s", "-c 500 -d 12s --rate 500/s --fail-on p99>1s"),
        (crossed("quantile-width"), prints("came in one second")),
    ),
    Attack(
        "interval-gap",
        "one answer in a hundred takes 1 s, the others 28 ms, with p99 claimed",
        Http("modes=28ms:1s:0.01", "-c 64 -d 12s --fail-on p99>5s"),
        (crossed("quantile-width"), prints("may lie on either side")),
    ),
    Attack(
        "interval-gap-p95",
        "one answer in twenty takes 1 s, the others 28 ms, with p95 claimed",
        Http("modes=28ms:1s:0.05", "-c 64 -d 12s --fail-on p95>5s"),
        (crossed("quantile-width"), prints("may lie on either side")),
    ),
    Attack(
        "interval",
        "exponential answers with p99 claimed: honest",
        Http("exp=5ms", "-c 64 -d 12s --fail-on p99>1s"),
        (percentile("p99"), valid, ended(0)),
    ),
)

CUT = (
    Attack(
        "sessions-cut",
        "8 % of the sessions take 1.8 s, window of 3 s",
        CutSessions("-c 16 -d 3s --warmup 0", slow_s=1.8),
        (p95_at_least(1_880),),
    ),
    Attack(
        "sessions-cut-long",
        "8 % of the sessions take 3.6 s, window of 5 s behind a warm-up",
        CutSessions("-c 16 -d 5s", slow_s=3.6),
        (p95_at_least(3_680),),
    ),
)
