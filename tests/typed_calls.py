"""Calls as a user would write them, for mypy: right ones, and wrong ones with their error.

mypy must find each error, because an ``ignore`` that nothing needs is an error itself. Nothing runs
this; tests/unit/test_types.py has mypy read it.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Unpack

import trueload
from trueload.pytest_plugin import Trueload


def right() -> None:
    url = "http://127.0.0.1:8080/"
    r = trueload.http(url, connections=64, duration=5)
    trueload.http(url, duration=0.5, warmup=timedelta(seconds=1), timeout="500ms")
    trueload.http(url, rate="20k/s", arrivals="poisson", limit="p99<10ms", search="rate")
    trueload.http(url, header={"Accept": "text/plain"}, body={"a": [1]}, expect_status=[200, 404])
    trueload.http(url, body=b"x", body_file=Path("x"), cpus=range(2), fail_on=["p99>20ms"])
    trueload.http(targets="targets.jsonl", connections=None)
    trueload.ws("ws://127.0.0.1:8080/ws", mode="broadcast", step=100, dialect="json")
    trueload.tcp("127.0.0.1:9000", size="1KiB", half_close=True)
    trueload.udp("127.0.0.1:9000", size=64, place=["ssh:a", "ssh:b"])
    number: float = r.p99
    part: float | None = r.throughput.bytes_in_per_s
    held: list[bool] = [
        r.p99 < 0.020 < r.latency.max,
        r.p99 < "20ms",
        r.p50 < timedelta(seconds=1),
        r.p50 * 2 < r.p99 - r.p50,
        r.errors < "1%",
        r.throughput > "50k/s",
        r.verdict == "valid",
        r.p99.ms + number + (part or 0) > 0,
        r.checks[0].status == "pass",
    ]
    assert all(held)
    compared = trueload.ab(url, url, repeat=3, duration=1)
    assert compared.b.p99 < compared.a.p99
    assert trueload.suite("http-servers", subjects=["go"], connections=[8, 64]).ranked
    with trueload.serve("http", stall_share="1%", stall_for=0.5, tls=True) as server:
        trueload.http(server.url, cacert=server.cacert)
    with trueload.serve("udp", listen="127.0.0.1:0"), trueload.serve(threads=2):
        pass


async def right_async() -> None:
    r: trueload.Result = await trueload.aio.http("http://127.0.0.1:8080/", duration=5)
    ab: trueload.AbResult = await trueload.aio.ab(r.url, r.url, repeat=2)
    assert ab.ratio


def right_fixture(trueload: Trueload) -> None:
    assert trueload.http("http://127.0.0.1:8080/", duration=5, invalid_ok=True).p99 < 0.020
    with trueload.serve() as server:
        trueload.ab(server.url, server.url)


def right_wrapper(**options: Unpack[trueload.HttpOptions]) -> trueload.Result:
    return trueload.http("http://127.0.0.1:8080/", **options)


async def wrong(fixture: Trueload) -> None:
    url = "http://127.0.0.1:8080/"
    trueload.http(url, conections=64)  # type: ignore[call-arg]
    trueload.http(url, json="-")  # type: ignore[call-arg]
    trueload.http(url, duration=[5])  # type: ignore[arg-type]
    trueload.http(url, connections=1.5)  # type: ignore[arg-type]
    trueload.http(url, driver="uring")  # type: ignore[arg-type]
    trueload.http(url, close=1)  # type: ignore[arg-type]
    trueload.tcp("127.0.0.1:9000", header="A: b")  # type: ignore[call-arg]
    trueload.ab(url)  # type: ignore[call-arg]
    trueload.ab(url, url, limit="p99<10ms")  # type: ignore[call-arg]
    trueload.suite("http-servers", cores="both")  # type: ignore[arg-type]
    trueload.serve("tcp", tls=True)  # type: ignore[call-overload]
    trueload.serve("quic")  # type: ignore[call-overload]
    assert trueload.http(url).p98  # type: ignore[attr-defined]
    assert trueload.http(url).p99 < None  # type: ignore[operator]
    assert trueload.http(url).p99 < [1]  # type: ignore[operator]
    trueload.aio.http(url)  # type: ignore[unused-coroutine]
    await trueload.aio.http(url, conections=64)  # type: ignore[call-arg]
    fixture.http(url, conections=64)  # type: ignore[call-arg]
    fixture.http(url, invalid_ok="no")  # type: ignore[arg-type]
