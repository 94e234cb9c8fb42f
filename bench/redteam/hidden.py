"""Attacks that a closed loop hides, and their honest neighbours. Declarations only."""

from __future__ import annotations

from redteam.attack import Attack
from redteam.demands import (
    crossed,
    never_prints,
    not_invalid,
    percentile,
    prints,
    quiet,
    suspect,
    valid,
)
from redteam.scenes import Http
from redteam.sessions import SlowSessions

OMISSION = prints(r"(?i)coordinated omission")

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
        "everybody stands still for 440 ms of 9 s, answers of 50 ms",
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
)
