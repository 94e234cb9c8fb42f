"""Which other flags a scenario can be combined with."""

from __future__ import annotations

from collections.abc import Sequence

from trueload.errors import UserError
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.option import refuse_beside
from trueload.protocol.plan import Requests
from trueload.request.steps import StepSpec
from trueload.trial.spec import Load
from trueload.units import format_span

STEPS_HAVE = "each step of the scenario has its own"
"""Why the flags of a single request are refused beside a scenario."""
ONE_EACH = "a virtual user sends one request at a time: use more users, as with -c 64"
"""Why several streams are."""


def check_scenario(steps: Sequence[StepSpec], load: Load, engine: EngineOptions) -> None:
    """Refuse what cannot be combined with sessions, and pauses that are too long. Raises
    ``UserError``."""
    if not steps:
        return
    hint = "a virtual user keeps its connection, and sends one request at a time"
    others = {"--close": load.close, "--pipeline": load.pipeline > 1}
    refuse_beside("--scenario", others, hint)
    if isinstance(load.stop, Requests) and load.warmup is not None:
        raise UserError(
            "--warmup excludes --requests with --scenario: sessions of it would go on behind it",
            "leave --warmup out, or say how long, as with -d 30s",
        )
    for step in steps:
        if step.messages is not None and step.messages.endless:
            more = f"step {step.name!r} goes on until the load ends: say how long, as with -d 30s"
            refuse_beside("--requests", {"--scenario": isinstance(load.stop, Requests)}, more)
        if step.think_ns[1] > engine.timeout_ns:
            pause, timeout = format_span(step.think_ns[1]), format_span(engine.timeout_ns)
            raise UserError(
                f"step {step.name!r} pauses for {pause}, which is longer than the timeout",
                f"shorten it, or raise --timeout {timeout}",
            )
