"""Gathers the facts of other hosts for the doctor.

How: a small script prints what the kernel of each host tells, and the engine, which is sent there
as for a run, measures the rest. All hosts are watched at the same time, and only then loaded.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from trueload import __version__
from trueload.commands.doctor import CPUS_MIN, EngineFound, Facts
from trueload.deadline import looks
from trueload.engines.engine import Engine, EngineError, ask_core_latency
from trueload.errors import UserError
from trueload.interrupt import Interrupt
from trueload.machine.remote import SCRIPT, ScriptOutput, machine_of, parse_printed
from trueload.places import ChannelClosedError, Place

LOOK_S = 0.2
PRINT_S = 30.0  # on a slow host, besides the time that it watches

Found = TypeVar("Found")


def gather_there(places: Sequence[Place], watch_s: float, *, quick: bool) -> list[Facts]:
    """Gather every fact about these hosts, in some 9 seconds, or 3 if ``quick``. Raises
    ``UserError`` if one of them does not describe itself. If an engine fails on one, or one is
    lost later, that is among its facts."""
    interrupt = Interrupt()  # no signal reaches the threads
    with tempfile.TemporaryDirectory(prefix="trueload-") as folder:
        script = Path(folder, "trueload-facts")
        script.write_text(SCRIPT)
        script.chmod(0o755)
        printed = _at_once(interrupt, partial(_watch, script, watch_s, interrupt), places)
    return _at_once(interrupt, partial(_measure, watch_s, quick, interrupt), places, printed)


def _at_once(
    interrupt: Interrupt, look: Callable[..., Found], *hosts: Sequence[Any]
) -> list[Found]:
    """Call ``look`` for all hosts at the same time; once that fails for one, call off the rest."""
    with ThreadPoolExecutor(max(1, len(hosts[0])), "doctor") as pool:
        try:
            return list(pool.map(look, *hosts))
        except BaseException:
            interrupt.request()
            raise


def _watch(script: Path, watch_s: float, interrupt: Interrupt, place: Place) -> ScriptOutput:
    """Run the script on a host. Raises ``UserError``."""
    channel = place.open([str(script), f"{watch_s:g}"])
    lines: list[str] = []
    why = f"it takes more than {watch_s + PRINT_S:g} s"
    try:
        for left_s in looks(time.monotonic() + watch_s + PRINT_S):
            if interrupt.requested:
                break
            line = channel.read_line(min(left_s, LOOK_S))
            lines += [] if line is None else [line.decode(errors="replace")]
    except ChannelClosedError as error:
        why = channel.log_tail().strip() or str(error)
    finally:
        channel.kill()
    printed = parse_printed(lines)
    if not printed.is_whole:
        raise UserError(
            f"{place.name} does not describe itself: {why.splitlines()[-1]}",
            "it must stay reachable, and its shell must have cat and sleep",
        )
    return printed


def _measure(
    watch_s: float, quick: bool, interrupt: Interrupt, place: Place, printed: ScriptOutput
) -> Facts:
    """Let the engine measure a host that was watched."""
    from trueload.trial.ceiling import calibrate, measure_lateness

    path = f"as sent to {place.name}"
    cpus, latencies_ns, lateness, ceiling = printed.cpus(), tuple[float, ...](), None, None
    try:
        version, cpus, latencies_ns = look(place, cpus)
        lateness = measure_lateness(place, watch_s, interrupt)
        ceiling = None if quick else calibrate(cpus, place, interrupt)
        latencies_ns += look(place, cpus).core_latencies_ns
        engine = EngineFound(path, version, None)
    except (EngineError, UserError) as error:
        engine = EngineFound(path, None, str(error))
    can_pin = True if latencies_ns else None
    return Facts(
        machine=machine_of(printed, cpus, can_pin=can_pin, wakeups=lateness),
        engine=engine,
        front_version=__version__,
        skipped=None,
        subjects=0,
        ceiling=ceiling,
        core_latencies_ns=latencies_ns,
        is_here=False,
    )


class EngineFacts(NamedTuple):
    """What an engine says of itself and its host. The core latency is that of the first two CPUs,
    in ns; empty if it cannot be measured."""

    version: str
    cpus: tuple[int, ...]
    core_latencies_ns: tuple[float, ...]


def look(place: Place, cpus: tuple[int, ...]) -> EngineFacts:
    """Ask the engine of a host with these CPUs, or with all that it has if they are not known.
    Raises ``EngineError``, ``UserError``."""
    with Engine.start(place) as engine:
        cpus = cpus or tuple(range(engine.hello.machine.cpu_count))
        two = len(cpus) >= CPUS_MIN
        latency_ns = ask_core_latency(engine, (cpus[0], cpus[1])) if two else None
        return EngineFacts(engine.hello.version, cpus, () if latency_ns is None else (latency_ns,))
