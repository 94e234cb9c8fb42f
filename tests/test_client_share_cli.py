"""The generator's own part of the times in live runs, at the send and at the receive end."""

from __future__ import annotations

import pytest
from harness import Server, Trueload


@pytest.mark.parametrize("driver", ["auto", "epoll"])
@pytest.mark.parametrize("load", [("--requests", "1003"), ("--rate", "2k/s", "-d", "500ms")])
def test_one_connection_in_sixteen_tells_when_its_answers_arrived(
    trueload: Trueload, server: Server, driver: str, load: tuple[str, ...]
) -> None:
    done = trueload.run("http", server.url, "--json", "-", "-c", "32", "--driver", driver, *load)
    record = done.json()
    ok = record["counts"]["ok"]
    receive, trip = record["client_ns"]["receive"], record["round_trip_ns"]
    assert record["client_ns"]["send"]["count"] == record["counts"]["issued"]
    # Two of 32 connections are sampled, each with about as many answers as any other.
    assert receive["count"] == trip["count"]
    assert ok / 20 < trip["count"] < ok / 12
    assert trip["max"] <= record["service_ns"]["max"] * 1.001
    assert receive["max"] <= record["latency_ns"]["max"] * 1.001
