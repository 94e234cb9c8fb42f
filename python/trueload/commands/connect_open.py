"""``--connect-open``: the rate of a load is one of new connections, with one request on each."""

from __future__ import annotations

from dataclasses import replace

from trueload.commands.job import Workload
from trueload.commands.measure_options import SearchAxis
from trueload.errors import UserError
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.load_options import LoadOptions
from trueload.record.accounts.openings import CONNECT, FIRST_BYTE, FULL, RESUMED
from trueload.record.thresholds import FAIL_ON, STREAMS_FAIL_ON, Form

_ONE_EACH = "a new connection carries one request, and is then closed"


def by_connections(
    workload: Workload, given: LoadOptions, engine: EngineOptions, search: SearchAxis | None
) -> LoadOptions:
    """Return the load with the rate of ``--connect-open``, if that was given. Raises ``UserError``
    for options that it excludes."""
    rate = workload.connect_open_per_s
    if rate is None:
        return given
    excluded = (
        ("--rate", given.gave("rate_per_s"), "it is the rate of requests, too: leave --rate out"),
        ("--stages", given.gave("stages"), "keep one of them"),
        ("--idle", given.gave("idle"), "keep one of them"),
        ("--pipeline", given.pipeline > 1, _ONE_EACH),
        ("--streams", (workload.streams or 1) > 1, _ONE_EACH),
        (
            "--scenario",
            bool(workload.traffic.scenario),
            "a virtual user keeps its connection: use --rate",
        ),
        (
            "--connect-rate",
            engine.gave("connect_rate_per_s"),
            "--connect-rate is for connections that are kept: leave it out",
        ),
        (
            "--search connections",
            search == "connections",
            "--limit alone searches for the largest rate of new connections",
        ),
    )
    for other, is_given, hint in excluded:
        if is_given:
            raise UserError(f"--connect-open and {other} cannot be used together", hint)
    return LoadOptions(rate_per_s=rate).over(given)


def fail_on_form(workload: Workload) -> Form:
    """Return what ``--fail-on`` accepts: more percentiles where more is timed."""
    form = FAIL_ON if workload.traffic.stream is None else STREAMS_FAIL_ON
    if workload.connect_open_per_s is None:
        return form
    handshakes = () if workload.traffic.tls is None else (FULL, RESUMED)
    return replace(form, prefixes=(*form.prefixes, CONNECT, FIRST_BYTE, *handshakes))
