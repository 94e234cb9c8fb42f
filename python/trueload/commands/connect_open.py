"""``--connect-open``: the rate of a load is one of new connections, with one request on each."""

from __future__ import annotations

from dataclasses import replace

from trueload.commands.job import Workload
from trueload.commands.measure_options import SearchAxis
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
    refuse_beside(_FLAG, {"--scenario": workload.traffic.scenario}, _KEPT)
    engine.refuse_beside(_FLAG, "connect_rate_per_s", hint=_OF_KEPT)
    refuse_beside(_FLAG, {"--search connections": search == "connections"}, _SEARCHED)
    return LoadOptions(rate_per_s=rate).over(given)


def fail_on_form(workload: Workload) -> Form:
    """Return what ``--fail-on`` accepts: more percentiles where more is timed."""
    form = FAIL_ON if workload.traffic.stream is None else STREAMS_FAIL_ON
    if any(step.upgrade for step in workload.traffic.scenario):
        return replace(form, prefixes=(MESSAGE_GAP, DELIVERY))
    if workload.connect_open_per_s is None:
        return form
    handshakes = () if workload.traffic.tls is None else (FULL, RESUMED)
    return replace(form, prefixes=(*form.prefixes, CONNECT, FIRST_BYTE, *handshakes))
