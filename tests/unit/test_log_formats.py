"""The formats of access logs: what each says of a request, down to its bytes, and how it is told
from the others."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trueload.errors import UserError
from trueload.request.log_formats import FORMATS, look
from trueload.request.logs.line import text_of_line
from trueload.request.logs.pattern import parse_pattern
from trueload.request.recorded_request import RecordedRequest, UnsendableError

S = 1_000_000_000
MS = S // 1000
T = 1_795_773_600 * S  # 2026-11-27T10:00:00Z

ALB = (
    "https 2026-11-27T10:00:02.186641Z app/my-lb/50dc6c495c0c9188 192.0.2.1:2817 10.0.0.1:80"
    ' 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/a?b=1 HTTP/1.1"'
    ' "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2'
    " arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067"
)
ALB_MORE = (
    ' "Root=1-58337281-1d84f3d73c47ec4e58577259" "www.example.com" "arn:aws:acm:x" 1'
    ' 2026-11-27T10:00:00.250000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-"'
    " TID_1234abcd5678ef90"
)
CLASSIC = (
    "2026-11-27T10:00:00.250000Z my-lb 192.0.2.1:2817 10.0.0.1:80 0.000073 0.001048 0.000057"
    ' 200 200 0 29 "GET http://www.example.com:80/ HTTP/1.1" "curl/7.38.0" - -'
)
CLOUDFRONT_FIELDS = (
    "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status"
    " cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id"
    " x-host-header cs-protocol cs-bytes time-taken"
)
CLOUDFRONT = "\t".join(
    [
        *("2026-11-27", "10:00:00", "LHR62-C2", "2390", "192.0.2.1", "GET", "d1.cloudfront.net"),
        *("/view/my%2520file.html", "200", "https://example.com/", "Mozilla/4.0%20(X;%20Y)"),
        *("zip=98101", "-", "Hit", "MRVMF7==", "www.Example.com", "https", "23", "0.001"),
    ]
)
CADDY: dict[str, Any] = {
    "level": "info",
    "ts": 1795773600.5,
    "logger": "http.log.access.log0",
    "msg": "handled request",
    "request": {
        "remote_ip": "192.0.2.1",
        "proto": "HTTP/2.0",
        "method": "POST",
        "host": "Example.com",
        "uri": "/a?b=1",
        "headers": {
            "User-Agent": ["curl/7.82.0"],
            "Accept": ["*/*", "text/html"],
            "Authorization": ["REDACTED"],
            "Cookie": [""],
            "Connection": ["close"],
        },
    },
    "duration": 0.25,
    "status": 404,
}


def caddy(**more: Any) -> str:
    return json.dumps({**CADDY, **more})


def first(*lines: str) -> RecordedRequest:
    """The first request of a log, whose format its lines tell."""
    known = next(filter(None, map(look, lines)))
    found = next(filter(None, map(known[1], lines)))
    assert isinstance(found, RecordedRequest)
    return found


@pytest.mark.parametrize(
    ("name", "lines", "expected"),
    [
        (
            "log of an AWS load balancer",
            [ALB + ALB_MORE],
            RecordedRequest(
                T + 250 * MS,
                *("GET", "www.example.com", "/a?b=1", (("User-Agent", "curl/7.46.0"),)),
                status=200,
            ),
        ),
        (
            "log of an AWS load balancer",
            [ALB],
            RecordedRequest(
                T + 2_186_641_000 - 171 * MS,
                *("GET", "www.example.com", "/a?b=1", (("User-Agent", "curl/7.46.0"),)),
                status=200,
            ),
        ),
        (
            "log of an AWS load balancer",
            [CLASSIC],
            RecordedRequest(
                T + 250 * MS,
                *("GET", "www.example.com", "/", (("User-Agent", "curl/7.38.0"),)),
                status=200,
            ),
        ),
        (
            "log of an AWS load balancer",
            [ALB.replace("10.0.0.1:80 0.086 0.048 0.037 200 200", "- -1 -1 -1 503 -")],
            RecordedRequest(
                T + 2_186_641_000,
                *("GET", "www.example.com", "/a?b=1", (("User-Agent", "curl/7.46.0"),)),
                status=503,
            ),
        ),
        (
            "CloudFront log",
            ["#Version: 1.0", CLOUDFRONT_FIELDS, CLOUDFRONT],
            RecordedRequest(
                T,
                *("GET", "www.example.com", "/view/my%20file.html?zip=98101"),
                (("Referer", "https://example.com/"), ("User-Agent", "Mozilla/4.0 (X; Y)")),
                status=200,
                whole=True,
            ),
        ),
        (
            "CloudFront log",
            [
                "#Fields: date time cs-uri-stem cs-method x-edge-location",
                "\t".join(("2026-11-27", "10:00:00", "/", "HEAD", "LHR62-C2")),
            ],
            RecordedRequest(T, "HEAD", "", "/", whole=True),
        ),
        (
            "CloudFront log",
            [CLOUDFRONT.replace("Mozilla/4.0%20(X;%20Y)", "Mozilla/5.0%2520(X%253B)")],
            RecordedRequest(
                T,
                *("GET", "www.example.com", "/view/my%20file.html?zip=98101"),
                (("Referer", "https://example.com/"), ("User-Agent", "Mozilla/5.0 (X;)")),
                status=200,
                whole=True,
            ),
        ),
        (
            "Caddy log",
            [caddy()],
            RecordedRequest(
                T + 250 * MS,
                *("POST", "example.com", "/a?b=1"),
                (("User-Agent", "curl/7.82.0"), ("Accept", "*/*"), ("Accept", "text/html")),
                status=404,
            ),
        ),
        (
            "Caddy log",
            [
                caddy(
                    ts="2026-11-27T10:00:01.5Z",
                    duration="250ms",
                    request={
                        "method": "GET",
                        "uri": "http://h:81/",
                        "headers": {"A": ["\ufffd", "b"]},
                    },
                )
            ],
            RecordedRequest(T + 1500 * MS, "GET", "h:81", "/", (("A", "b"),), status=404),
        ),
    ],
)
def test_a_request_is_what_its_format_says(
    name: str, lines: list[str], expected: RecordedRequest
) -> None:
    assert first(*lines) == expected
    assert next(filter(None, map(look, lines)))[0].name == name


@pytest.mark.parametrize(
    ("ts", "at_ns"),
    [
        (1795773600, T),
        (1795773600.25, T + 250 * MS),
        (1795773600250, T + 250 * MS),
        (1795773600250.5, T + 250 * MS + MS // 2),
        (1795773600250000, T + 250 * MS),
        (1795773600250000001, T + 250 * MS + 1),
        ("2026/11/27 10:00:00.250", T + 250 * MS),
    ],
)
def test_the_times_of_caddy_have_any_unit(ts: Any, at_ns: int) -> None:
    found = first(caddy(ts=ts, duration=0))
    assert found.at_ns == pytest.approx(at_ns, abs=1000 if isinstance(ts, float) else 0)


@pytest.mark.parametrize(
    "line",
    [
        ALB.replace("https ", "wss ", 1),
        ALB.replace("GET https://www.example.com:443/a?b=1 HTTP/1.1", "- http://a:80- -"),
        CLOUDFRONT.replace("\tGET\t", "\tCONNECT\t"),
        caddy(request={"method": "CONNECT", "uri": "h:443"}),
        caddy(request={"method": "GET", "uri": "/caf\ufffd"}),
    ],
)
def test_what_cannot_be_sent_again_is_left_out(line: str) -> None:
    known = look(line)
    assert known is not None
    with pytest.raises(UnsendableError):
        known[1](line)


@pytest.mark.parametrize(
    ("begin", "line"),
    [
        (caddy(), '{"level":"info","ts":1.5,"msg":"server running"}'),
        (CLOUDFRONT, "#Version: 1.0"),
        (CLOUDFRONT, CLOUDFRONT_FIELDS),
    ],
)
def test_what_is_logged_beside_requests_is_no_request(begin: str, line: str) -> None:
    known = look(begin)
    assert known is not None
    assert known[1](line) is None


@pytest.mark.parametrize(
    "line",
    [
        "",
        "what is this",
        "#Software: Microsoft Internet Information Services 10.0",
        "#Fields: date time s-ip cs-method cs-uri-stem",
        "http 2026-11-27T10:00:00Z",
        '{"ts": 1.5, "request": "GET / HTTP/1.1"}',
        '{"ts": 1.5, "request": {"uri": "/"}}',
        '{"request": {"uri": "/", "method": "GET"}}',
        "[]",
    ],
)
def test_a_line_of_no_format_is_of_none(line: str) -> None:
    assert look(line) is None


E9, E_ACUTE, QUOTE, BACKSLASH = b"/caf\xe9", b"/caf\xc3\xa9", b'/a"b', b"/a\\b"
"""Paths as they were on the wire: a byte that is not UTF-8, a letter of two bytes, and so on."""
SENT = {E9: "/caf%E9", E_ACUTE: "/caf%C3%A9", QUOTE: '/a"b', BACKSLASH: "/a\\b"}


def common(request: bytes, agent: bytes) -> bytes:
    return b'h - - [27/Nov/2026:10:00:00 +0000] "GET %s HTTP/1.1" 200 2 "%s" "%s"' % (
        *(request, b"http://h" + agent, agent),
    )


def in_json(request: bytes, agent: bytes) -> bytes:
    return (
        b'{"msec":"1795773600.0","request":"GET %s HTTP/1.1","http_referer":"http://h%s",'
        b'"http_user_agent":"%s"}' % (request, agent, agent)
    )


def in_alb(request: bytes, agent: bytes) -> bytes:
    before = ALB.encode().partition(b'"GET')[0]
    return before + b'"GET http://h:80%s HTTP/1.1" "%s"' % (request, agent) + b" - -"


def in_cloudfront(request: bytes, agent: bytes) -> bytes:
    fields = CLOUDFRONT.encode().split(b"\t")
    fields[7], fields[9], fields[10], fields[11] = request, b"http://h" + agent, agent, b"-"
    return b"\t".join(fields)


def nginx_escaped(raw: bytes) -> bytes:
    """As nginx writes a variable by default."""
    special = b'"\\'
    return b"".join(
        b"\\x%02X" % byte if byte < 32 or byte > 126 or byte in special else bytes([byte])
        for byte in raw
    )


def apache_escaped(raw: bytes) -> bytes:
    shown = raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return b"".join(b"\\x%02x" % byte if byte > 126 else bytes([byte]) for byte in shown)


def json_escaped(raw: bytes) -> bytes:
    """As nginx writes it with ``escape=json``: bytes beyond ASCII stay."""
    return raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"')


def cloudfront_escaped(raw: bytes) -> bytes:
    return b"".join(
        b"%%%02X" % byte if byte < 33 or byte > 126 or byte in b'"%<>\\^`{}|' else bytes([byte])
        for byte in raw
    )


WRITTEN = [
    ("nginx", common, nginx_escaped),
    ("Apache", common, apache_escaped),
    ("raw bytes in a common log", common, lambda raw: json_escaped(raw)),
    ("nginx's JSON", in_json, json_escaped),
    ("nginx's JSON without escape=json", in_json, nginx_escaped),
    ("ALB", in_alb, nginx_escaped),
    ("ALB, raw", in_alb, json_escaped),
]


@pytest.mark.parametrize("raw", SENT)
@pytest.mark.parametrize(("name", "line", "escaped"), WRITTEN)
def test_bytes_of_a_log_are_the_bytes_that_are_sent(
    raw: bytes, name: str, line: Any, escaped: Any
) -> None:
    found = first(text_of_line(line(escaped(raw), escaped(raw))))
    assert found.path == SENT[raw], name
    for _, value in found.headers:
        assert value.encode("utf-8", "surrogateescape").endswith(raw), name


@pytest.mark.parametrize("raw", SENT)
def test_bytes_that_cloudfront_encodes_are_sent_so(raw: bytes) -> None:
    escaped = cloudfront_escaped(raw)
    found = first(text_of_line(in_cloudfront(escaped, escaped)))
    assert found.path == escaped.decode()
    assert [value.encode("utf-8", "surrogateescape") for _, value in found.headers] == [
        *(b"http://h" + raw, raw)
    ]


VISIBLE = st.binary(min_size=1, max_size=20).map(
    lambda raw: b"/" + bytes(byte for byte in raw if byte > 32 and byte not in b"#\x7f")
)


@given(VISIBLE, st.sampled_from(WRITTEN))
def test_any_bytes_come_back(raw: bytes, written: Any) -> None:
    _, line, escaped = written
    if written[0] != "nginx" and escaped is json_escaped:
        raw = bytes(byte for byte in raw if byte not in b"\x85\xa0")
    found = first(text_of_line(line(escaped(raw), escaped(raw))))
    sent = b"".join(bytes([b]) if 32 < b < 127 else b"%%%02X" % b for b in raw)
    assert found.path.encode() == sent
    for name, value in found.headers:
        expected = b"http://h" + raw if name == "Referer" else raw
        assert value.encode("utf-8", "surrogateescape") == expected


PATTERNS = [
    (
        '$remote_addr [$time_local] "$request" $status',
        '1 [27/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200',
    ),
    ("$time_iso8601 $request_method $request_uri", "2026-11-27T10:00:00+00:00 GET /a"),
    ("$msec\\t$request\\t$_", "1795773600.000\tGET /a HTTP/1.1\t-"),
    ("$time_local $request $status", "27/Nov/2026:10:00:00 +0000 GET /a HTTP/1.1 200"),
    ("${msec}s $request_method $scheme://$host$uri$is_args$args;", "1795773600.0s GET http://h/a;"),
    (
        "[$time_iso8601] $host:$server_port $request_method $uri",
        "[2026-11-27T10:00:00Z] h:80 GET /a",
    ),
    ('%h %l %u %t "%r" %>s %b', '1 - - [27/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5'),
    ('%h %l %u %t \\"%r\\" %>s %b', '1 - - [27/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5'),
    ("%{sec}t %m %U%q %H", "1795773600 GET /a HTTP/1.1"),
    ("%{msec}t,%{usec}t %m %U", "1795773600000,1 GET /a"),
    ('%{%Y-%m-%d %T}t "%r" %D', '2026-11-27 10:00:00 "GET /a HTTP/1.1" 12'),
    ("[%{%d/%b/%Y:%T %z}t] %m %U %400,501{User-Agent}i", "[27/Nov/2026:11:00:00 +0100] GET /a u"),
    ("%%%t%% %r %s", "%[27/Nov/2026:10:00:00 +0000]% GET /a HTTP/1.1 200"),
    ("$msec   $request_method $request_uri", "1795773600.0 GET   /a"),
]


@pytest.mark.parametrize(("pattern", "line"), PATTERNS)
def test_a_format_is_what_its_pattern_says(pattern: str, line: str) -> None:
    parser = parse_pattern(pattern).begin("")
    assert parser is not None
    found = parser(line)
    assert found is not None
    assert (found.at_ns, found.method, found.path) == (T, "GET", "/a")


def test_a_pattern_has_host_query_headers_and_body() -> None:
    pattern = (
        '$msec $http_host "$request_method $uri$is_args$args" $status $request_time'
        ' "$http_user_agent" "$http_x_token" "$content_type" "$request_body" $http_accept'
    )
    parser = parse_pattern(pattern).begin("")
    assert parser is not None
    line = (
        '1795773600.500 H:81 "PUT /a?b=1" 201 0.250 "a \\"b\\" \\xE9" "-" "text/plain"'
        ' "x\\x22\\xFF\\x0A" */*'
    )
    assert parser(line) == RecordedRequest(
        T + 250 * MS,
        *("PUT", "h:81", "/a?b=1"),
        (("User-Agent", 'a "b" \udce9'), ("Accept", "*/*"), ("Content-Type", "text/plain")),
        b'x"\xff\n',
        201,
    )


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        *((pattern, line[:-9]) for pattern, line in PATTERNS[:3]),
        ("$msec $request_method $request_uri", "soon GET /a"),
        ("%{sec}t %m %U", "x GET /a"),
        ("%{%Y}t %m %U", "99999 GET /a"),
    ],
)
def test_a_line_that_is_not_of_the_pattern_is_left_out(pattern: str, line: str) -> None:
    parser = parse_pattern(pattern).begin("")
    assert parser is not None
    with pytest.raises((ValueError, UnsendableError)):
        parser(line)


@pytest.mark.parametrize(
    ("pattern", "message", "hint"),
    [
        ("", "has no $variable and no %directive", "write it as in the server's configuration"),
        ("combined", "has no $variable and no %directive", "write it as in"),
        ('$remote_addr "$request"', "has no time", "add $time_local"),
        ("%h %r", "has no time", "Apache's %t"),
        ("$msec $status", "has no request", "add $request"),
        ("$msec$request", "has nothing between $request and the field before it", "write it"),
        ("%t%h %r", "has nothing between", "write it"),
        ("%t %Z %r", "has %Z, which Apache does not have", "write it"),
    ],
)
def test_a_pattern_that_says_too_little_is_refused(pattern: str, message: str, hint: str) -> None:
    if pattern == "%t%h %r":
        pattern = "%m%h %t %r"
    with pytest.raises(UserError) as refused:
        parse_pattern(pattern)
    assert refused.value.message.startswith(f"--log-format {message}")
    assert hint in refused.value.hint


def test_a_line_takes_linear_time_whatever_it_has() -> None:
    parser = parse_pattern(" ".join(f"$v{at}" for at in range(20)) + ' "$request" $msec').begin("")
    assert parser is not None
    begin = time.process_time()
    with pytest.raises(ValueError, match="not a line of the pattern"):
        parser("a " * 200_000)
    assert time.process_time() - begin < 5, "trying each end of each field would take for ever"


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_pattern_and_any_line_are_a_request_or_refused(pattern: str, line: str) -> None:
    try:
        parser = parse_pattern(f"$msec {pattern} $request").begin("")
        assert parser is not None
        parser(line)
    except (UserError, ValueError, UnsendableError):
        pass


LINES = [ALB + ALB_MORE, CLASSIC, CLOUDFRONT, CLOUDFRONT_FIELDS, caddy()]


@given(st.sampled_from(LINES), st.integers(0, 400), st.integers(0, 30), st.text(max_size=8))
def test_a_spoilt_line_is_a_request_or_left_out(line: str, at: int, cut: int, new: str) -> None:
    spoilt = text_of_line((line[:at] + new + line[at + cut :]).encode("utf-8", "surrogatepass"))
    look(spoilt)
    for each in FORMATS:
        try:
            parser = each.begin(line)
            found = None if parser is None else parser(spoilt)
        except (ValueError, UnsendableError):
            continue
        if found is not None:
            texts = (found.method, found.path, *(text for pair in found.headers for text in pair))
            assert found.path.isascii()
            assert not any(control in text for text in texts for control in "\r\n\0")
