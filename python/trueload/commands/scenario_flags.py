"""Which other flags a scenario can be combined with."""

from __future__ import annotations

from collections.abc import Sequence

from trueload.errors import UserError
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.plan import Requests
from trueload.request.steps import StepSpec
from trueload.trial.spec import Load
from trueload.units import format_span

STEPS_HAVE = "each step of the scenario has its own"
"""Why the flags of a single request are refused beside a scenario."""


def check_streams(streams: int | None) -> None:
    """Refuse several streams for a virtual user. Raises ``UserError``."""
    if (streams or 1) > 1:
        hint = "a virtual user sends one request at a time: use more users, as with -c 64"
        raise UserError("--scenario and --streams cannot be used together", hint)


def check_scenario(steps: Sequence[StepSpec], load: Load, engine: EngineOptions) -> None:
    """Refuse what cannot be combined with sessions, and pauses that are too long. Raises
    ``UserError``."""
    if not steps:
        return
    if load.close or load.pipeline > 1:
        flag = "--close" if load.close else "--pipeline"
        hint = "a virtual user keeps its connection, and sends one request at a time"
        raise UserError(f"--scenario and {flag} cannot be used together", hint)
    if isinstance(load.stop, Requests) and load.warmup is not None:
        raise UserError(
            "--warmup excludes --requests with --scenario: sessions of it would go on behind it",
            "leave --warmup out, or say how long, as with -d 30s",
        )
    for step in steps:
        if step.think_ns[1] > engine.timeout_ns:
            pause, timeout = format_span(step.think_ns[1]), format_span(engine.timeout_ns)
            raise UserError(
                f"step {step.name!r} pauses for {pause}, which is longer than the timeout",
                f"shorten it, or raise --timeout {timeout}",
            )
