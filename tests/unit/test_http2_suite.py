"""Suites over HTTP/2: their loads, and what is refused before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness import ROOT
from trueload.compare.run_records import row_name
from trueload.errors import UserError
from trueload.protocol.exchange import WindowsPlan
from trueload.record.client import ClientAsked
from trueload.subjects.contracts import load_contract
from trueload.suites.changes import Changes
from trueload.suites.clients import client_load
from trueload.suites.definition import Suite, load_suite
from trueload.suites.http import PlannedHttp, http_labels, labelled_http
from trueload.suites.plan import (
    Cell,
    PlannedSubject,
    SuitePlan,
    cells,
    check_contract,
    make_plan,
)
from trueload.suites.pools import labelled_pools, pool_labels

SUBJECT = PlannedSubject(
    name="c/s",
    language="c",
    framework="s",
    variant="",
    category="micro",
    trap=False,
    digest="",
)
OWN = """
about    = "a suite"
contract = "http2-bytes"
requests = 10
{more}
"""


def catalogue_plan(**changes: Any) -> SuitePlan:
    suite = load_suite(ROOT / "suites" / "http2-servers.toml")
    check_contract(suite, load_contract(ROOT / "contracts", suite.contract))
    return make_plan("http2-servers", suite, [SUBJECT], Changes(**changes))


def own_suite(folder: Path, more: str) -> Suite:
    path = folder / "own.toml"
    path.write_text(OWN.format(more=more))
    return load_suite(path)


def test_the_suite_of_the_catalogue_has_every_combination_once() -> None:
    plan = catalogue_plan()
    assert len({cell.key for cell in cells(plan)}) == len(plan.loads) == 3 * 3 * 2 * 2
    assert plan.http2 == WindowsPlan(stream_window=6 * 2**20, connection_window=15 * 2**20)
    assert SuitePlan.model_validate_json(plan.model_dump_json()) == plan


def test_streams_are_in_flight_on_each_connection_and_a_load_says_what_it_is() -> None:
    (first, *_) = loads = catalogue_plan(connections=(8,), streams=(10,)).loads
    assert len(loads) == 4
    assert first.title == "8 connections, 10 streams on each, /bytes/1024, single core"
    assert [load.over_tls for load in loads] == [False, False, True, True]
    contract = load_contract(ROOT / "contracts", "http2-bytes")
    plan = catalogue_plan()
    for load in loads:
        assert plan.load_of(load).pipeline == 10
        setting = plan.setting(contract, load)  # type: ignore[arg-type]
        assert load.http is not None
        assert (setting.tls, setting.path) == (load.http.tls, load.http.path)
        assert setting.http2 == plan.http2


def test_clients_have_streams_on_the_connections_of_their_pools() -> None:
    suite = load_suite(ROOT / "suites" / "http2-clients.toml")
    check_contract(suite, load_contract(ROOT / "contracts", suite.contract))
    plan = make_plan("http2-clients", suite, [SUBJECT], Changes())
    pools = [load.pools for load in plan.loads]
    assert [(p.pools, p.pool_size, p.streams, p.max_streams) for p in pools if p is not None] == [
        (1, 1, 100, 1000),
        (1, 1, 400, 1000),
        (4, 1, 100, 1000),
        (4, 1, 400, 1000),
        (1, 1, 400, 100),
    ]
    *_, limited = pools
    assert limited is not None
    assert limited.short == "1x1x400 for 400, 100 permitted"
    assert labelled_pools(pool_labels(limited)) == limited
    load = client_load(plan, Cell(SUBJECT, plan.loads[-1]))
    setup = load.setup("127.0.0.1:1", "https")
    assert (setup.url, setup.pipelining) == ("https://127.0.0.1:1/wait/10", 400)
    asked = ClientAsked(
        setup=setup, requests=1, warmup_requests=0, wait_ms=10, files=None, max_streams=100
    )
    assert (asked.room, asked.pool_at_once, asked.at_once) == (1, 100, 100)
    assert SuitePlan.model_validate_json(plan.model_dump_json()) == plan


def test_a_row_is_named_by_all_that_its_load_is() -> None:
    load = PlannedHttp(streams=10, tls=True, path="/bytes/1024")
    labels = {"subject": "c/h2o", "connections": "8", "cores": "single", **http_labels(load)}
    assert labelled_http(labels) == load
    expected = "c/h2o, 8 connections, 10 streams on each, over TLS, /bytes/1024, single core"
    assert row_name(labels) == expected


WRONG = [
    ("streams = [2]", "streams are of HTTP/2"),
    ("pipeline = [2]\n[http2]", "pipeline is of HTTP/1.1"),
    ("streams = [0]\n[http2]", "must be more than 0"),
    ("path = ['bytes']\n[http2]", "path"),
    ("[http2]\nwindow = '0'", "is not from 1 B"),
    ("[http2]\nconnection_window = '1KiB'", "is not from 65,535 B"),
    ("[http2]\nheader_table_size = '2MiB'", "is not from 0 to 1 MiB"),
    ("[http2]\nstreams = 3", "http2.streams"),
    ("[http2]\nupgrade = true", "http2.upgrade"),
]


def test_what_the_server_may_send_and_remember_goes_into_the_plan(tmp_path: Path) -> None:
    given = "[http2]\nwindow = 'rfc'\nconnection_window = '1MiB'\nheader_table_size = '0'"
    found = own_suite(tmp_path, given).http2
    assert found is not None
    assert found.windows == WindowsPlan(
        stream_window=65_535, connection_window=2**20, header_table_bytes=0
    )


@pytest.mark.parametrize(("more", "word"), WRONG)
def test_a_load_of_the_other_version_is_refused(tmp_path: Path, more: str, word: str) -> None:
    load = more if more.startswith("[") else f"[[loads]]\n{more}"
    with pytest.raises(UserError) as refused:
        own_suite(tmp_path, load)
    assert word in refused.value.message


def test_a_contract_and_its_suite_speak_the_same_version(tmp_path: Path) -> None:
    newer = load_contract(ROOT / "contracts", "http2-bytes")
    older = load_contract(ROOT / "contracts", "http-plaintext")
    with pytest.raises(UserError, match="is one of HTTP/2, and the suite's requests go"):
        check_contract(own_suite(tmp_path, ""), newer)
    with pytest.raises(UserError, match=r"is one of HTTP/1\.1"):
        check_contract(own_suite(tmp_path, "[http2]"), older)
    asked = own_suite(tmp_path, "[[loads]]\npath = ['/bytes/7']\n[http2]")
    with pytest.raises(UserError, match="does not say what /bytes/7 answers"):
        check_contract(asked, newer)


@pytest.mark.parametrize(("given", "right"), [("pipeline", "--streams"), ("streams", "--pipeline")])
def test_the_option_of_the_other_version_is_refused(given: str, right: str) -> None:
    name = "http2-servers" if given == "pipeline" else "quick"
    suite = load_suite(ROOT / "suites" / f"{name}.toml")
    with pytest.raises(UserError) as refused:
        make_plan(name, suite, [SUBJECT], Changes(**{given: (2,)}))  # type: ignore[arg-type]
    assert (refused.value.message.split()[0], refused.value.hint) == (f"--{given}", f"use {right}")
