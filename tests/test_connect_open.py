"""``trueload http --connect-open`` as a user runs it, against the reference server."""

from __future__ import annotations

import re
from typing import Any

import pytest
from harness import Trueload, start_server
from samples import flat

pytestmark = pytest.mark.engine

OPENED = ("--connect-open", "100/s", "--requests", "20", "-c", "8", "--json", "-")


@pytest.mark.parametrize("http", ["1.1", "2"])
@pytest.mark.parametrize("driver", ["io_uring", "epoll"])
def test_each_connection_carries_one_request(trueload: Trueload, http: str, driver: str) -> None:
    server = start_server(trueload, "--http", "2")
    url = f"http://{server.host}:{server.port}/"
    record: Any = trueload.run("http", url, *OPENED, "--http", http, "--driver", driver).json()
    counts, found = record["counts"], record["openings"]
    assert (counts["scheduled"], counts["ok"], counts["failed"]) == (20, 20, {})
    assert (found["connect_ns"]["count"], found["first_byte_ns"]["count"]) == (20, 20)
    assert record["connections"]["established"] == record["connections"]["requested"] == 8
    assert found["connect_ns"]["min"] <= found["first_byte_ns"]["min"]
    assert record["histograms"]["total"] is not None, "each request has its own connection"


def test_handshakes_are_told_apart_and_the_text_has_each_step(trueload: Trueload) -> None:
    server = start_server(trueload, "--tls")
    url = f"https://{server.host}:{server.port}/"
    record: Any = trueload.run("http", url, *OPENED, "--insecure").json()
    found = record["openings"]
    full, resumed = found["full_handshake_ns"]["count"], found["resumed_handshake_ns"]["count"]
    assert full + resumed == record["counts"]["ok"] == 20
    assert resumed > 0
    out = trueload.run("http", url, *OPENED[:-2], "--insecure", "--no-tls-resumption").out
    assert re.search(r"connect p50 .* max .* full TLS p50 .* \(20 handshakes\)", flat([out]))
    assert not re.search(r"^resumed TLS", out, re.MULTILINE)
    assert "new connections, 8 at most at once" in out


def test_a_server_that_is_not_there_is_found_before_the_load(trueload: Trueload) -> None:
    done = trueload.run("http", "http://127.0.0.1:9/", *OPENED[:-2])
    assert done.code == 3
