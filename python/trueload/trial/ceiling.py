"""What a machine can do by itself: our generator against our reference server, both there.

How: both ends are engines, over loopback. For the calibrated ceiling each has a CPU of its own
where there are two; one closed loop runs at depth 1 and one is pipelined. The generator cannot
carry more than this ceiling, so a result near it says more about the generator than about the
server. A slow open loop tells how late the machine lets it send.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from trueload.engines.engine import Engine, EngineError, await_listening
from trueload.errors import UserError
from trueload.interrupt import Interrupt
from trueload.machine.wakeups import WakeupLatency
from trueload.places import EngineHost, Place
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.plan import Duration, Serve
from trueload.record import figures
from trueload.record.schema import Record
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.trial.run import run_trial
from trueload.trial.spec import Load, TrialSpec, open_load
from trueload.units import NS_PER_S

CONNECTIONS = 64  # enough that both ends always have work
DEPTH = 16  # the pipelining of the published plaintext tests
WINDOW = Duration(ns=NS_PER_S)
WARMUP = Duration(ns=NS_PER_S // 5)
WAKEUPS_PER_S = 1000  # as ``machine.wakeups`` sleeps
READY_S = 5.0  # an engine listens within milliseconds


@dataclass(frozen=True)
class Ceiling:
    """The ceiling in requests per second, with one thread at each end.

    ``trouble`` says why there are no figures.
    """

    depth_1_per_s: float | None
    pipelined_per_s: float | None
    apart: bool
    trouble: str | None


def calibrate(
    cpus: tuple[int, ...], place: Place | None = None, interrupt: Interrupt | None = None
) -> Ceiling:
    """Measure the ceiling on these CPUs: the server on the first, the generator on the second.

    Both run here unless a place is given. Takes about 3 s. Never raises: a failure is described in
    ``trouble``.
    """
    apart = len(cpus) > 1
    server_cpus, generator_cpus = (cpus[:1], cpus[1:2]) if apart else ((), ())
    try:
        with _serving(place, server_cpus) as address:
            rates = [
                _rate(_measure(address, _depth(depth), place, generator_cpus, interrupt))
                for depth in (1, DEPTH)
            ]
    except (EngineError, UserError) as error:
        return Ceiling(None, None, apart, str(error))
    return Ceiling(rates[0], rates[1], apart, None)


def measure_lateness(
    place: Place, watch_s: float, interrupt: Interrupt | None = None
) -> WakeupLatency | None:
    """Return how late an open loop sends at a place if it only has to wake once a millisecond; None
    if it sent nothing. Raises ``EngineError`` and ``UserError``."""
    window = Duration(ns=round(watch_s * NS_PER_S))
    pacing = open_load(WAKEUPS_PER_S, window)
    load = Load(connections=CONNECTIONS, pacing=pacing, stop=window, warmup=WARMUP)
    with _serving(place, ()) as address:
        record = _measure(address, load, place, (), interrupt)
    sent = figures.complete(record.histograms.send_lag)
    p99, p999 = sent.percentile(0.99).value, sent.percentile(0.999).value
    return None if p99 is None or p999 is None else WakeupLatency(sent.count, p99, p999)


@contextlib.contextmanager
def _serving(place: Place | None, cpus: tuple[int, ...]) -> Iterator[str]:
    """Run a reference server, and yield its address."""
    with Engine.start(place) as server:
        server.send(Serve(listen="127.0.0.1:0", threads=1, cpus=cpus))
        yield await_listening(server, READY_S)
        server.stop()


def _depth(depth: int) -> Load:
    return Load(connections=CONNECTIONS, pipeline=depth, stop=WINDOW, warmup=WARMUP)


def _measure(
    address: str,
    load: Load,
    place: Place | None,
    cpus: tuple[int, ...],
    interrupt: Interrupt | None,
) -> Record:
    spec = TrialSpec(
        url=f"http://{address}/",
        addresses=(address,),
        traffic=Traffic(request=Request(host=address)),
        load=load,
        engine=EngineOptions(cpus=cpus),
        hosts=() if place is None else (EngineHost(place),),
    )
    record = run_trial(spec, interrupt=interrupt)
    if record.trouble is not None:
        raise EngineError(record.trouble.kind, record.trouble.what)
    return record


def _rate(record: Record) -> float:
    rate = record.throughput.ok_per_s
    if not rate or record.counts.failed:
        raise EngineError("engine", "the reference server did not answer every request")
    return rate
