"""The calibrated ceiling of this machine: our generator against our reference server.

How: both ends are engines, on one CPU each where there are two, over loopback. One closed loop runs
at depth 1 and one is pipelined. The generator cannot carry more than this ceiling, so a result near
it says more about the generator than about the server.

Must not know: who asks.
"""

from __future__ import annotations

from dataclasses import dataclass

from trueload.engines.engine import Engine, EngineError, await_listening
from trueload.errors import UserError
from trueload.protocol.plan import Duration, EngineOptions, Serve
from trueload.request.values import Request
from trueload.trial.run import run_trial
from trueload.trial.spec import Load, TrialSpec
from trueload.units import NS_PER_S

CONNECTIONS = 64  # enough that both ends always have work
DEPTH = 16  # the pipelining of the published plaintext tests
WINDOW = Duration(ns=NS_PER_S)
WARMUP = Duration(ns=NS_PER_S // 5)
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


def calibrate(cpus: tuple[int, ...]) -> Ceiling:
    """Measure the ceiling on these CPUs: the server on the first, the generator on the second.

    Takes about 3 s. Never raises: a failure is described in ``trouble``.
    """
    apart = len(cpus) > 1
    server_cpus, generator_cpus = (cpus[:1], cpus[1:2]) if apart else ((), ())
    try:
        with Engine.start() as server:
            server.send(Serve(listen="127.0.0.1:0", threads=1, cpus=server_cpus))
            address = await_listening(server, READY_S)
            rates = [_measure(address, generator_cpus, depth) for depth in (1, DEPTH)]
            server.stop()
    except (EngineError, UserError) as error:
        return Ceiling(None, None, apart, str(error))
    return Ceiling(rates[0], rates[1], apart, None)


def _measure(address: str, cpus: tuple[int, ...], depth: int) -> float:
    spec = TrialSpec(
        url=f"http://{address}/",
        addresses=(address,),
        request=Request(host=address),
        load=Load(connections=CONNECTIONS, pipeline=depth, stop=WINDOW, warmup=WARMUP),
        engine=EngineOptions(cpus=cpus),
    )
    record = run_trial(spec)
    rate = record.throughput.ok_per_s
    if not rate or record.counts.failed:
        raise EngineError("engine", "the reference server did not answer every request")
    return rate
