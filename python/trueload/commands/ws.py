"""The options of ``trueload ws``, as a job.

The two modes share how a connection is opened. An echo has the options of any load, and a broadcast
those of its steps; an option of the other mode is refused.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueload.commands.declarations import reader_of, with_options
from trueload.commands.flags import with_flags_of, with_read
from trueload.commands.measure_options import BroadcastOptions, WsLimitOptions
from trueload.commands.measuring import measuring
from trueload.commands.options import check_one_stdout, check_result_files, read_metrics
from trueload.commands.place_options import (
    check_all_at_start,
    check_local_addresses,
    check_pinned,
    read_placement,
)
from trueload.errors import UserError
from trueload.metrics.options import MetricsOptions
from trueload.places.names import Placement
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.option import flag_of, refuse_beside
from trueload.protocol.request_options import (
    ConnectOpenOptions,
    ModeOptions,
    RowOptions,
    TlsOptions,
    UpgradeOptions,
    WsBroadcastOptions,
    WsEchoOptions,
    WsMode,
)
from trueload.protocol.shootout import Dialect

if TYPE_CHECKING:
    from trueload.commands.job import Job, Workload
    from trueload.request.values import Request

STEP = 1_000
CONCURRENT = 4
SAMPLES = 100
PADDING_BYTES = 200
LIMIT_ASKED, LIMIT_PUBLISHED = "p95<500ms", "receipt_p95<500ms"
# Each client that joins needs a handshake, and often a subscription.
JOINING = EngineOptions(connect_rate_per_s=1_000)

# Headers of a handshake that the engine sets, or that have an option.
_OWN_HEADERS = {
    "sec-websocket-key": "leave it out",
    "sec-websocket-version": "leave it out",
    "sec-websocket-extensions": "use --deflate",
    "sec-websocket-protocol": "use --subprotocol",
}


@dataclass(frozen=True)
class WsOpening:
    """The opening of connections. ``workload`` has no exchange yet."""

    workload: Workload
    request: Request
    dialect: Dialect | None


UrlArgument = Annotated[
    str,
    typer.Argument(
        metavar="URL",
        help="URL to load: ws://HOST[:PORT]/PATH, or the same with wss://.",
        show_default=False,
    ),
]


def read_opening(url: str, given: UpgradeOptions) -> WsOpening:
    """Return where to connect, and how. Raises ``UserError``."""
    from trueload.commands.job import Workload
    from trueload.commands.request_flags import read_identity
    from trueload.request.environment import environment_of
    from trueload.request.make import make_request
    from trueload.request.redact import redact_url
    from trueload.request.route import make_route
    from trueload.request.tls import make_tls
    from trueload.request.traffic import Traffic
    from trueload.request.url import WS, parse_given_url

    given = UpgradeOptions(**{**given.given, **read_identity(given)})
    endpoint, dialect = parse_given_url(url, WS), given.dialect
    headers = _headers(given.header, given.origin, _protocols(given.subprotocol, dialect))
    request = make_request(endpoint, method="GET", headers=headers, user=given.user, body=None)
    environment_of([request], os.environ)
    workload = Workload(
        kind="ws",
        url=redact_url(endpoint.url),
        endpoint=endpoint,
        route=make_route(given, given.unix),
        traffic=Traffic(
            local_addresses=given.local_address, tls=make_tls(endpoint, given.only(TlsOptions))
        ),
    )
    return WsOpening(workload, request, dialect)


def _protocols(given: Sequence[str], dialect: Dialect | None) -> Sequence[str]:
    """Return the subprotocols asked for, else that of the dialect, if it has one."""
    from trueload.protocol.shootout import SUBPROTOCOLS
    from trueload.request.make import is_token

    if not given and dialect in SUBPROTOCOLS:
        return (SUBPROTOCOLS[dialect],)
    for name in given:
        if not is_token(name):  # RFC 6455, section 4.1
            raise UserError(f"--subprotocol {name!r} is not a name", "write for example chat.v1")
    return given


def _headers(given: Sequence[str], origin: str | None, protocols: Sequence[str]) -> list[str]:
    names = {line.partition(":")[0].strip().lower() for line in given}
    for name, hint in _OWN_HEADERS.items():
        if name in names:
            raise UserError(f"trueload sets {name} itself", hint)
    refuse_beside("--origin", {"a header Origin": origin is not None and "origin" in names})
    lines = list(given)
    lines += [] if origin is None else [f"Origin: {origin}"]
    lines += [f"Sec-WebSocket-Protocol: {', '.join(protocols)}"] if protocols else []
    return lines


@with_options(WsEchoOptions)
def read_echo(url: UrlArgument, given: WsEchoOptions) -> Workload:
    """Return what is to be sent, and where to. Raises ``UserError``."""
    from trueload.request.exchange import WsEcho
    from trueload.request.message import make_messages

    opened = read_opening(url, given)
    if given.deflate:
        given.refuse_beside("--deflate", "dialect", hint="only plain echoes are compressed")
    if given.scenario is not None:
        return _read_conversation(opened, given, given.scenario)
    alone = given.only(RowOptions).given or given.only(ConnectOpenOptions).given
    if alone:
        flag = flag_of(next(iter(alone)))
        raise UserError(f"{flag} is given, but no --scenario", "add --scenario FILE")
    if given.text is not None:
        flag = "--text" if given.text else "--binary"
        hint = "a dialect says what kind its messages are"
        refuse_beside(flag, {"--dialect": opened.dialect is not None}, hint)
    as_text = given.text is not False
    exchange = WsEcho(
        opening=opened.request,
        messages=make_messages(given.size, given.data, text=as_text),
        text=as_text and opened.dialect != "binary",
        dialect=opened.dialect,
    )
    traffic = replace(opened.workload.traffic, exchange=exchange, deflate=given.deflate)
    return replace(opened.workload, traffic=traffic)


def _read_conversation(opened: WsOpening, given: WsEchoOptions, path: Path) -> Workload:
    """Return the conversation of a file, and where to have it. Raises ``UserError``."""
    from trueload.commands.request_flags import read_rows
    from trueload.request.conversation import read_conversation
    from trueload.request.scenario import ScenarioFlags
    from trueload.request.url import parse_given_url

    hint = "each step of the scenario has its own message"
    given.refuse_beside("--scenario", "size", "text", "dialect", hint=hint)
    # Requests before the upgrade go to the same server.
    base = parse_given_url("http" + opened.workload.endpoint.url.removeprefix("ws"))
    beside = ScenarioFlags(base=base, data=given.data)
    found = read_conversation(path, beside, opened.request)
    traffic = replace(
        opened.workload.traffic,
        scenario=found.steps,
        data=read_rows(given.data, given.data_order, (), found.steps),
        ignore_unexpected=found.ignore_unexpected,
        replies=found.replies,
        deflate=given.deflate,
    )
    return replace(opened.workload, traffic=traffic, connect_open_per_s=given.connect_open_per_s)


read_echo_job = measuring(read_echo)


@with_read(
    given=reader_of(BroadcastOptions),
    of_steps=reader_of(WsBroadcastOptions),
    # A step runs on one thread, and each client has one message in flight.
    engine=reader_of(EngineOptions, without=("threads", "refill")),
    placement=read_placement,
    metrics=read_metrics,
)
def read_broadcast_job(
    url: UrlArgument,
    given: BroadcastOptions,
    of_steps: WsBroadcastOptions,
    engine: EngineOptions,
    placement: Placement,
    metrics: MetricsOptions,
) -> Job:
    """Read the options and check them as a whole; nothing has been sent."""
    from trueload.commands.host_duration import check_dry_run
    from trueload.commands.job import Job
    from trueload.commands.weights import check_weights
    from trueload.protocol.plan import Requests, Turns
    from trueload.record.thresholds import CLIENTS_FAIL_ON, CLIENTS_LIMIT, parse_condition
    from trueload.request.exchange import WsBroadcast
    from trueload.search.execute import SearchPlan, make_clients
    from trueload.trial.spec import Load, TrialSpec

    check_dry_run(given.dry_run, placement)
    check_all_at_start(placement, "a broadcast")
    check_pinned(engine, placement)
    check_weights(placement, broadcast=True)
    opened = read_opening(url, of_steps)
    workload = opened.workload
    check_one_stdout(given.json_path, given.format)
    check_result_files(given.output, saved=not given.no_save)
    default_limit = LIMIT_PUBLISHED if given.format == "shootout" else LIMIT_ASKED
    grows_by, messages = of_steps.step or STEP, of_steps.samples or SAMPLES
    plan = SearchPlan(
        axis="clients",
        limit=parse_condition(given.limit or default_limit, CLIENTS_LIMIT),
        bounds=make_clients(of_steps.initial_clients or grows_by, grows_by, of_steps.steps),
        step_ns=None,
        samples=messages,
        stop_on_loss=of_steps.stop_on_loss,
    )
    padding = PADDING_BYTES if of_steps.padding is None else of_steps.padding
    dialect = opened.dialect or "json"
    spec = TrialSpec(
        url=workload.url,
        addresses=(),  # resolved last: with a mistake in any flag no name is looked up
        traffic=replace(
            workload.traffic,
            exchange=WsBroadcast(opening=opened.request, dialect=dialect, padding=padding),
            local_addresses=check_local_addresses(workload.traffic.local_addresses, placement),
        ),
        load=Load(
            connections=int(plan.bounds.start),
            pacing=Turns(concurrent=of_steps.concurrent or CONCURRENT),
            stop=Requests(count=messages),
            warmup=None,
        ),
        engine=engine.over(JOINING),
        server_pid=placement.server_pid,
    )
    return Job(
        workload=workload,
        spec=spec,
        given=given,
        format=given.format,
        thresholds=tuple(parse_condition(text, CLIENTS_FAIL_ON) for text in given.fail_on),
        live=not (given.no_live or given.quiet),
        search=plan,
        placement=placement,
        metrics=metrics,
    )


class WsOptions(WsLimitOptions, ModeOptions):
    """What both modes have in one form."""


@with_flags_of(read_broadcast_job)
@with_flags_of(read_echo_job)
@with_options(WsOptions)
def read_job(given: WsOptions, **flags: Any) -> Job:
    """Read the options, according to the mode."""
    mode = given.mode
    if mode == "echo" and given.format == "shootout":
        raise UserError(
            "--format shootout works only with --mode broadcast, and the mode is echo",
            "leave it out, or add --mode broadcast",
        )
    flags |= {"limit": given.limit, "format": given.format}
    read = read_echo_job if mode == "echo" else read_broadcast_job
    known = inspect.signature(read).parameters
    _refuse_others({name: flags[name] for name in flags if name not in known}, mode)
    return read(**{name: flags[name] for name in flags if name in known})


def _refuse_others(others: Mapping[str, Any], mode: WsMode) -> None:
    given = [name for name, value in others.items() if value not in (None, False)]
    if given:
        other = "broadcast" if mode == "echo" else "echo"
        raise UserError(
            f"{flag_of(given[0])} works only with --mode {other}, and the mode is {mode}",
            f"leave it out, or add --mode {other}",
        )
