"""URLs, requests and thresholds: what a user may write, and the message for each mistake."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import counts, distribution, good_record, histogram
from trueload.errors import UserError
from trueload.protocol.plan import Histograms
from trueload.record.figures import metric_value
from trueload.record.schema import Record
from trueload.record.thresholds import LIMIT, RATIO, Form, crossed, parse_condition
from trueload.request.make import make_request, parse_header, parse_statuses, read_body
from trueload.request.redact import redact_command, redact_headers, redact_url
from trueload.request.url import HTTP, WS, parse_given_url, parse_url, resolve


@pytest.mark.parametrize(
    ("url", "host", "port", "path", "authority"),
    [
        ("http://127.0.0.1:8080/", "127.0.0.1", 8080, "/", "127.0.0.1:8080"),
        ("http://example.org", "example.org", 80, "/", "example.org"),
        ("HTTP://Example.org:80/a?b=c#d", "Example.org", 80, "/a?b=c", "Example.org"),
        ("http://example.org?q", "example.org", 80, "/?q", "example.org"),
        ("http://example.org#top", "example.org", 80, "/", "example.org"),
        ("http://example.org:/x", "example.org", 80, "/x", "example.org"),
        ("http://[::1]:81/", "::1", 81, "/", "[::1]:81"),
        ("http://[::1]", "::1", 80, "/", "[::1]"),
        ("http://[fe80::1%25eth0]:81/", "fe80::1%eth0", 81, "/", "[fe80::1]:81"),
        ("http://a:b@example.org:81/@x", "example.org", 81, "/@x", "example.org:81"),
        ("http://bücher.example/", "xn--bcher-kva.example", 80, "/", "xn--bcher-kva.example"),
        ("http://straße.example/", "xn--strae-oqa.example", 80, "/", "xn--strae-oqa.example"),
        ("http://h/ü?ä=%20", "h", 80, "/%C3%BC?%C3%A4=%20", "h"),
        ("http://h//a/../b", "h", 80, "//a/../b", "h"),
        ("https://example.org", "example.org", 443, "/", "example.org"),
        ("HTTPS://example.org:80/", "example.org", 80, "/", "example.org:80"),
        ("http://example.org:443/", "example.org", 443, "/", "example.org:443"),
        ("https://[::1]:443/", "::1", 443, "/", "[::1]"),
        ("http://a_b-c.example./", "a_b-c.example.", 80, "/", "a_b-c.example."),
    ],
)
def test_a_url_says_where_to_connect_and_what_to_ask_for(
    url: str, host: str, port: int, path: str, authority: str
) -> None:
    target = parse_url(url)
    found = (target.host, target.port, target.path, target.authority)
    assert found == (host, port, path, authority)


@pytest.mark.parametrize(
    "unit", ["a", "a/", "a=b&", "%25", "a:", "a;", "a@", 'a"', "aB1-", "{", "//", "a;b=", "ü"]
)
def test_a_long_url_takes_time_in_proportion_to_its_length(unit: str) -> None:
    def took_s(count: int) -> float:
        url = "http://h/?q=" + unit * (count // len(unit))
        began_s = time.process_time()
        parse_url(url)
        redact_command(["trueload", "http", url, "-H", f"X: {url}"])
        return time.process_time() - began_s

    took_s(100)
    # Sixteen times the length took 256 times as long; a busy machine may double a time.
    assert took_s(64_000) < 0.2 + 64 * took_s(4_000)


def test_a_url_beyond_the_limit_is_refused() -> None:
    assert parse_url("http://h/".ljust(65_536, "a")).host == "h"
    for url in ("http://h/".ljust(65_537, "a"), "x" * 10**7):
        with pytest.raises(UserError, match="characters, and 65,536 are the most") as error:
            parse_url(url)
        assert "--body-file" in error.value.hint


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("127.0.0.1:8080", "write http://127.0.0.1:8080"),
        ("http:/host/a", "write http://host/a"),
        ("HTTPS:host", "write https://host"),
        ("http://h/a b", "write it percent-encoded, as %20"),
        ("http://h/\n", "write it percent-encoded, as %0A"),
        ("http://h/\u2028", "write it percent-encoded, as %E2%80%A8"),
        ("http://h/\udcff", "write it percent-encoded, as %FF"),
    ],
)
def test_the_hint_is_what_to_write_instead(url: str, hint: str) -> None:
    with pytest.raises(UserError) as raised:
        parse_url(url)
    assert raised.value.hint == hint


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("", "empty"),
        ("127.0.0.1:8080", "has no scheme"),
        ("localhost", "has no scheme"),
        ("//host/", "has no scheme"),
        ("http:/host/", "has no scheme"),
        ("://host/", "has no scheme"),
        ("ftp://example.org/", "'ftp://' cannot be loaded"),
        ("http://", "has no host"),
        ("http:///path", "has no host"),
        ("http://:80/", "has no host"),
        ("http://user@/", "has no host"),
        ("http://h:0/", "port '0'"),
        ("http://h:65536/", "port '65536'"),
        ("http://h:-1/", "port '-1'"),
        ("http://h:8o/", "port '8o'"),
        ("http://h:٣/", "port '٣'"),
        ("http://h:99999999999999999999/", "is not a port"),
        ("http://::1/", "more than one colon"),
        ("http://[::1/", "no IPv6 address"),
        ("http://[127.0.0.1]/", "no IPv6 address"),
        ("http://[::1]x/", "follows the address"),
        ("http://a b/", "a space at position 9"),
        ("http://h/a b", "a space at position 11"),
        (" http://h/", "a space at position 1"),
        ("http://h/\r\nX: y", "U+000D"),
        ("http://h/\x00", "U+0000"),
        ("http://h/\x1b[31m", "U+001B"),
        ("http://h/\u2028", "U+2028"),
        ("http://h/\u202e", "U+202E"),
        ("http://-h/", "not a host name"),
        ("http://h..x/", "not a host name"),
        ("http://h%41/", "not a host name"),
        ("http://" + "a" * 64 + "/", "not a host name"),
        ("http://256.1.1.1/", "not an IPv4 address"),
        ("http://1.2.3/", "not an IPv4 address"),
        ("http://\udcff/", "U+DCFF"),
    ],
)
def test_a_wrong_url_is_told_in_one_line_and_one_hint(url: str, complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_url(url)
    assert complaint in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code == 2


@given(st.text())
def test_no_url_brings_anything_else_than_a_request_line(text: str) -> None:
    try:
        target = parse_url("http://h/" + text)
    except UserError:
        return
    assert target.path.isascii()
    assert not any(c.isspace() or not c.isprintable() for c in target.path)


def test_user_information_becomes_an_authorization_header() -> None:
    assert parse_url("http://Aladdin:open%20sesame@h/").credentials == (
        "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
    )
    assert parse_url("http://me@h/").credentials == "Basic bWU6"
    assert parse_url("http://h/").credentials is None


@pytest.mark.parametrize(
    ("host", "addresses"),
    [("127.0.0.1", ("127.0.0.1:81",)), ("::1", ("[::1]:81",))],
)
def test_an_address_is_itself(host: str, addresses: tuple[str, ...]) -> None:
    assert resolve(host, 81) == addresses


def test_a_name_has_its_addresses_once_in_the_order_of_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
        six = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", port, 0, 3))
        four = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", port))
        return [six, four, four]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    assert resolve("name.example", 81) == ("[fe80::1%3]:81", "192.0.2.1:81")


def test_a_name_that_does_not_resolve_has_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
        raise socket.gaierror(socket.EAI_NONAME, "not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert resolve("name.example", 81) == ()


def test_a_resolver_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for_ever = threading.Event()

    def hang(host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
        for_ever.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    assert resolve("name.example", 81, timeout_s=0.05) == ()
    for_ever.set()


@pytest.mark.parametrize(
    ("line", "pair"),
    [
        ("Accept: */*", ("Accept", "*/*")),
        ("X-Empty:", ("X-Empty", "")),
        ("X:  a:b  ", ("X", "a:b")),
        ("Host: other.example", ("Host", "other.example")),
        ("X-Note: grüß dich", ("X-Note", "grüß dich")),
    ],
)
def test_a_header_is_a_name_and_a_value(line: str, pair: tuple[str, str]) -> None:
    assert parse_header(line) == pair


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("nocolon", "no colon"),
        (": x", "a name that is not a header name"),
        ("a b: x", "a name that is not a header name"),
        ("a : x", "a name that is not a header name"),
        ("ü: x", "a name that is not a header name"),
        ("A: b\r\nC: d", "control character"),
        ("A: b\nC: d", "control character"),
        ("A: b\x00", "control character"),
        ("A: \x7f", "control character"),
        ("A\r\nB: c", "a name that is not a header name"),
        ("A: \udcff", "not UTF-8"),
        ("Content-Length: 3", "trueload sets Content-Length itself"),
        ("transfer-encoding: chunked", "trueload sets transfer-encoding itself"),
        ("Connection: close", "trueload sets Connection itself"),
    ],
)
def test_a_header_that_could_break_the_request_is_refused(line: str, complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_header(line)
    assert complaint in caught.value.message
    assert "\n" not in caught.value.message


def request(url: str = "http://h/", **changes: Any) -> Any:
    fields: dict[str, Any] = {"method": None, "headers": (), "user": None, "body": None}
    return make_request(parse_url(url), **{**fields, **changes})


def test_a_body_makes_a_request_a_post_unless_a_method_is_given() -> None:
    assert request().method == "GET"
    assert request(body=b"").method == "POST"
    assert request(body=b"x", method="PUT").method == "PUT"


@pytest.mark.parametrize("method", ["", "G T", "GET\r\n", "GÉT", "G/", "CONNECT"])
def test_what_is_no_method_is_refused(method: str) -> None:
    complaint = "CONNECT asks for a tunnel" if method == "CONNECT" else "is not a method"
    with pytest.raises(UserError, match=complaint):
        request(method=method)


def test_two_ways_to_name_a_user_exclude_each_other() -> None:
    assert request(user="a:b").headers == (("Authorization", "Basic YTpi"),)
    assert request("http://a:b@h/").headers == (("Authorization", "Basic YTpi"),)
    header = "a user and an Authorization header cannot be used together"
    for changes, complaint in (
        ({"url": "http://a@h/", "user": "b:c"}, "--user and the URL both name a user"),
        ({"user": "b:c", "headers": ("Authorization: x",)}, header),
        ({"url": "http://a@h/", "headers": ("authorization: x",)}, header),
        ({"headers": ("Host: a", "host: b")}, "the header host is given twice"),
        ({"user": "a"}, "--user is not a name, a colon and a password"),
        ({"user": "a\r\nX: y"}, "--user has a control character"),
    ):
        with pytest.raises(UserError, match=complaint):
            request(**changes)


@pytest.mark.parametrize(
    ("texts", "codes"),
    [((), None), (("200",), (200,)), (("404, 200", "301"), (200, 301, 404))],
)
def test_expected_statuses_are_codes(texts: tuple[str, ...], codes: tuple[int, ...] | None) -> None:
    assert parse_statuses(texts) == codes


def test_a_class_of_statuses_is_a_hundred_codes() -> None:
    assert parse_statuses(("3xx",)) == tuple(range(300, 400))


@pytest.mark.parametrize("text", ["", "99", "100", "1xx", "600", "2x", "20 0", "-200", "200,"])
def test_what_is_no_final_status_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a final status code"):
        parse_statuses((text,))


def test_a_body_comes_from_the_flag_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "body"
    file.write_bytes(b"\x00\xff")
    assert read_body(None, None) is None
    assert read_body("hä", None) == "hä".encode()
    assert read_body(f"@{file}x", None) == f"@{file}x".encode(), "no file is called that"
    with pytest.raises(UserError, match="--body sends text, not a file"):
        read_body(f"@{file}", None)
    assert read_body(None, file) == b"\x00\xff"


@pytest.mark.parametrize("name", ["missing", ".", "nul\0"])
def test_a_body_file_that_cannot_be_read_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_body(None, tmp_path / name)


def test_an_endless_body_file_is_refused() -> None:
    with pytest.raises(UserError, match="too large"):
        read_body(None, Path("/dev/zero"))


def test_secrets_are_kept_out_of_what_is_stored() -> None:
    assert redact_url("http://me:secret@h/p?q=a@b") == "http://<redacted>@h/p?q=a@b"
    assert redact_url("http://h/p@q") == "http://h/p@q"
    headers = (("Accept", "x"), ("COOKIE", "secret"), ("authorization", "secret"))
    assert "secret" not in str(redact_headers(headers))
    assert redact_headers(headers)[0] == ("Accept", "x")
    command = ["trueload", "http", "http://me:secret@h/", "-H", "Cookie: secret", "-H", "A: b"]
    command += ["--header=Authorization: secret", "-HCookie:secret", "--user", "secret"]
    command += ["--user=secret", "--header", "cookie:secret", "-d", "1s"]
    shown = redact_command(command)
    assert "secret" not in " ".join(shown)
    assert len(shown) == len(command)
    assert "A: b" in shown
    assert shown[-1] == "1s"


def test_a_command_line_with_bytes_that_are_no_text_can_be_stored() -> None:
    words = redact_command(["trueload", "http", "http://h/", "-H", "A: \udce9", "--json=\udcff"])
    assert words[3:] == ("-H", "A: \\udce9", "--json=\\udcff")


@pytest.mark.parametrize(
    ("text", "metric", "limit"),
    [
        ("p99>20ms", "p99", 20_000_000),
        (" p99.9 >= 1s ", "p99.9", 10**9),
        ("p999>1s", "p999", 10**9),
        ("max<1s", "max", 10**9),
        ("throughput<50k/s", "throughput", 50_000),
        ("errors>0.1%", "errors", 0.001),
    ],
)
def test_a_threshold_is_a_metric_an_operator_and_a_limit(
    text: str, metric: str, limit: float
) -> None:
    (found,) = parse_condition(text).parts
    assert found.metric == metric
    assert found.limit == pytest.approx(limit)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "at its end: a metric is missing"),
        ("xx>1s", "at character 1: 'xx' is no metric"),
        (" P99>1s", "at character 2: 'P99' is no metric"),
        ("p0>1s", "at character 1: 'p0' is no metric"),
        ("p99", "at its end: one of > >= < <= is missing"),
        ("p99=1s", "at character 4: one of > >= < <= is missing"),
        ("p99>", "at its end: a value is missing"),
        ("p99>x", "at character 5: 'x' is not a duration: write for example 10s"),
        ("p99>>1s", "at character 5"),
        ("p99 > 20", "at character 7: '20' has no unit: durations are like 500ms, 10s, 2m"),
        ("throughput>1ms", "at character 12"),
        ("errors>1s", "at character 8"),
        ("errors>5", "at character 8: '5' is more than all: shares are like 1% or 0.01"),
        ("errors>101%", "at character 8: '101%' is more than all"),
        ("errors>1", "at character 8: '1' is all: shares are like 1% or 0.01"),
        ("errors > 100%", "at character 10: '100%' is all"),
        ("p99>1s andmore", "at character 5"),
        ("p99>1s and more", "at character 12: 'more' is no metric"),
        ("p99>1s and", "at its end: a metric is missing"),
        ("and p99>1s", "at character 1: a metric is missing"),
        ("p99>1s and and p50>1s", "at character 12: a metric is missing"),
        ("p99>1s and p50>", "at its end: a value is missing"),
        ("p99>1s\np50>1s", "at character 5"),
    ],
)
def test_a_malformed_threshold_is_told_with_the_place(text: str, complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_condition(text)
    assert complaint in caught.value.message


@pytest.mark.parametrize(
    ("text", "form", "complaint"),
    [
        ("p99>10ms", LIMIT, "--limit 'p99>10ms', at character 4: one of < <= is missing"),
        ("throughput<5k/s", LIMIT, "at character 1: 'throughput' cannot be used here"),
        ("p99<10ms and errors>1%", LIMIT, "at character 20: one of < <= is missing"),
        ("p99<10", LIMIT, "at character 5: '10' has no unit: durations are like 500ms, 10s, 2m"),
        ("p99>20ms", RATIO, "at character 5: '20ms' is not a ratio: ratios are like 0.95"),
        ("errors>1.5", RATIO, "at character 1: 'errors' cannot be used here"),
        ("throughput<-1", RATIO, "'-1' is not a ratio"),
    ],
)
def test_each_flag_takes_its_own_form(text: str, form: Form, complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_condition(text, form)
    assert complaint in caught.value.message


def test_parts_are_joined_by_and() -> None:
    limit = parse_condition("p99<10ms and p99.9 <= 1s  and errors<0.1%", LIMIT)
    assert [part.text for part in limit.parts] == ["p99<10ms", "p99.9 <= 1s", "errors<0.1%"]
    assert parse_condition("throughput<0.95", RATIO).parts[0].limit == 0.95


@pytest.mark.parametrize(
    ("condition", "is_crossed"),
    [
        ("p99<1h and errors<1%", True),
        ("p99<1h and errors>1%", False),
        ("p99>1h and errors<1%", False),
    ],
)
def test_all_parts_of_a_condition_must_hold(condition: str, is_crossed: bool) -> None:
    assert bool(crossed([parse_condition(condition)], [fast_with_failures(0)])) is is_crossed


def fast_with_failures(failed: int) -> Record:
    latency = histogram((1_000_000, 10_000 - failed))
    return good_record(
        counts=counts(ok=10_000 - failed, failed={"reset": failed} if failed else {}),
        histograms=Histograms(
            latency=latency, service=None, connect=None, first_byte=None, total=None
        ),
        latency_ns=distribution(latency),
    )


@pytest.mark.parametrize(
    ("condition", "failed", "is_crossed"),
    [
        ("p99>20ms", 0, False),
        ("p99>20ms", 100, False),  # exactly one in a hundred: the 99th is still an answer
        ("p99>20ms", 101, True),
        ("p50>20ms", 4_000, False),
        ("p50>20ms", 6_000, True),
        ("p100>1h", 1, True),
        ("max>1h", 1, True),
        ("mean>1h", 1, True),
        ("max>1h", 0, False),
        ("min>1h", 10_000, True),
        ("p50<1h", 10_000, False),
        ("errors>1%", 100, False),
        ("errors>=1%", 100, True),
        ("throughput<5k/s", 0, False),
        ("throughput<50k/s", 0, True),
    ],
)
def test_failing_never_looks_fast(condition: str, failed: int, is_crossed: bool) -> None:
    found = crossed([parse_condition(condition)], [fast_with_failures(failed)])
    assert bool(found) is is_crossed
    for crossing in found:
        assert condition in crossing.sentence()


def test_of_several_trials_the_median_decides() -> None:
    threshold = parse_condition("errors>1%")
    good, bad = fast_with_failures(0), fast_with_failures(500)
    assert not crossed([threshold], [good, bad, good])
    assert crossed([threshold], [bad, good, bad])


def test_a_metric_is_in_its_unit() -> None:
    record = fast_with_failures(0)
    assert metric_value("p50", record) == pytest.approx(1_000_000, rel=2e-3)
    assert metric_value("throughput", record) == 10_000
    assert metric_value("errors", record) == 0


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("localhost", "http://localhost"),
        ("localhost:8080/a?b=1", "http://localhost:8080/a?b=1"),
        ("[::1]:8080/", "http://[::1]:8080/"),
        ("me:secret@h/", "http://me:secret@h/"),
        ("https://h/", "https://h/"),
        (":8080", "http://localhost:8080"),
        (":9/a", "http://localhost:9/a"),
        ("8080", "http://localhost:8080"),
        ("8080/a?b", "http://localhost:8080/a?b"),
        ("8080?b", "http://localhost:8080?b"),
    ],
)
def test_what_is_typed_may_lack_its_scheme(text: str, url: str) -> None:
    assert parse_given_url(text) == parse_url(url)


def test_a_typed_url_of_websocket_is_one_without_tls() -> None:
    assert parse_given_url("h:80/ws", WS) == parse_url("ws://h:80/ws", WS)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://localhost/", "localhost:80"),
        ("https://localhost/", "localhost:443"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("ws://h/", "h:80"),
    ],
)
def test_a_message_names_the_port_in_any_case(url: str, shown: str) -> None:
    assert parse_url(url, WS if url.startswith("ws") else HTTP).host_port == shown


@pytest.mark.parametrize(
    "text",
    ["", "//host/", "http:/host/", "http//host/", "ws:host", "://host/", "/a", "?a", ":", ":/a"],
)
def test_what_is_no_url_is_none_when_it_is_typed(text: str) -> None:
    with pytest.raises(UserError, match="has no scheme" if text else "the URL is empty"):
        parse_given_url(text)
