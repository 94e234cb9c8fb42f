"""``--proxy`` as a user meets it: through the command, and a real proxy."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Trueload, start_server
from http_proxy import HttpProxy
from test_tls_cli import Secure, start_secure

pytestmark = pytest.mark.engine

FEW = ("--requests", "20", "-c", "2", "--timeout", "5s", "--no-save", "--json", "-")
USER = f"Proxy-Authorization: Basic {base64.b64encode(b'me:secret').decode()}".encode()


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    command = Trueload(tmp_path_factory.mktemp("secure"))
    yield start_secure(command, "--http", "2")
    command.close()


def test_a_request_without_tls_names_the_whole_url(trueload: Trueload) -> None:
    server = start_server(trueload)
    with HttpProxy() as proxy:
        url = f"http://127.0.0.1:{server.port}/wait/1"
        by_proxy = ("--proxy", proxy.url.replace("//", "//me:secret@"))
        found = trueload.run("http", url, *FEW, *by_proxy).measured()
        heads = list(proxy.heads)
    assert found["counts"]["ok"] == 20
    assert found["connections"]["established"] == 2
    assert [head.split(b"\r\n")[0] for head in heads] == [f"GET {url} HTTP/1.1".encode()]
    assert USER in heads[0]


@pytest.mark.parametrize("flags", [(), ("--http", "2"), ("--http", "auto"), ("--close",)])
@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
def test_tls_goes_through_a_tunnel(
    trueload: Trueload, secure: Secure, flags: tuple[str, ...], driver: str
) -> None:
    with HttpProxy() as proxy:
        by_proxy = ("--proxy", proxy.url.replace("//", "//me:secret@"), "--driver", driver)
        words = ("http", secure.url, *FEW, *by_proxy, *flags)
        found = trueload.run(*words, "--cacert", secure.cacert).measured()
        heads = list(proxy.heads)
    assert found["counts"]["ok"] == 20
    to = f"127.0.0.1:{secure.port}".encode()
    assert heads == [b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n" % (to, to, USER)]
    assert "secret" not in str(found["plan"])


ONES = [bytes([byte]) for byte in b"HTTP/1.1 200 Connection established\r\nVia: 1.1 a\r\n\r\n"]


@pytest.mark.parametrize(
    "pieces",
    [
        ONES,
        [b"HTTP/1.0 200 OK\r\n\r\n"],
        # RFC 9110, 9.3.6: a client ignores both.
        [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"],
        [b"HTTP/1.1 299 Odd\r\nTransfer-Encoding: chunked\r\n\r\n"],
    ],
)
def test_any_2xx_opens_a_tunnel(trueload: Trueload, secure: Secure, pieces: list[bytes]) -> None:
    with HttpProxy(answers=pieces) as proxy:
        words = ("http", secure.url, *FEW, "--proxy", proxy.url, "--cacert", secure.cacert)
        assert trueload.run(*words).measured()["counts"]["ok"] == 20


@pytest.mark.parametrize(
    ("pieces", "why"),
    [
        ([b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"], "with 407"),
        ([b"HTTP/1.1 502 Bad Gateway\r\n\r\nsorry"], "with 502"),
        ([b"SSH-2.0-x\r\n"], "not HTTP/1.1"),
        ([b"HTTP/1.1 200" + b"a" * 100_000], "not HTTP/1.1"),
        (None, "ended the connection before it answered"),
        ([], "did not answer CONNECT in time"),
    ],
)
def test_a_proxy_that_opens_no_tunnel_is_told(
    trueload: Trueload, secure: Secure, pieces: list[bytes] | None, why: str
) -> None:
    few = ("--requests", "4", "-c", "2", "--timeout", "300ms", "--no-save", "--json", "-")
    with HttpProxy(answers=pieces) as proxy:
        words = ("http", secure.url, *few, "--proxy", proxy.url, "--cacert", secure.cacert)
        done = trueload.run(*words)
        name = f"127.0.0.1:{proxy.port}"
    assert done.code == 3, done
    assert set(done.json()["counts"]["failed"]) == {"connect.proxy"}
    assert why in done.err
    assert f"hint: does the proxy at {name} let CONNECT through" in done.err


def test_the_password_of_a_proxy_is_in_no_store_and_no_message(
    trueload: Trueload, tmp_path: Path
) -> None:
    proxy = "http://me:hunter2@127.0.0.1:1"
    few = ("--requests", "1", "-c", "1")
    done = trueload.run("http", "http://127.0.0.1:9/", *few, "--proxy", proxy)
    shown = trueload.run("runs", "show", "last", "--json")
    assert done.code == 3
    assert "is a proxy listening on 127.0.0.1:1?" in done.err
    assert "--proxy" in shown.out
    for text in (done.out, done.err, shown.out):
        assert "hunter2" not in text
        assert base64.b64encode(b"me:hunter2").decode() not in text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("http://a/", "--proxy", "socks5://p:1"), "by socks5://"),
        (("http://a/", "--proxy", "https://p:1"), "by https://"),
        (("http://a/", "--proxy", "http://p:1/x"), "names a path"),
        (("http://a/", "--proxy", "http://"), "--proxy: "),
        (("http://a/", "--proxy", "p:1", "--unix", "/a"), "cannot be used together"),
        (("http://a/", "--proxy", "p:1", "--http", "2"), "cannot go through a proxy"),
    ],
)
def test_what_cannot_go_through_a_proxy_is_refused(
    trueload: Trueload, words: tuple[str, ...], why: str
) -> None:
    done = trueload.run("http", *words)
    assert done.code == 2
    assert why in done.err
    assert done.err.count("\n") == 2
