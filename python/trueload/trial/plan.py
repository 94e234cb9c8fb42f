"""The plan and the phases of a trial, from its specification. Pure but for data that is sent."""

from __future__ import annotations

from trueload.protocol.plan import Duration, Generate, LoadPlan, Phase, Requests
from trueload.request.plans import expect_plan, origin_plan, request_plan, target_plan, tls_plan
from trueload.request.steps import step_plan
from trueload.trial.spec import CLOSED, WARMUP, WINDOW, TrialSpec, warmup_load
from trueload.units import NS_PER_S

STEP_NS = NS_PER_S // 2  # how long a step of idle connections is held before memory is read


def make_plan(spec: TrialSpec, cpus: tuple[int, ...], *, is_here: bool = True) -> Generate:
    """Return the plan that is sent to the engine, with the headers that the request needs.

    ``is_here``: all engines are on this machine, and can read its files. Raises ``UserError`` if
    data must be sent to others, and cannot be read.
    """
    data = None if spec.data is None else spec.data.plan(is_here=is_here)
    columns, close = () if data is None else data.columns, spec.load.close
    request = None if spec.request is None else request_plan(spec.request, close, columns)
    return Generate(
        addresses=() if spec.origins else spec.addresses,
        origins=tuple(origin_plan(origin) for origin in spec.origins),
        local_addresses=spec.local_addresses,
        request=request,
        expect=expect_plan(spec.expect),
        targets=tuple(target_plan(target, close, columns) for target in spec.targets),
        scenario=tuple(step_plan(step) for step in spec.scenario),
        data=data,
        replay=None if spec.replay is None else spec.replay.plan(close=close),
        seed=spec.seed,
        connections=spec.load.connections,
        pipeline=spec.load.pipeline,
        close=close,
        connect_open=spec.load.connect_open,
        **spec.engine.with_cpus(cpus).model_dump(),
        connect_timeout_ns=spec.engine.timeout_ns,
        tls=None if spec.origins else tls_plan(spec.tls),
        exchange=None if spec.exchange is None else spec.exchange.plan(),
        http2=spec.http2,
        stream=spec.stream,
        follow=spec.follow,
    )


def make_phases(spec: TrialSpec) -> tuple[Phase | None, Phase]:
    """Return the warm-up, if there is one, and the window."""
    asked = spec.load
    idle = asked.most - asked.connections
    held = asked.most if asked.idle else None

    def phase(name: str, load: LoadPlan, stop: Duration | Requests) -> Phase:
        return Phase(id=name, load=load, connections=held, idle=idle, stop=stop, at_ns=None)

    window = phase(WINDOW, asked.pacing, asked.stop)
    if asked.warmup is None:
        return None, window
    return phase(WARMUP, warmup_load(asked.pacing, asked.warmup), asked.warmup), window


def make_step(spec: TrialSpec, idle: int) -> Phase:
    """Return a phase that sends nothing and holds ``idle`` connections beside the others."""
    held = spec.load.connections + idle
    stop = Duration(ns=STEP_NS)
    return Phase(id=f"{idle} idle", load=CLOSED, connections=held, idle=held, stop=stop, at_ns=None)
