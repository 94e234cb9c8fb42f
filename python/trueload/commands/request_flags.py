"""The flags for what is sent, where to, and what counts as a good answer.

How: they are the parameters of one function, which other commands take over through its signature.
Combinations that exclude each other are refused here, with one line and one hint. Must not know:
when anything is sent, or what is done with the answers.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trueload.commands import options, scenario_flags
from trueload.commands.connect_open import ConnectOpenOption
from trueload.commands.follow_option import FollowOption
from trueload.commands.job import Asked
from trueload.commands.proxy_flags import through_proxy
from trueload.commands.replay_flags import (
    ReplayHostOption,
    ReplayOption,
    SpeedOption,
    replay_of,
)
from trueload.commands.scenario_flags import STEPS_HAVE
from trueload.commands.stream_options import StallOption, StreamEndOption, StreamOption
from trueload.errors import UserError
from trueload.request.curl import CurlCommand, parse_curl
from trueload.request.data import NUMBERS, DataFile, open_data
from trueload.request.follow import check_requests
from trueload.request.http2 import Http2Flags, make_http2, over_http2
from trueload.request.make import make_request, parse_statuses, read_body
from trueload.request.origins import shown_origins, tls_of_origins
from trueload.request.plans import has_place, places_of
from trueload.request.redact import redact_url
from trueload.request.replay import GOOD
from trueload.request.route import make_route
from trueload.request.scenario import BUILT_IN, Beside, read_scenario
from trueload.request.steps import StepSpec
from trueload.request.streams import check_methods, make_stream
from trueload.request.target import Target, parse_given_url
from trueload.request.targets import Defaults, read_targets
from trueload.request.tls import TlsFlags
from trueload.request.values import Expect, Request, TargetSpec

LINES_HAVE = "each line of the targets file has its own"
CURL_HAS = "the curl command has its own: change it there"
TLS_FLAGS = ("cacert", "insecure", "cert", "key", "no_tls_resumption")
"""The parameters that need ``https://``."""
HTTP2_FLAGS = ("streams", "window", "connection_window", "header_table_size")
"""The parameters that need HTTP/2."""


def read_asked(
    url: options.UrlArgument = None,
    targets: options.TargetsOption = None,
    scenario: options.ScenarioOption = None,
    curl: options.CurlOption = None,
    replay: ReplayOption = None,
    speed: SpeedOption = None,
    replay_host: ReplayHostOption = None,
    method: options.MethodOption = None,
    header: options.HeaderOption = None,
    user: options.UserOption = None,
    body: options.BodyOption = None,
    body_file: options.BodyFileOption = None,
    data: options.DataOption = None,
    data_order: options.DataOrderOption = None,
    expect_status: options.ExpectStatusOption = None,
    expect_body: options.ExpectBodyOption = None,
    expect_same: options.ExpectSameOption = False,
    keep_body: options.KeepBodyOption = False,
    close: options.CloseOption = False,
    connect_open: ConnectOpenOption = None,
    http: options.HttpOption = None,
    streams: options.StreamsOption = None,
    window: options.WindowOption = None,
    connection_window: options.ConnectionWindowOption = None,
    header_table_size: options.HeaderTableSizeOption = None,
    follow: FollowOption = None,
    stream: StreamOption = None,
    stream_end: StreamEndOption = None,
    stall: StallOption = None,
    unix: options.UnixOption = None,
    resolve: options.ResolveOption = None,
    proxy: options.ProxyOption = None,
    local_address: options.LocalAddressOption = None,
    cacert: options.CacertOption = None,
    insecure: options.InsecureOption = False,
    cert: options.CertOption = None,
    key: options.KeyOption = None,
    no_tls_resumption: options.NoTlsResumptionOption = False,
) -> Asked:
    """Return what is to be sent, and where to. Raises ``UserError``."""
    flags = dict(locals())
    if curl is not None:
        _refuse_beside("curl", CURL_HAS, url=url)
        return read_asked(**flags_of_curl(flags))
    if keep_body and body is None and expect_body is None:
        raise UserError(
            ("--keep-body needs a body on the command line, and there is none"), "add --body TEXT"
        )
    base = None if url is None else parse_given_url(url)
    local = local_address or ()
    tls = TlsFlags(cacert, insecure, cert, key, no_tls_resumption)
    route = make_route(unix=unix, overrides=resolve or (), local_addresses=local, proxy=proxy)
    expect = _expect(expect_status or (), expect_body, expect_same, replayed=replay is not None)
    of_http2 = {name: flags[name] for name in HTTP2_FLAGS}
    http2 = make_http2(None if http is None else http.value, Http2Flags(**of_http2))
    as_stream = make_stream(None if stream is None else stream.value, stream_end, stall)
    headers = tuple(header or ())
    steps: tuple[StepSpec, ...] = ()
    origins: tuple[Target, ...] = () if base is None else (base,)
    several: tuple[TargetSpec, ...] = ()
    recorded = replay_of(flags, base)
    if scenario is not None:
        own = {"method": method, "body": body, "body_file": body_file}
        _refuse_beside("scenario", STEPS_HAVE, **own, expect_body=expect_body)
        _refuse_beside("scenario", "keep one of them", targets=targets)
        scenario_flags.check_streams(streams)
        target, steps = read_scenario(scenario, Beside(base, headers, user, expect, data))
        request, shown = None, (base or target).url
    elif targets is not None:
        _refuse_beside("targets", LINES_HAVE, method=method, body=body, body_file=body_file)
        origins, several = read_targets(targets, Defaults(base, headers, user, expect))
        target, request, shown = origins[0], None, shown_origins(origins)
    elif base is None:
        raise UserError(
            "there is no URL", "write `trueload http URL`, or --targets, --scenario or --curl"
        )
    else:
        target, shown = base, base.url
        content = read_body(body, body_file)
        request = None
        if recorded is None:
            request = make_request(target, method=method, headers=headers, user=user, body=content)
    origins = origins or (target,)
    sent = [each.request for each in several] + ([] if request is None else [request])
    rows = _read_data(data, data_order, sent, several, steps)
    secure = tls_of_origins(origins, tls)
    if http2 is not None:
        secure = over_http2(http2, secure, all_secure=all(one.is_secure for one in origins))
    asked = Asked(
        url=redact_url(shown),
        target=target,
        route=route,
        request=request,
        expect=expect,
        targets=several,
        data=rows,
        replay=recorded,
        scenario=steps,
        close=close or connect_open is not None,
        connect_open_per_s=connect_open,
        http2=http2,
        stream=as_stream,
        follow=follow,
        streams=streams,
        local_addresses=read_local_addresses(local),
        tls=secure,
        origins=origins if len(origins) > 1 else (),
    )
    return _checked(through_proxy(asked))


def _checked(asked: Asked) -> Asked:
    """Return what is asked as it is sent. Raises ``UserError`` if ``--stream`` or ``--follow``
    excludes it."""
    sent = [each.request for each in asked.targets]
    sent += [] if asked.request is None else [asked.request]
    sent += [step.request for step in asked.scenario]
    check_methods(asked.stream, {each.method for each in sent})
    if asked.follow is not None:
        expected = [asked.expect, *(each.expect for each in asked.targets)]
        check_requests(sent, [*expected, *(step.expect for step in asked.scenario)])
    return asked


def _read_data(
    path: Path | None,
    order: options.DataOrderChoice | None,
    requests: list[Request],
    targets: Sequence[TargetSpec],
    steps: Sequence[StepSpec],
) -> DataFile | None:
    """Return the data that fills the requests. Raises ``UserError``."""
    if path is None:
        if order is not None:
            raise UserError("--data-order is given, but no --data", "add --data FILE")
        return None
    every = [*requests, *(step.request for step in steps)]
    chosen = options.DataOrderChoice.SEQUENTIAL if order is None else order
    taken = {name for step in steps for name, _ in step.take}
    found = open_data(path, chosen.value, every, BUILT_IN if steps else NUMBERS, taken)
    places = places_of(found.columns)
    if any(target.origin for target in targets) and not all(
        has_place(each, places) for each in every
    ):
        raise UserError(
            f"a target uses no column of {found.shown}, and the targets have several origins",
            "use a column in every target, or targets of one origin",
        )
    return found


def _expect(statuses: Sequence[str], body: str | None, same: bool, *, replayed: bool) -> Expect:
    text = None if body is None else body.encode("utf-8", "surrogateescape")
    codes = parse_statuses(statuses) or (GOOD if replayed else None)
    return Expect(statuses=codes, body=text, same=same)


def flags_of_curl(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags of ``read_asked`` that do what the curl command in them does.

    ``url`` is the one in the curl command. Flags given beside it take precedence. Raises
    ``UserError``.
    """
    beside = ("targets", "scenario", "replay", "method", "user", "body", "body_file")
    _refuse_beside("curl", CURL_HAS, **{name: flags.get(name) for name in beside})
    copied = parse_curl(flags["curl"])
    body = copied.body
    own_unix = flags.get("unix")
    return {
        **flags,
        "curl": None,
        "url": copied.url,
        "method": copied.method,
        "header": list(replace_headers(copied.headers, flags.get("header") or ())),
        "user": copied.user,
        "body": None if body is None else body.decode("utf-8", "surrogateescape"),
        "close": bool(flags.get("close")) or copied.close,
        "unix": copied.unix if own_unix is None else own_unix,
        "proxy": flags.get("proxy") or copied.proxy,
        # The last entry of a host counts.
        "resolve": [*copied.resolve, *(flags.get("resolve") or ())],
        **_tls_of_curl(flags, copied),
    }


def _tls_of_curl(flags: Mapping[str, Any], copied: CurlCommand) -> dict[str, Any]:
    """Return the TLS flags: given ones take precedence over curl's.

    curl accepts them for any URL, and we use them only for https.
    """
    if not parse_given_url(copied.url).is_secure:
        return {}

    def path(name: str, theirs: str | None) -> Path | None:
        own: Path | None = flags.get(name)
        return own if own is not None or theirs is None else Path(theirs)

    return {
        "insecure": bool(flags.get("insecure")) or copied.insecure,
        "cacert": path("cacert", copied.cacert),
        "cert": path("cert", copied.cert),
        "key": path("key", copied.key),
    }


def _refuse_beside(flag: str, why: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            other = "a URL" if name == "url" else f"--{name.replace('_', '-')}"
            raise UserError(f"--{flag} and {other} exclude each other", why)


def replace_headers(lines: Sequence[str], instead: Sequence[str]) -> tuple[str, ...]:
    """Return the header lines, with those replaced that have the same names."""
    names = {line.partition(":")[0].strip().lower() for line in instead}
    kept = (line for line in lines if line.partition(":")[0].strip().lower() not in names)
    return (*kept, *instead)


def read_local_addresses(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the addresses as written. Only their host can tell whether they are usable."""
    for text in texts:
        try:
            ipaddress.ip_address(text)
        except ValueError as error:
            raise UserError(
                f"--local-address '{text}' is not an IP address", "write for example 127.0.0.2"
            ) from error
    return tuple(texts)
