"""The plan and the phases of a trial, from its specification. Pure but for data that is sent."""

from __future__ import annotations

from trueload.protocol.plan import Duration, Generate, LoadPlan, Phase, Requests
from trueload.trial.request_log import ROWS_MOST
from trueload.trial.spec import CLOSED, WARMUP, WINDOW, TrialSpec, warmup_load
from trueload.units import NS_PER_S

STEP_NS = NS_PER_S // 2  # how long a step of idle connections is held before memory is read


def make_plan(spec: TrialSpec, cpus: tuple[int, ...], *, is_here: bool = True) -> Generate:
    """Return the plan that is sent to the engine; ``is_here`` is as in ``Traffic.plan``. Raises
    ``UserError``."""
    return Generate(
        **dict(spec.traffic.plan(close=spec.load.close, is_here=is_here)),
        **{**spec.engine.values, "cpus": cpus},
        addresses=() if spec.traffic.origins else spec.addresses,
        seed=spec.seed,
        connections=spec.load.connections,
        pipeline=spec.load.pipeline,
        close=spec.load.close,
        connect_open=spec.load.connect_open,
    )


def make_phases(spec: TrialSpec) -> tuple[Phase | None, Phase]:
    """Return the warm-up, if there is one, and the window."""
    asked = spec.load
    idle = asked.most - asked.connections
    held = asked.most if asked.idle else None

    def phase(name: str, load: LoadPlan, stop: Duration | Requests) -> Phase:
        return Phase(id=name, load=load, connections=held, idle=idle, stop=stop, at_ns=None)

    window = phase(WINDOW, asked.pacing, asked.stop)
    if spec.request_log is not None:
        window = window.model_copy(update={"log_rows": ROWS_MOST // max(1, len(spec.hosts))})
    if asked.warmup is None:
        return None, window
    return phase(WARMUP, warmup_load(asked.pacing, asked.warmup), asked.warmup), window


def make_step(spec: TrialSpec, idle: int) -> Phase:
    """Return a phase that sends nothing and holds ``idle`` connections beside the others."""
    held = spec.load.connections + idle
    stop = Duration(ns=STEP_NS)
    return Phase(id=f"{idle} idle", load=CLOSED, connections=held, idle=held, stop=stop, at_ns=None)
