"""``--connect-open``: the rate of a load is one of new connections, with one request on each.

Must not know: how a connection is opened, or how its steps are timed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from trueload.commands.job import Asked
from trueload.commands.options import SearchAxis, option_parser
from trueload.errors import UserError
from trueload.protocol.load_options import LoadOptions, positive_rate
from trueload.protocol.plan import EngineOptions
from trueload.record.figures import CONNECT, FIRST_BYTE, FULL, RESUMED
from trueload.record.thresholds import FAIL_ON, STREAMS_FAIL_ON, Form

ConnectOpenOption = Annotated[
    float | None,
    typer.Option(
        "--connect-open",
        metavar="RATE",
        parser=option_parser(positive_rate),
        help=(
            "Open new connections at this rate, such as 5k/s, whether or not earlier ones are done"
            " (an open loop). Each carries one request. Connect, TLS handshake and answer are timed"
            " from the schedule; -c is how many may be open at once."
        ),
    ),
]

_ONE_EACH = "a new connection carries one request, and is then closed"


def by_connections(
    asked: Asked, given: LoadOptions, engine: EngineOptions, search: SearchAxis | None
) -> LoadOptions:
    """Return the load with the rate of ``--connect-open``, if that was given.

    Raises ``UserError`` for options that it excludes.
    """
    rate = asked.connect_open_per_s
    if rate is None:
        return given
    excluded = (
        ("--rate", given.gave("rate_per_s"), "it is the rate of requests, too: leave --rate out"),
        ("--stages", given.gave("stages"), "keep one of them"),
        ("--idle", given.gave("idle"), "keep one of them"),
        ("--pipeline", given.pipeline > 1, _ONE_EACH),
        ("--streams", (asked.streams or 1) > 1, _ONE_EACH),
        ("--scenario", bool(asked.scenario), "a virtual user keeps its connection: use --rate"),
        (
            "--connect-rate",
            "connect_rate_per_s" in engine.model_fields_set,
            "--connect-rate is for connections that are kept: leave it out",
        ),
        (
            "--search connections",
            search is SearchAxis.CONNECTIONS,
            "--limit alone searches for the largest rate of new connections",
        ),
    )
    for other, is_given, hint in excluded:
        if is_given:
            raise UserError(f"--connect-open and {other} exclude each other", hint)
    return given.model_copy(update={"rate_per_s": rate})


def fail_on_form(asked: Asked) -> Form:
    """Return what ``--fail-on`` accepts: more percentiles where more is timed."""
    form = FAIL_ON if asked.stream is None else STREAMS_FAIL_ON
    if asked.connect_open_per_s is None:
        return form
    handshakes = () if asked.tls is None else (FULL, RESUMED)
    return replace(form, prefixes=(*form.prefixes, CONNECT, FIRST_BYTE, *handshakes))
