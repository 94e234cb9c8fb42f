"""The flags of ``trueload ws``, as a job.

How: the two modes share how a connection is opened. An echo has the flags of any load, and a
broadcast those of its steps; a flag of the other mode is refused. Must not know: when a message is
sent, or how a trial works.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trueload.commands import options, ws_options
from trueload.commands.declared import reader_of
from trueload.commands.flags import take_flags, with_flags_of
from trueload.commands.job import Asked, Job
from trueload.commands.lasting import DryRunOption, check_dry_run
from trueload.commands.measure import measuring
from trueload.commands.metrics_flags import read_metrics
from trueload.commands.options import DialectChoice
from trueload.commands.place_options import (
    check_all_at_start,
    check_local_addresses,
    check_pinned,
    read_where,
)
from trueload.commands.request_flags import read_local_addresses
from trueload.commands.weights import check_weights
from trueload.commands.ws_options import WsFormat, WsMode
from trueload.errors import UserError
from trueload.protocol.plan import EngineOptions, Requests, Turns
from trueload.protocol.shootout import SUBPROTOCOLS
from trueload.record.thresholds import CLIENTS_FAIL_ON, CLIENTS_LIMIT, parse_condition
from trueload.request.exchange import WsBroadcast, WsEcho
from trueload.request.make import is_token, make_request
from trueload.request.message import make_messages
from trueload.request.redact import redact_url
from trueload.request.route import make_route
from trueload.request.target import WS, parse_given_url
from trueload.request.tls import TlsFlags, make_tls
from trueload.request.values import Request
from trueload.search.execute import SearchPlan, make_clients
from trueload.trial.spec import Load, TrialSpec

STEP = 1_000
CONCURRENT = 4
SAMPLES = 100
PADDING_BYTES = 200
LIMIT_ASKED, LIMIT_PUBLISHED = "p95<500ms", "receipt_p95<500ms"
# Each client that joins needs a handshake, and often a subscription.
JOINING = EngineOptions(connect_rate_per_s=1_000)
# A step runs on one thread, and each client has one message in flight.
read_engine = reader_of(EngineOptions, without=("threads", "refill"))


# Headers of a handshake that the engine sets, or that have an option.
_OWN_HEADERS = {
    "sec-websocket-key": "leave it out",
    "sec-websocket-version": "leave it out",
    "sec-websocket-extensions": "leave it out: messages are sent uncompressed",
    "sec-websocket-protocol": "use --subprotocol",
}


@dataclass(frozen=True)
class Opened:
    """The opening of connections. ``asked`` has no exchange yet."""

    asked: Asked
    request: Request
    dialect: DialectChoice | None


def read_opening(
    url: ws_options.WsUrlArgument,
    dialect: options.DialectOption = None,
    header: options.HeaderOption = None,
    user: options.UserOption = None,
    origin: ws_options.OriginOption = None,
    subprotocol: ws_options.SubprotocolOption = None,
    unix: options.UnixOption = None,
    resolve: options.ResolveOption = None,
    local_address: options.LocalAddressOption = None,
    cacert: options.CacertOption = None,
    insecure: options.InsecureOption = False,
    cert: options.CertOption = None,
    key: options.KeyOption = None,
    no_tls_resumption: options.NoTlsResumptionOption = False,
) -> Opened:
    """Return where to connect, and how. Raises ``UserError``."""
    target = parse_given_url(url, WS)
    headers = _headers(header or (), origin, _protocols(subprotocol, dialect))
    request = make_request(target, method="GET", headers=headers, user=user, body=None)
    local = local_address or ()
    asked = Asked(
        kind="ws",
        url=redact_url(target.url),
        target=target,
        route=make_route(unix=unix, overrides=resolve or (), local_addresses=local),
        local_addresses=read_local_addresses(local),
        tls=make_tls(target, TlsFlags(cacert, insecure, cert, key, no_tls_resumption)),
    )
    return Opened(asked, request, dialect)


def _protocols(given: Sequence[str] | None, dialect: DialectChoice | None) -> Sequence[str]:
    """Return the subprotocols asked for, else that of the dialect, if it has one."""
    if given is None and dialect is not None and dialect.value in SUBPROTOCOLS:
        return (SUBPROTOCOLS[dialect.value],)
    for name in given or ():
        if not is_token(name):  # RFC 6455, section 4.1
            raise UserError(f"--subprotocol {name!r} is no name", "write for example chat.v1")
    return given or ()


def _headers(given: Sequence[str], origin: str | None, protocols: Sequence[str]) -> list[str]:
    names = {line.partition(":")[0].strip().lower() for line in given}
    for name, hint in _OWN_HEADERS.items():
        if name in names:
            raise UserError(f"trueload sets {name} itself", hint)
    if origin is not None and "origin" in names:
        raise UserError("--origin and a header Origin exclude each other", "keep one of them")
    lines = list(given)
    lines += [] if origin is None else [f"Origin: {origin}"]
    lines += [f"Sec-WebSocket-Protocol: {', '.join(protocols)}"] if protocols else []
    return lines


@with_flags_of(read_opening, without=())
def read_echo(
    size: options.SizeOption = None,
    data: options.DataOption = None,
    text: ws_options.TextOption = None,
    **opening_flags: Any,
) -> Asked:
    """Return what is to be sent, and where to. Raises ``UserError``."""
    opened = read_opening(**opening_flags)
    if text is not None and opened.dialect is not None:
        raise UserError(
            f"--{'text' if text else 'binary'} and --dialect exclude each other",
            "a dialect says what kind its messages are",
        )
    as_text = text is not False
    exchange = WsEcho(
        opening=opened.request,
        messages=make_messages(size, data, text=as_text),
        text=as_text and opened.dialect is not DialectChoice.BINARY,
        dialect=None if opened.dialect is None else opened.dialect.value,
    )
    return replace(opened.asked, exchange=exchange)


read_echo_job = measuring(read_echo)


@with_flags_of(read_opening, without=())
@with_flags_of(read_metrics, without=())
@with_flags_of(read_where, without=())
@with_flags_of(read_engine, without=())
def read_broadcast_job(
    step: ws_options.StepOption = None,
    concurrent: ws_options.ConcurrentOption = None,
    samples: ws_options.SamplesOption = None,
    padding: ws_options.PaddingOption = None,
    initial_clients: ws_options.InitialClientsOption = None,
    steps: ws_options.StepsOption = None,
    stop_on_loss: ws_options.StopOnLossOption = False,
    format_: ws_options.WsFormatOption = ws_options.WsFormat.TEXT,
    limit: ws_options.WsLimitOption = None,
    fail_on: options.FailOnOption = None,
    strict: options.StrictOption = False,
    json_path: options.JsonOption = None,
    no_save: options.NoSaveOption = False,
    quiet: options.QuietOption = False,
    no_live: options.NoLiveOption = False,
    dry_run: DryRunOption = False,
    **opening_flags: Any,
) -> Job:
    """Read the flags and check them as a whole; nothing has been sent."""
    where = read_where(**take_flags(read_where, opening_flags))
    check_dry_run(dry_run, where)
    check_all_at_start(where, "a broadcast")
    metrics = read_metrics(**take_flags(read_metrics, opening_flags))
    engine = read_engine(**take_flags(read_engine, opening_flags))
    check_pinned(engine, where)
    check_weights(where, broadcast=True)
    opened = read_opening(**opening_flags)
    asked, dialect = opened.asked, opened.dialect or DialectChoice.JSON
    options.check_one_stdout(json_path, format_)
    default_limit = LIMIT_PUBLISHED if format_ is WsFormat.SHOOTOUT else LIMIT_ASKED
    grows_by, messages = step or STEP, samples or SAMPLES
    plan = SearchPlan(
        axis="clients",
        limit=parse_condition(limit or default_limit, CLIENTS_LIMIT),
        bounds=make_clients(initial_clients or grows_by, grows_by, steps),
        step_ns=None,
        samples=messages,
        stop_on_loss=stop_on_loss,
    )
    padding_bytes = PADDING_BYTES if padding is None else padding
    spec = TrialSpec(
        url=asked.url,
        addresses=(),  # resolved last: with a mistake in any flag no name is looked up
        request=None,
        exchange=WsBroadcast(opening=opened.request, dialect=dialect.value, padding=padding_bytes),
        load=Load(
            connections=int(plan.bounds.start),
            pacing=Turns(concurrent=concurrent or CONCURRENT),
            stop=Requests(count=messages),
            warmup=None,
        ),
        engine=engine.over(JOINING),
        local_addresses=check_local_addresses(asked.local_addresses, where),
        tls=asked.tls,
        server_pid=where.server_pid,
    )
    return Job(
        kind=asked.kind,
        spec=spec,
        target=asked.target,
        route=asked.route,
        repeat=1,
        thresholds=tuple(parse_condition(text, CLIENTS_FAIL_ON) for text in fail_on or ()),
        strict=strict,
        json_path=json_path,
        save=not no_save,
        live=not (no_live or quiet),
        search=plan,
        format=format_.value,
        quiet=quiet,
        where=where,
        metrics=metrics,
        dry_run=dry_run,
    )


@with_flags_of(read_broadcast_job, without=())
@with_flags_of(read_echo_job, without=())
def read_job(
    mode: ws_options.ModeOption = WsMode.ECHO,
    limit: ws_options.WsLimitOption = None,
    format_: ws_options.WsFormatOption = ws_options.WsFormat.TEXT,
    **flags: Any,
) -> Job:
    """Read the flags, according to the mode."""
    if mode is WsMode.ECHO and format_ is WsFormat.SHOOTOUT:
        raise UserError(
            "--format shootout works only with --mode broadcast, and the mode is echo",
            "leave it out, or add --mode broadcast",
        )
    flags |= {"limit": limit, "format_": format_}
    read = read_echo_job if mode is WsMode.ECHO else read_broadcast_job
    known = inspect.signature(read).parameters
    _refuse_others({name: flags[name] for name in flags if name not in known}, mode)
    return read(**{name: flags[name] for name in flags if name in known})


def _refuse_others(others: Mapping[str, Any], mode: WsMode) -> None:
    given = [name for name, value in others.items() if value not in (None, False)]
    if given:
        other = WsMode.BROADCAST if mode is WsMode.ECHO else WsMode.ECHO
        flag = given[0].rstrip("_").replace("_", "-")
        raise UserError(
            f"--{flag} works only with --mode {other.value}, and the mode is {mode.value}",
            f"leave it out, or add --mode {other.value}",
        )
