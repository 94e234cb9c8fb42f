#!/usr/bin/env python3
"""An engine that follows a script and sends no load, to test how the front reacts to it.

Started as the engine's binary (by ``TRUELOAD_ENGINE``); ``SCRIPTED_ENGINE`` names the script. It
speaks the protocol by hand and does not use the front's models.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from waiting import be_late, hang

COUNTS: dict[str, Any] = {
    "scheduled": 0,
    "unsent": 0,
    "issued": 0,
    "ok": 0,
    "stale": 0,
    "cancelled": 0,
    "failed": {},
    "statuses": {},
}


# The core latency at each look: the host moves them once.
CORE_LATENCIES_NS = [90.0, 400.0]


# The CPU speeds to answer the next question with: those of the CPUs of the question before.
LOOKS: list[dict[str, Any]] = []


def look(cpu: int) -> dict[str, Any]:
    return {"cpu": cpu, "every_ns": 50_000_000, "work_ns": [10_000 + at for at in range(40)]}


def send(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def hello() -> None:
    send({"type": "hello", "protocol": 1, "version": "scripted", "pid": os.getpid()})


def receive(*wanted: str) -> dict[str, Any]:
    """Return the next line of one of these types.

    Meanwhile it answers questions about the clock, the core latency and the speeds of CPUs, and
    skips leases.
    """
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        if message["type"] in wanted:
            return message
        if message["type"] == "clock":
            send({"type": "clock", "id": message["id"], "at_ns": 0})
        if message["type"] == "distance":
            latency_ns = CORE_LATENCIES_NS.pop(0) if CORE_LATENCIES_NS else None
            send({"type": "distance", "cpus": message["cpus"], "ns": latency_ns})
        if message["type"] == "speeds":
            send({"type": "speeds", "from_ns": 0, "cpus": LOOKS})
            LOOKS[:] = [look(cpu) for cpu in message["cpus"]]
    sys.exit(0)


def ready(established: int, failed: dict[str, int]) -> None:
    plan = receive("generate")
    send(
        {
            "type": "ready",
            "at_ns": 0,
            "listen": None,
            "requested": plan["connections"],
            "established": established,
            "failed": failed,
            "address": plan["addresses"][0] if established else None,
        }
    )


def begin_window() -> None:
    """Send two ticks of a window: 90 requests ended well, 5 failed and 5 are open."""
    hello()
    ready(4, {})
    phase = receive("phase")
    send({"type": "phase_started", "id": phase["id"], "at_ns": 0})
    for number in (1, 2):
        counts = {
            **COUNTS,
            "scheduled": 50 * number,
            "issued": 50 * number,
            "ok": 45 * number,
            "failed": {"reset": 2 * number + number // 2},
            "statuses": {"200": 45 * number},
        }
        send(
            {
                "type": "tick",
                "at_ns": 600_000_000 * number,
                "id": phase["id"],
                "counts": counts,
                "latency": {"100": 45},
                "service": {},
                "open": 4,
                "bytes_in": 6_000 * number,
                "bytes_out": 3_000 * number,
                "busiest_ns": 400_000_000 * number,
            }
        )


def refuse() -> None:
    hello()
    receive("generate")
    send({"type": "error", "class": "plan", "message": "field `connections`: too many"})


def stay_silent() -> None:
    hang()


def speak_of_tomorrow() -> None:
    send({"type": "hello", "protocol": 999, "version": "2", "pid": 1})
    hang()


def die_at_once() -> None:
    sys.stderr.write("out of memory\n")
    sys.exit(7)


def die_in_the_window() -> None:
    begin_window()
    os.kill(os.getpid(), signal.SIGKILL)


def abort_without_memory() -> None:
    """Abort as Rust does when two threads run out of memory at once: their messages interleave."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stderr.write("memory allocation of memory allocation of 65536 bytes failed\n")
    sys.stderr.write("6 bytes failed\nAborted\n")
    sys.stderr.flush()
    os.abort()


def run_out_of_memory_at_once() -> None:
    abort_without_memory()


def run_out_of_memory() -> None:
    begin_window()
    abort_without_memory()


def serve_and_run_out_of_memory() -> None:
    hello()
    plan = receive("serve")
    send({"type": "ready", "at_ns": 0, "listen": plan["listen"], "requested": 0, "established": 0}
        | {"failed": {}, "address": None})  # fmt: skip
    abort_without_memory()


def abort_in_the_window() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    begin_window()
    sys.stderr.write("memory is fine\n")
    sys.stderr.flush()
    os.abort()


def fall_silent() -> None:
    begin_window()
    hang()


def talk_nonsense() -> None:
    begin_window()
    sys.stdout.write("\x1b[31mpanic: \x00 at line 3\n")
    sys.stdout.flush()
    hang()


def finished_window() -> dict[str, Any]:
    """Read the `phase_done` of a window from the examples."""
    examples = Path(__file__).resolve().parents[1] / "schema" / "examples" / "from-engine.jsonl"
    messages = map(json.loads, examples.read_text().splitlines())
    found: dict[str, Any] = next(
        each for each in messages if each["type"] == "phase_done" and each["id"] == "window"
    )
    return found


def measure() -> None:
    """Send a whole window as it should be."""
    begin_window()
    send(finished_window())
    receive("stop")
    send({"type": "done", "why": "finished"})


def measure_nonsense() -> None:
    """Send a window whose service histogram is broken."""
    begin_window()
    message = finished_window()
    message["measurement"]["histograms"]["service"] = "HISTFAAA"
    send(message)
    hang()


def warm_up_with_nonsense() -> None:
    """Send a warm-up with a broken histogram, which the front decodes late, and then die."""
    begin_window()
    message = {**finished_window(), "id": "warmup"}
    message["measurement"]["histograms"]["service"] = "HISTFAAA"
    send(message)
    os.kill(os.getpid(), signal.SIGKILL)


def fall_silent_at_the_end() -> None:
    """Send everything needed, then fall silent: the final core latency stays unknown."""
    begin_window()
    send(finished_window())
    hang()


def end_the_window() -> None:
    """Send a whole window as it should be, all at once."""
    begin_window()
    send({"type": "phase_stopped", "id": "window", "at_ns": 2_000_000_000})
    examples = Path(__file__).resolve().parents[1] / "schema" / "examples" / "from-engine.jsonl"
    for line in examples.read_text().splitlines():
        message = json.loads(line)
        if message["type"] == "phase_done" and message["id"] == "window":
            send(message)
    receive("stop")
    send({"type": "done", "why": "stopped"})


def talk_without_end() -> None:
    begin_window()
    while True:
        sys.stdout.write("x" * 65_536)


def close_stdout() -> None:
    begin_window()
    os.close(1)
    hang()


def end_by_itself() -> None:
    begin_window()
    send({"type": "done", "why": "signalled"})


def have_no_connection() -> None:
    hello()
    ready(0, {"connect.refused": 3, "connect.timeout": 1})
    receive("stop")
    send({"type": "done", "why": "stopped"})


def tick_for_ever() -> None:
    begin_window()
    phase_id = "window"
    threading.Thread(target=receive, args=("stop",), daemon=True).start()
    while True:
        send(
            {
                "type": "tick",
                "at_ns": 1_300_000_000,
                "id": phase_id,
                "counts": COUNTS,
                "latency": {},
                "service": {},
                "open": 4,
                "bytes_in": 0,
                "bytes_out": 0,
                "busiest_ns": 0,
            }
        )
        be_late(0.05)


def complain_and_go_on() -> None:
    begin_window()
    send({"type": "error", "class": "engine", "message": "thread 2 has ended"})
    send({"type": "done", "why": "finished"})


def never_be_ready() -> None:
    hello()
    hang()


if __name__ == "__main__":
    globals()[os.environ["SCRIPTED_ENGINE"]]()
