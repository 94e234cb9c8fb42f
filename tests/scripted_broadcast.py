#!/usr/bin/env python3
"""An engine that plays a broadcast: its measurements follow from the number of clients by a rule.

Started as the engine's binary (by ``TRUELOAD_ENGINE``); ``SCRIPTED_BROADCAST`` names the server
that it plays. Every receipt and delivery takes ``RECEIPT_NS`` per client, so that a limit of 500 ms
lies at 5,000 clients. It writes the messages it was sent to the file that ``SCRIPTED_HEARD`` names.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from samples import histogram

RECEIPT_NS = 100_000
WINDOW_NS = 500_000_000  # too short to judge how busy the test machine was
LOSES_FROM = 2_000
LOST = 3
PORTS = 2_500

SERVER = os.environ["SCRIPTED_BROADCAST"]


def send(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def measurement(clients: int, messages: int) -> dict[str, Any]:
    receipt_ns = clients * RECEIPT_NS
    expected = messages * clients
    lost = LOST if messages and SERVER == "lossy" and clients >= LOSES_FROM else 0
    each = histogram((receipt_ns, messages)) if messages else None
    counts = {
        **dict.fromkeys(("unsent", "stale", "cancelled"), 0),
        **dict.fromkeys(("scheduled", "issued", "ok"), messages),
        "failed": {},
        "statuses": {},
    }
    if lost:
        each = histogram((receipt_ns, messages - 1))
        counts |= {"ok": messages - 1, "failed": {"lost": 1}}
    return {
        "started_ns": 0,
        "window_ns": WINDOW_NS,
        "drain_ns": 1_000_000,
        "partial": False,
        "counts": counts,
        "bytes_in": expected * 300,
        "bytes_out": messages * 300,
        "histograms": {
            **dict.fromkeys(("latency", "service", "first_byte"), each),
            **dict.fromkeys(("connect", "total", "send_lag", "handshake"), None),
        },
        "connections": {
            **dict.fromkeys(("requested", "established"), clients),
            **dict.fromkeys(("reconnects", "dropped", "down", "outage_ns", "outages"), 0),
            **dict.fromkeys(("handshakes_full", "handshakes_resumed"), 0),
            "family": "ipv4",
            "reasons": {},
        },
        "slots": {
            "asked": messages,
            "never_answered": 0,
            "answers_sum": messages,
            "answers_sum_squares": messages,
            "answers_min": 1,
            "answers_max": 1,
            "long_waits_ns": [],
            "permitted_ns": 0,
        },
        "series": [],
        "generator": {
            "driver": "epoll",
            "driver_note": None,
            "refill": 0,
            "spin_ns": 0,
            "spun_ns": 0,
            "threads": 1,
            "cpus": [],
            "start_skew_ns": None,
            "cpu_ns": 10_000_000,
            "saturation": 0.1,
            "peak_rss_bytes": 5_000_000,
        },
        "targets": None,
        "deliveries": deliveries(receipt_ns, messages, expected, lost),
    }


def deliveries(receipt_ns: int, messages: int, expected: int, lost: int) -> dict[str, Any]:
    return {
        "expected": expected,
        "delivered": expected - lost,
        "lost": lost,
        "duplicate": 0,
        "out_of_order": 0,
        "histograms": {
            "delivery": histogram((receipt_ns, expected - lost)),
            "first": histogram((receipt_ns // 10, messages)),
            "median": histogram((receipt_ns // 2, messages)),
            "p95": histogram((receipt_ns, messages)),
            "last": histogram((2 * receipt_ns, messages)),
        }
        if messages
        else dict.fromkeys(("delivery", "first", "median", "p95", "last")),
    }


def note(message: dict[str, Any]) -> None:
    with open(os.environ["SCRIPTED_HEARD"], "a", encoding="utf-8") as log:
        log.write(json.dumps(message) + "\n")


def serve_phase(phase: dict[str, Any]) -> None:
    if SERVER == "dies" and phase["connections"] >= LOSES_FROM:
        sys.exit(7)
    refuse_shortage(phase["connections"])
    send(type="phase_started", id=phase["id"], at_ns=0)
    send(type="phase_stopped", id=phase["id"], at_ns=WINDOW_NS)
    found = measurement(phase["connections"], phase["stop"]["count"])
    send(type="phase_done", id=phase["id"], measurement=found)


def refuse_shortage(connections: int) -> None:
    if SERVER == "short" and connections > PORTS:
        send(type="error", **{"class": "local.ports"}, message=f"there are {PORTS} ports")
        sys.exit(3)


def main() -> None:
    send(type="hello", protocol=1, version="scripted", pid=os.getpid())
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] in ("generate", "phase"):
            note(message)
        if message["type"] == "generate":
            refuse_shortage(message["connections"])
            there = 0 if SERVER == "refuses" else message["connections"]
            send(
                type="ready",
                at_ns=0,
                listen=None,
                requested=message["connections"],
                established=there,
                failed={} if there else {"ws.handshake": message["connections"]},
                address=message["addresses"][0] if there else None,
            )
        elif message["type"] == "phase":
            serve_phase(message)
        elif message["type"] == "speeds":
            send(type="speeds", from_ns=0, cpus=[])
        elif message["type"] == "stop":
            send(type="done", why="stopped")
            return


main()
