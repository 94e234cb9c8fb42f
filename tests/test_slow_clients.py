"""``--read-rate`` and ``--write-rate`` as a user runs them, against the reference server."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Trueload, start_server
from samples import flat

pytestmark = pytest.mark.engine

MS = 1_000_000
FEW = ("--requests", "8", "-c", "4", "--json", "-")


@pytest.mark.parametrize("driver", ["io_uring", "epoll"])
@pytest.mark.parametrize("http", ["1.1", "2"])
def test_an_answer_takes_as_long_as_its_client_needs(
    trueload: Trueload, driver: str, http: str
) -> None:
    server = start_server(trueload, "--http", http)
    # 64 KiB at 256 KiB/s take 250 ms, less the piece that may pass at once and one made up for.
    words = ("--read-rate", "256KiB/s", "--driver", driver, "--http", http)
    url = f"http://{server.host}:{server.port}/bytes/65536"
    record: Any = trueload.run("http", url, *FEW, *words).json()
    assert (record["counts"]["ok"], record["counts"]["failed"]) == (8, {})
    assert record["latency_ns"]["min"] > 100 * MS


@pytest.mark.parametrize("http", ["1.1", "2"])
def test_a_request_leaves_as_slowly_as_it_is_told_to(trueload: Trueload, http: str) -> None:
    server = start_server(trueload, "--tls", "--http", http)
    words = ("--write-rate", "64KiB/s", "--body", "x" * 16_384, "--insecure", "-X", "POST")
    url = f"https://{server.host}:{server.port}/item"
    expect = ("--http", http, "--expect-status", "2xx,4xx")
    done = trueload.run("http", url, *FEW, *words, *expect)
    record: Any = done.json()
    assert record["counts"]["ok"] == 8
    assert record["latency_ns"]["min"] > 100 * MS


def test_an_answer_that_needs_more_time_than_there_is_names_the_remedy(trueload: Trueload) -> None:
    server = start_server(trueload)
    words = ("--read-rate", "64KiB/s", "--timeout", "300ms", *FEW[:4])
    out = trueload.run("http", f"http://{server.host}:{server.port}/bytes/65536", *words).out
    out = flat([out])
    assert "slow clients each reads 64.0 KiB/s" in out
    assert "an answer of more than 19.2 KiB takes longer than --timeout 300ms; raise it" in out
