"""What the doctor asks an engine: its version, and how far apart two CPUs of its host are.

How: the engine of this machine is told everything at once, and its lines are read without the
models of messages, whose import takes as long as all the rest of a quick look. If it does anything
unexpected, it is asked again like that of a host, which says what is wrong.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from typing import NamedTuple

from trueload.commands.doctor import CPUS_MIN
from trueload.engines.binary import find_engine
from trueload.errors import UserError
from trueload.places import Place
from trueload.protocol import PROTOCOL

HERE_S = 2.0  # the engine needs some 10 ms
_UNEXPECTED = (OSError, subprocess.SubprocessError, LookupError, TypeError, ValueError)


class EngineFacts(NamedTuple):
    """What an engine says of itself and its host. The core latency is that of the first two CPUs,
    in ns; empty if it cannot be measured."""

    version: str
    cpus: tuple[int, ...]
    core_latencies_ns: tuple[float, ...]


def look_here(cpus: tuple[int, ...]) -> EngineFacts:
    """Ask the engine of this machine, which has these CPUs. Raises ``UserError``."""
    with contextlib.suppress(*_UNEXPECTED):
        return _read(cpus, _told(cpus))
    from trueload.engines.engine import EngineError
    from trueload.places.local import LocalPlace

    try:
        return look(LocalPlace(), cpus)
    except EngineError as error:
        raise UserError(str(error), "") from error


def _told(cpus: tuple[int, ...]) -> bytes:
    """Return what the engine writes until it ends, as it does when it hears no more."""
    question = json.dumps({"type": "distance", "cpus": cpus[:CPUS_MIN]}).encode() + b"\n"
    return subprocess.run(
        [find_engine()],
        input=question if len(cpus) >= CPUS_MIN else b"",
        capture_output=True,
        timeout=HERE_S,
        check=True,
        process_group=0,  # Ctrl-C is for the front
    ).stdout


def _read(cpus: tuple[int, ...], told: bytes) -> EngineFacts:
    """Raises one of ``_UNEXPECTED`` for what an engine of this version does not say."""
    hello, *answers, _ = (json.loads(line) for line in told.splitlines())
    if (hello["type"], hello["protocol"]) != ("hello", PROTOCOL):
        raise ValueError(hello)
    latencies_ns = [answer["ns"] for answer in answers]
    return EngineFacts(hello["version"], cpus, tuple(ns for ns in latencies_ns if ns is not None))


def look(place: Place, cpus: tuple[int, ...]) -> EngineFacts:
    """Ask the engine of a host with these CPUs, or with all that it has if they are not known.
    Raises ``EngineError``, ``UserError``."""
    from trueload.engines.engine import Engine, ask_core_latency

    with Engine.start(place) as engine:
        cpus = cpus or tuple(range(engine.hello.machine.cpu_count))
        two = len(cpus) >= CPUS_MIN
        latency_ns = ask_core_latency(engine, (cpus[0], cpus[1])) if two else None
        return EngineFacts(engine.hello.version, cpus, () if latency_ns is None else (latency_ns,))
