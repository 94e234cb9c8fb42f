"""What the options of a request mean: what is sent, where to, and what counts as a good answer.

Combinations that cannot be used together are refused here, with one line and one hint.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trueload.commands.job import Workload
from trueload.commands.replay_flags import replay_of
from trueload.commands.scenario_flags import ONE_EACH, STEPS_HAVE
from trueload.errors import UserError
from trueload.protocol.option import refuse_beside
from trueload.protocol.request_options import (
    OF_ONE_REQUEST,
    ContentOptions,
    DataOrder,
    DialogueOptions,
    HeaderOptions,
    Http2Options,
    HttpOptions,
    StreamOptions,
    TlsOptions,
)
from trueload.request.data import NUMBERS, DataFile, open_data
from trueload.request.environment import fill_in
from trueload.request.fields import FileFlags
from trueload.request.follow import check_requests
from trueload.request.header_files import read_headers
from trueload.request.http2 import make_http2, over_http2
from trueload.request.make import make_request, parse_statuses, read_body
from trueload.request.origins import origin_specs, shown_origins, tls_of_origins
from trueload.request.plans import has_place, places_of
from trueload.request.redact import redact_url
from trueload.request.route import make_route
from trueload.request.steps import StepSpec
from trueload.request.streams import check_methods, make_stream
from trueload.request.targets import read_targets
from trueload.request.traffic import Traffic
from trueload.request.url import Url, parse_given_url
from trueload.request.values import Expect, Request, TargetSpec

if TYPE_CHECKING:
    from trueload.request.curl import CurlCommand

LINES_HAVE = "each line of the targets file has its own"
CURL_HAS = "the curl command has its own: change it there"


def read_workload(url: str | None, given: HttpOptions) -> Workload:
    """Return what is to be sent, and where to. Raises ``UserError``."""
    if given.curl is not None:
        refuse_beside("--curl", {"a URL": url is not None}, CURL_HAS)
        url, given, timeout_ns = of_curl(given)
        return replace(read_workload(url, given), timeout_ns=timeout_ns)
    if given.keep_body and not (given.body or given.form or given.expect_body):
        message = "--keep-body needs a body on the command line, and there is none"
        raise UserError(message, "add --body TEXT")
    given = HttpOptions(**{**given.given, **read_identity(given)})
    base = None if url is None else parse_given_url(url)
    route = make_route(given, given.unix, given.proxy)
    expect = _expect(given)
    http2 = make_http2(given.only(Http2Options))
    headers, user = given.header, given.user
    steps: tuple[StepSpec, ...] = ()
    origins: tuple[Url, ...] = () if base is None else (base,)
    several: tuple[TargetSpec, ...] = ()
    recorded = replay_of(given, base)
    if given.scenario is not None:
        given.refuse_beside("--scenario", *OF_ONE_REQUEST, "expect_body", hint=STEPS_HAVE)
        given.refuse_beside("--scenario", "targets")
        refuse_beside("--scenario", {"--streams": (given.streams or 1) > 1}, ONE_EACH)
        from trueload.request.scenario import ScenarioFlags, read_scenario

        beside = ScenarioFlags(base, headers, user, expect, given.data)
        endpoint, steps = read_scenario(given.scenario, beside)
        request, shown = None, (base or endpoint).url
    elif given.targets is not None:
        given.refuse_beside("--targets", *OF_ONE_REQUEST, hint=LINES_HAVE)
        origins, several = read_targets(given.targets, FileFlags(base, headers, user, expect))
        endpoint, request, shown = origins[0], None, shown_origins(origins)
    elif base is None:
        raise UserError(
            "there is no URL", "write `trueload http URL`, or --targets, --scenario or --curl"
        )
    else:
        endpoint, shown = base, base.url
        request = None if recorded is not None else _request(endpoint, given)
    origins = origins or (endpoint,)
    sent = [each.request for each in several] + ([] if request is None else [request])
    rows = read_rows(given.data, given.data_order, sent, steps)
    _check_origins(rows, sent, several)
    secure = tls_of_origins(origins, given.only(TlsOptions))
    if http2 is not None:
        secure = over_http2(http2, secure, all_secure=all(one.is_secure for one in origins))
    traffic = Traffic(
        request=request,
        expect=expect,
        targets=several,
        scenario=steps,
        replay=recorded,
        data=rows,
        http2=http2,
        stream=make_stream(given.only(StreamOptions)),
        dialogue=given.only(DialogueOptions),
        local_addresses=given.local_address,
        tls=secure,
    )
    traffic = _checked(traffic if route.proxy is None else traffic.through(route.proxy, origins))
    several_origins = origins if len(origins) > 1 else ()
    return Workload(
        url=redact_url(shown),
        endpoint=endpoint,
        route=route,
        traffic=replace(traffic, origins=origin_specs(several_origins, traffic.tls, route.proxy)),
        origins=several_origins,
        close=given.close or given.connect_open_per_s is not None,
        connect_open_per_s=given.connect_open_per_s,
        streams=given.streams,
        request_log=given.request_log,
    )


def read_identity(given: HeaderOptions) -> dict[str, object]:
    """Return the options of the headers, with those of files, and with a user that the environment
    fills. Raises ``UserError``."""
    found: dict[str, object] = {"header": read_headers(given.header)} if given.header else {}
    if given.user is not None:
        found["user"] = fill_in(given.user, os.environ)
    return found


def _request(endpoint: Url, given: ContentOptions) -> Request:
    """Return the one request that is sent. Raises ``UserError``."""
    lines, body = given.header, read_body(given.body, given.body_file)
    if given.form:
        refuse_beside("--form", {"a body": body is not None})
        from trueload.request.form import make_form

        content_type, body = make_form(given.form)
        lines = replace_headers(lines, [f"Content-Type: {content_type}"])
    return make_request(endpoint, method=given.method, headers=lines, user=given.user, body=body)


def _checked(traffic: Traffic) -> Traffic:
    """Return what is sent. Raises ``UserError`` if it names an unset variable, or ``--stream`` or
    ``--follow`` excludes it."""
    traffic.environment(os.environ)
    sent = [request for request, _ in traffic.pairs]
    check_methods(traffic.stream, {each.method for each in sent})
    if traffic.dialogue.follow is not None:
        check_requests(sent, [traffic.expect, *(expect for _, expect in traffic.pairs)])
    return traffic


def read_rows(
    data: Path | None,
    order: DataOrder | None,
    requests: Sequence[Request],
    steps: Sequence[StepSpec],
) -> DataFile | None:
    """Return the data that fills requests or the steps of sessions. Raises ``UserError``."""
    if data is None:
        if order is not None:
            raise UserError("--data-order is given, but no --data", "add --data FILE")
        return None
    from trueload.request.scenario import BUILT_IN

    texts = [text for step in steps for text in step.texts]
    taken = {name for step in steps for name, _ in step.take}
    numbers = BUILT_IN if steps else NUMBERS
    return open_data(data, order or "sequential", requests, numbers, taken, texts)


def _check_origins(
    data: DataFile | None, requests: Sequence[Request], targets: Sequence[TargetSpec]
) -> None:
    """Refuse targets of several origins of which one uses no column. Raises ``UserError``."""
    if data is None:
        return
    places = places_of(data.columns)
    if any(target.origin for target in targets) and not all(
        has_place(each, places) for each in requests
    ):
        raise UserError(
            f"a target uses no column of {data.shown}, and the targets have several origins",
            "use a column in every target, or targets of one origin",
        )


def _expect(given: HttpOptions) -> Expect:
    text = given.expect_body
    codes = parse_statuses(given.expect_status)
    if given.replay and codes is None:
        from trueload.request.replay import GOOD

        codes = GOOD
    body = None if text is None else text.encode("utf-8", "surrogateescape")
    return Expect(statuses=codes, body=body, same=given.expect_same)


def of_curl(given: HttpOptions) -> tuple[str, HttpOptions, int | None]:
    """Return the URL, the options that do what the curl command in them does, and its timeout.

    Options given beside it take precedence. Raises ``UserError``.
    """
    others = ("targets", "scenario", "replay", "user", *OF_ONE_REQUEST)
    given.refuse_beside("--curl", *others, hint=CURL_HAS)
    from trueload.request.curl import parse_curl

    copied = parse_curl(given.curl or "")
    body = copied.body
    update = {
        "curl": None,
        "method": copied.method,
        "header": replace_headers(copied.headers, given.header),
        "user": copied.user,
        "body": None if body is None else body.decode("utf-8", "surrogateescape"),
        "close": given.close or copied.close,
        "follow": given.follow or copied.follow,
        "unix": copied.unix if given.unix is None else given.unix,
        "proxy": given.proxy or copied.proxy,
        # The last entry of a host counts.
        "resolve": (*copied.resolve, *given.resolve) or None,
        **_tls_of_curl(given, copied),
    }
    return copied.url, HttpOptions(**{**given.given, **update}), copied.timeout_ns


def _tls_of_curl(given: TlsOptions, copied: CurlCommand) -> dict[str, object]:
    """Return the options of TLS: given ones take precedence over curl's.

    curl accepts them for any URL, and we use them only for https.
    """
    if not parse_given_url(copied.url).is_secure:
        return {}
    files = {"cacert": copied.cacert, "cert": copied.cert, "key": copied.key}
    named = {name: None if path is None else Path(path) for name, path in files.items()}
    own = given.only(TlsOptions).given
    return {**named, "insecure": copied.insecure, **own}


def replace_headers(lines: Sequence[str], instead: Sequence[str]) -> tuple[str, ...]:
    """Return the header lines, with those replaced that have the same names."""
    names = {line.partition(":")[0].strip().lower() for line in instead}
    kept = (line for line in lines if line.partition(":")[0].strip().lower() not in names)
    return (*kept, *instead)
