"""Where to connect, according to the flags, as tables."""

from __future__ import annotations

import pytest
from trueload.errors import UserError
from trueload.protocol.request_options import RouteOptions
from trueload.request.route import Override, Route, check_sources, make_route, parse_override
from trueload.request.url import parse_url


@pytest.mark.parametrize(
    ("text", "override"),
    [
        ("example.org:80:127.0.0.1", Override("example.org", 80, ("127.0.0.1",))),
        ("EXAMPLE.org.:80:127.0.0.1", Override("example.org", 80, ("127.0.0.1",))),
        ("a:8080:::1", Override("a", 8080, ("::1",))),
        ("a:8080:[::1]", Override("a", 8080, ("::1",))),
        ("a:80:[::1],127.0.0.2", Override("a", 80, ("::1", "127.0.0.2"))),
        ("*:80:127.0.0.1", Override("*", 80, ("127.0.0.1",))),
        ("+a:80:127.0.0.1", Override("a", 80, ("127.0.0.1",))),
        ("[::2]:80:::1", Override("::2", 80, ("::1",))),
    ],
)
def test_an_address_for_a_host_and_port_is_read_as_curl_has_it(
    text: str, override: Override
) -> None:
    assert parse_override(text) == override


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "a:80", "a:80:", ":80:127.0.0.1", "a::127.0.0.1", "a:b:127.0.0.1", "-a:80"),
        *("a:0:127.0.0.1", "a:65536:127.0.0.1", "a:80:b", "a:80:127.0.0.1,", "a:80:127.0.0.1:8080"),
        *("a:80:[::1", "a:80:[]", "a b:80"),
    ],
)
def test_what_is_no_such_thing_is_refused_with_one_line_and_a_hint(text: str) -> None:
    with pytest.raises(UserError, match="--resolve") as caught:
        parse_override(text)
    assert caught.value.hint.startswith("write it as --resolve HOST:PORT:ADDRESS")


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("http://example.org/", ("127.0.0.1:80",)),
        ("http://EXAMPLE.org./", ("127.0.0.1:80",)),
        ("http://example.org:8080/", ("[::1]:8080", "127.0.0.3:8080")),
        ("http://127.0.0.9:81/", ("127.0.0.4:81",)),
        ("http://127.0.0.9:82/", ("127.0.0.9:82",)),
        ("http://example.org:81/", ("127.0.0.5:81",)),
        ("http://example.net:81/", ("127.0.0.6:81",)),
    ],
)
def test_the_last_that_names_a_host_decides_and_then_the_last_for_any(
    url: str, addresses: tuple[str, ...]
) -> None:
    overrides = [
        "example.org:80:127.0.0.2",
        "example.org:80:127.0.0.1",
        "example.org:8080:::1,127.0.0.3",
        "*:81:127.0.0.4",
        "example.org:81:127.0.0.5",
        "*:81:127.0.0.6",
        "127.0.0.9:81:127.0.0.4",
    ]
    route = make_route(RouteOptions(resolve=tuple(overrides)))
    assert route.addresses(parse_url(url)) == addresses


def test_a_socket_file_is_where_to_connect_whatever_the_url_says() -> None:
    route = make_route(RouteOptions(), "/run/a b.sock")
    assert route.addresses(parse_url("http://nowhere.invalid/")) == ("unix:/run/a b.sock",)


def test_the_path_of_a_socket_file_is_made_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    route = make_route(RouteOptions(), "run/../a.sock")
    assert route == Route(unix="/a.sock")


@pytest.mark.parametrize("path", ["", "/a\0b", "/" + "a" * 108, "/\udcff"])
def test_a_path_that_no_socket_can_have_is_refused(path: str) -> None:
    with pytest.raises(UserError, match="--unix"):
        make_route(RouteOptions(), path)


@pytest.mark.parametrize("other", ["resolve", "local_address"])
def test_what_is_about_tcp_does_not_go_with_a_socket_file(other: str) -> None:
    with pytest.raises(UserError, match="cannot be used together"):
        make_route(RouteOptions(**{other: ("127.0.0.1",)}), "/a")


@pytest.mark.parametrize(
    ("addresses", "local_addresses", "refused"),
    [
        (("unix:/run/app.sock",), (), None),
        ((), ("127.0.0.1",), None),
        (("127.0.0.1:80",), ("127.0.0.2", "127.0.0.3"), None),
        (("[fe80::1%eth0]:80", "127.0.0.1:80"), ("::1", "127.0.0.1"), None),
        (("[::1]:80",), ("::2", "127.0.0.1"), "127.0.0.1 is IPv4, and"),
        (("127.0.0.1:80",), ("::1",), "::1 is IPv6, and 127.0.0.1:80 is not"),
    ],
)
def test_an_address_to_connect_from_is_of_the_family_of_one_to_connect_to(
    addresses: tuple[str, ...], local_addresses: tuple[str, ...], refused: str | None
) -> None:
    if refused is None:
        check_sources(addresses, local_addresses)
    else:
        with pytest.raises(UserError, match=refused):
            check_sources(addresses, local_addresses)
