"""Attacks that a closed loop hides, and their honest neighbours. Declarations only."""

from __future__ import annotations

from redteam.attack import Attack
from redteam.demands import (
    by_schedule,
    crossed,
    never_prints,
    not_invalid,
    percentile,
    prints,
    quiet,
    suspect,
    valid,
)
from redteam.other_protocols import Held, Holding, held_places
from redteam.scenes import Http
from redteam.sessions import SlowSessions

OMISSION = prints(r"(?i)coordinated omission")

PAUSES = (
    Attack(
        "workers-even",
        "three workers that each stand still for 300 ms of 3 s, in turn: one pause each second",
        Http("fixed=20ms freeze=300ms:3s workers=3", "-c 16 -d 12s"),
        (suspect, crossed("stall"), by_schedule(0.15)),
    ),
    Attack(
        "workers-few",
        "two workers of two connections each",
        Http("fixed=20ms freeze=300ms:3s workers=2", "-c 4 -d 12s"),
        (suspect, crossed("stall"), by_schedule(0.15)),
    ),
    Attack(
        "workers-long",
        "the same for a minute",
        Http("fixed=20ms freeze=300ms:3s workers=2", "-c 4 -d 60s"),
        (suspect, crossed("stall"), by_schedule(0.15)),
    ),
    Attack(
        "pausing-3",
        "three of 64 connections stand still for 600 ms of 1.5 s, together",
        Http("fixed=20ms freeze=600ms:1500ms pausing=3", "-c 64 -d 12s"),
        (suspect, crossed("stall"), by_schedule(0.15)),
    ),
    Attack(
        "pausing-2-threads",
        "six of 64 connections stand still for 300 ms of 1 s, two threads of the generator",
        Http("fixed=20ms freeze=300ms:1s pausing=6", "-c 64 -d 12s --threads 2"),
        (suspect, crossed("stall"), by_schedule(0.15)),
    ),
    Attack(
        "pausing-3-open",
        "three of 64 connections under an open loop, whose figures are right",
        Http("fixed=20ms freeze=600ms:1500ms pausing=3", "-c 64 -d 12s --rate 500/s"),
        (not_invalid, quiet("stall")),
    ),
    Attack(
        "slow-in-step",
        "one request in 200 takes 2 s by chance, 64 connections in step: honest",
        Http("fixed=200ms chance=0.005:2s", "-c 64 -d 30s"),
        (quiet("stall", "starvation", "slow-connections"), not_invalid),
    ),
    Attack(
        "slow-pipelined",
        "one request in 300 takes 300 ms by chance, 8 requests behind each other: honest",
        Http("fixed=5ms chance=0.003:300ms", "-c 16 --pipeline 8 -d 12s"),
        (quiet("stall"), not_invalid),
    ),
)

HELD = (
    Attack(
        "stream-held",
        "HTTP/2: one of 100 streams is held for 4.5 s, again and again",
        Held(Holding(4.5, 1), "--http 2 -c 4 --streams 25 -d 18s"),
        (held_places(100), suspect, crossed("starvation")),
    ),
    Attack(
        "streams-held",
        "HTTP/2: three of 200 streams are held for 2.5 s, again and again",
        Held(Holding(2.5, 3, takes_s=0.08), "--http 2 -c 2 --streams 100 -d 12s --timeout 60s"),
        (held_places(200), suspect, crossed("starvation", "stall")),
    ),
    Attack(
        "stream-slow",
        "HTTP/2: one request in 500 takes 700 ms by chance: honest",
        Held(Holding(chance=0.002, slow_s=0.7), "--http 2 -c 4 --streams 25 -d 12s"),
        (quiet("starvation", "stall"), not_invalid),
    ),
)

HIDDEN = (
    Attack(
        "workers",
        "two workers that each stand still for 600 ms of 6 s, in turn, closed loop",
        Http("fixed=20ms freeze=600ms:6s workers=2", "-c 16 -d 18s"),
        (suspect, crossed("stall"), OMISSION),
    ),
    Attack(
        "workers-open",
        "the same under an open loop, whose figures are right",
        Http("fixed=20ms freeze=600ms:6s workers=2", "-c 500 -d 18s --rate 200/s"),
        (percentile("p99", 560, 0.1), not_invalid, quiet("stall")),
    ),
    Attack(
        "workers-8",
        "eight workers that each stand still for 400 ms of 4 s, in turn",
        Http("fixed=20ms freeze=400ms:4s workers=8", "-c 32 -d 12s"),
        (suspect, crossed("stall"), OMISSION),
    ),
    Attack(
        "freeze-nine",
        "everybody is paused for 440 ms of 9 s, answers of 50 ms",
        Http("fixed=50ms freeze=440ms:9s", "-c 16 -d 18s"),
        (suspect, crossed("stall"), OMISSION),
    ),
    Attack(
        "slow-alone",
        "one request in 300 takes 300 ms by chance: honest",
        Http("fixed=20ms chance=0.003:300ms", "-c 16 -d 18s"),
        (valid, quiet("stall")),
    ),
    Attack(
        "slow-alone-many",
        "one request in 1,000 takes 500 ms by chance, 128 connections: honest",
        Http("exp=10ms chance=0.001:500ms", "-c 128 -d 10s"),
        (valid, quiet("stall")),
    ),
    Attack(
        "one-percent",
        "200/s asked of a server of 198/s",
        Http("serves=198", "-c 500 -d 30s --rate 200/s"),
        (crossed("backlog"), never_prints("kept up")),
    ),
    Attack(
        "half-percent",
        "200/s asked of a server of 199/s",
        Http("serves=199", "-c 500 -d 30s --rate 200/s"),
        (crossed("backlog"), never_prints("kept up")),
    ),
    Attack(
        "nearly-full",
        "196/s asked of a server of 198/s: honest",
        Http("serves=198", "-c 500 -d 15s --rate 196/s"),
        (quiet("backlog"), valid),
    ),
    Attack(
        "slow-sessions",
        "a tenth of the sessions has pages of 2 s, at 30 sessions/s: honest",
        SlowSessions("-c 256 -d 20s --rate 30/s"),
        (not_invalid, quiet("starvation", "slow-connections")),
    ),
    Attack(
        "slow-sessions-closed",
        "the same in a closed loop: honest",
        SlowSessions("-c 32 -d 20s"),
        (not_invalid, quiet("starvation", "slow-connections", "fairness")),
    ),
    Attack(
        "one-request",
        "a single request has no rate",
        Http("fixed=5ms", "-c 64 --requests 1"),
        (never_prints(r"requests/s"),),
    ),
    *PAUSES,
    *HELD,
)
