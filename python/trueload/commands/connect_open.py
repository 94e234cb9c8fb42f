"""``--connect-open``: the rate of a load is one of new connections, with one request, or one
conversation, on each."""

from __future__ import annotations

from dataclasses import replace

from trueload.commands.job import Workload
from trueload.commands.measure_options import SearchAxis
from trueload.errors import UserError
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.load_options import LoadOptions
from trueload.protocol.option import refuse_beside
from trueload.record.accounts.messages import DELIVERY, MESSAGE_GAP
from trueload.record.accounts.openings import CONNECT, FIRST_BYTE, FULL, RESUMED
from trueload.record.thresholds import FAIL_ON, STREAMS_FAIL_ON, Form

_FLAG = "--connect-open"
_SAME_RATE = "it is the rate of requests, too: leave --rate out"
_ONE_EACH = "a new connection carries one request, and is then closed"
_KEPT = "a virtual user keeps its connection: use --rate"
_OF_KEPT = "--connect-rate is for connections that are kept: leave it out"
_SEARCHED = "--limit alone searches for the largest rate of new connections"


def by_connections(
    workload: Workload, given: LoadOptions, engine: EngineOptions, search: SearchAxis | None
) -> LoadOptions:
    """Return the load with the rate of ``--connect-open``, if that was given. Raises ``UserError``
    for options that it excludes."""
    rate = workload.connect_open_per_s
    if rate is None:
        return given
    given.refuse_beside(_FLAG, "rate_per_s", hint=_SAME_RATE)
    given.refuse_beside(_FLAG, "stages", "idle")
    several = {"--pipeline": given.pipeline > 1, "--streams": (workload.streams or 1) > 1}
    refuse_beside(_FLAG, several, _ONE_EACH)
    _check_sessions(workload)
    engine.refuse_beside(_FLAG, "connect_rate_per_s", hint=_OF_KEPT)
    refuse_beside(_FLAG, {"--search connections": search == "connections"}, _SEARCHED)
    return LoadOptions(rate_per_s=rate).over(given)


def _is_conversation(workload: Workload) -> bool:
    return any(step.upgrade for step in workload.traffic.scenario)


def _check_sessions(workload: Workload) -> None:
    """Refuse virtual users that keep their connections, and a pause before one is opened."""
    steps = workload.traffic.scenario
    refuse_beside(_FLAG, {"--scenario": steps and not _is_conversation(workload)}, _KEPT)
    if steps and not steps[0].upgrade:
        # A server may close the connection of a request, and the session would need another one.
        raise UserError(
            f"{_FLAG} opens one connection for each conversation, and step {steps[0].name!r} is a"
            " request before it",
            "use --rate, or leave the requests out",
        )
    if steps and steps[0].think_ns[1] > 0:
        raise UserError(
            f"step {steps[0].name!r} pauses before it, and {_FLAG} sends it at once",
            "leave its 'think' out",
        )


def fail_on_form(workload: Workload) -> Form:
    """Return what ``--fail-on`` accepts: more percentiles where more is timed."""
    form = FAIL_ON if workload.traffic.stream is None else STREAMS_FAIL_ON
    if _is_conversation(workload):
        form = replace(form, prefixes=(MESSAGE_GAP, DELIVERY))
    if workload.connect_open_per_s is None:
        return form
    handshakes = () if workload.traffic.tls is None else (FULL, RESUMED)
    return replace(form, prefixes=(*form.prefixes, CONNECT, FIRST_BYTE, *handshakes))
