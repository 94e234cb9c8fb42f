"""Slow clients: which rates are taken, what they exclude, and what a result says of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from samples import counts, good_record
from trueload.commands import http, tcp, udp
from trueload.errors import UserError
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.option import read_texts
from trueload.report.accounts.slow_connections import SLOW_CONNECTIONS
from trueload.trial.plan import make_plan
from trueload.verdict.delayed_ack import check_delayed_ack
from trueload.verdict.generator_share import check_generator_share

URL = "http://127.0.0.1:8080/"


def record_of(**changes: Any) -> Any:
    """A record of clients that read 64 KiB a second; others as in ``changes``."""
    record = good_record(**changes)
    generate = record.plan.generate.model_copy(update={"read_rate_per_s": 65_536})
    plan = record.plan.model_copy(update={"generate": generate})
    return record.model_copy(update={"plan": plan})


@pytest.mark.parametrize(
    ("text", "per_s"), [("64KiB/s", 65_536), ("64KiB", 65_536), ("1", 1), ("1MB/s", 1_000_000)]
)
def test_a_rate_is_so_many_bytes_per_second(text: str, per_s: int) -> None:
    assert read_texts(EngineOptions, {"read_rate": text}).read_rate_per_s == per_s


@pytest.mark.parametrize("text", ["0", "2GiB/s", "fast", "64KiB/m"])
def test_other_rates_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write_rate"):
        read_texts(EngineOptions, {"write_rate": text})


def test_the_plan_has_the_rates_only_where_they_were_given() -> None:
    slow = make_plan(http.read_job(url=URL, read_rate=65_536).spec, (0,))
    assert (slow.read_rate_per_s, slow.write_rate_per_s) == (65_536, None)
    assert "write_rate_per_s" not in slow.model_dump()


@pytest.mark.parametrize(
    ("read", "flags", "why"),
    [
        (udp, {"where": "127.0.0.1:9", "write_rate": 9}, "UDP has none"),
        (http, {"url": URL, "write_rate": 1000, "body": "x" * 6000}, "--write-rate 1000 B/s take"),
        (http, {"url": URL, "read_rate": 1000, "expect_body": "x" * 6000}, "--read-rate 1000 B/s"),
        (
            http,
            {
                "url": URL,
                "read_rate": 4000,
                "expect_body": "x" * 6000,
                "http": "2",
                "streams": 4,
            },
            "longer than --timeout 5s",
        ),
        (tcp, {"where": "127.0.0.1:9", "read_rate": 100, "size": 1024}, "longer than --timeout 5s"),
    ],
)
def test_what_cannot_be_had_or_takes_too_long_is_refused(
    read: Any, flags: dict[str, Any], why: str
) -> None:
    with pytest.raises(UserError, match=why):
        read.read_job(**flags)


def test_the_hint_says_which_timeout_is_enough() -> None:
    with pytest.raises(UserError) as refused:
        http.read_job(url=URL, write_rate=1000, body="x" * 6000)
    assert "--timeout 12s" in refused.value.hint
    job = http.read_job(url=URL, write_rate=1000, body="x" * 6000, timeout=12 * 10**9)
    assert job.spec.engine.write_rate_per_s == 1000


def test_the_result_has_the_rate_and_the_memory_of_each_connection() -> None:
    assert SLOW_CONNECTIONS.shown(good_record()) == []
    record = record_of()
    assert dict(SLOW_CONNECTIONS.shown(record))["slow clients"].startswith("each reads 64.0 KiB/s")
    server = SimpleNamespace(rss_after_bytes=2**20, bytes_per_connection=2048.0)
    shown = dict(SLOW_CONNECTIONS.shown(record.model_copy(update={"server": server})))[
        "slow clients"
    ]
    assert shown.endswith("the server's memory is 1.00 MiB, 2.00 KiB for each connection")


def test_a_timeout_of_a_slow_client_is_told_apart_from_a_slow_server() -> None:
    failed = counts(ok=9_990, failed={"timeout.total": 10})
    found = dict(SLOW_CONNECTIONS.shown(record_of(counts=failed)))["too slow"]
    assert found == "an answer of more than 320 KiB takes longer than --timeout 5s; raise it"
    assert "too slow" not in dict(SLOW_CONNECTIONS.shown(record_of()))


def test_streams_of_a_connection_share_its_rate() -> None:
    record = record_of(counts=counts(ok=9_990, failed={"timeout.total": 10}))
    generate = record.plan.generate.model_copy(update={"pipeline": 10})
    plan = record.plan.model_copy(update={"generate": generate})
    found = dict(SLOW_CONNECTIONS.shown(record.model_copy(update={"plan": plan})))["too slow"]
    assert found.startswith("an answer of more than 32.0 KiB takes longer")


def test_bytes_that_wait_on_purpose_are_not_held_against_anybody() -> None:
    for check in (check_generator_share, check_delayed_ack):
        assert check(record_of()).status == "n/a", check.__name__
