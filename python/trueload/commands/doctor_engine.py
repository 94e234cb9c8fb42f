"""What the doctor asks the engine of this machine: its version, and how far apart two CPUs are.

How: the engine is told everything at once, and its lines are read without the models of messages,
whose import takes as long as all the rest of a quick look. If it does anything unexpected, it is
asked again like that of another host, which says what is wrong.
"""

from __future__ import annotations

import contextlib
import json
import subprocess

from trueload.commands.doctor import CPUS_MIN
from trueload.engines.binary import find_engine
from trueload.errors import UserError
from trueload.protocol import PROTOCOL

HERE_S = 2.0  # the engine needs some 10 ms
_UNEXPECTED = (OSError, subprocess.SubprocessError, LookupError, TypeError, ValueError)


def look_here(cpus: tuple[int, ...]) -> tuple[str, tuple[float, ...]]:
    """Return the engine's version and the core latency of the first two of these CPUs, in ns; empty
    if it cannot be measured. Raises ``UserError``."""
    question = json.dumps({"type": "distance", "cpus": cpus[:CPUS_MIN]}) + "\n"
    with contextlib.suppress(*_UNEXPECTED):
        told = subprocess.run(
            [find_engine()],
            input=question if len(cpus) >= CPUS_MIN else "",
            capture_output=True,
            encoding="utf-8",
            timeout=HERE_S,
            check=True,
            process_group=0,  # Ctrl-C is for the front
        )
        hello, *answers, _ = map(json.loads, told.stdout.splitlines())
        if (hello["type"], hello["protocol"]) == ("hello", PROTOCOL):
            latencies_ns = [answer["ns"] for answer in answers]
            return hello["version"], tuple(ns for ns in latencies_ns if ns is not None)
    from trueload.commands.doctor_hosts import look
    from trueload.engines.engine import EngineError
    from trueload.places.local import LocalPlace

    try:
        found = look(LocalPlace(), cpus)
    except EngineError as error:
        raise UserError(str(error), "") from error
    return found.version, found.core_latencies_ns
