"""What a suite sends to a subject, as the subject's contract says."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import server_contract
from trueload.protocol.client import ClientContract
from trueload.request.exchange import TcpEcho, WsBroadcast, WsEcho
from trueload.runner.load_request import what_is_sent
from trueload.subjects.contracts import (
    ShootoutContract,
    as_spoken,
    load_contract,
)
from trueload.subjects.manifest import load_subject
from trueload.suites.definition import load_suite, suite_names

ROOT = Path(__file__).resolve().parents[2]
AT = "127.0.0.1:9000"


def test_a_contract_of_http_names_a_request_and_its_answer() -> None:
    sent = what_is_sent(server_contract("http-plaintext"), AT, None)
    assert (sent.url, sent.exchange) == (f"http://{AT}/", None)
    assert sent.request is not None
    assert sent.request.host == AT
    assert sent.expect.body == b"Hello, World!"


def test_a_contract_of_echoes_names_a_message() -> None:
    sent = what_is_sent(server_contract("tcp-echo"), AT, None)
    assert (sent.url, sent.request) == (f"tcp://{AT}", None)
    assert isinstance(sent.exchange, TcpEcho)
    assert sent.exchange.messages.size_bytes == 64


@pytest.mark.parametrize("dialect", ["json", "binary", "actioncable", "phoenix"])
def test_a_contract_of_websocket_is_spoken_as_its_subject_does(dialect: str) -> None:
    contract = server_contract("ws-shootout")
    spoken = as_spoken(contract, "/cable", dialect)  # type: ignore[arg-type]
    assert isinstance(spoken, ShootoutContract)
    echo = what_is_sent(spoken, AT, None)
    assert isinstance(echo.exchange, WsEcho)
    assert echo.exchange.text == (dialect != "binary")
    sent = what_is_sent(spoken, AT, 200)
    assert sent.url == f"ws://{AT}/cable"
    assert isinstance(sent.exchange, WsBroadcast)
    assert (sent.exchange.dialect, sent.exchange.padding) == (dialect, 200)
    opening = sent.exchange.opening
    assert (opening.host, opening.path) == (AT, "/cable")
    offered = dict(opening.headers).get("Sec-WebSocket-Protocol")
    assert offered == ("actioncable-v1-json" if dialect == "actioncable" else None)


@pytest.mark.parametrize("name", suite_names(ROOT / "suites"))
def test_what_a_suite_compares_with_is_in_the_catalogue(name: str) -> None:
    suite = load_suite(ROOT / "suites" / f"{name}.toml")
    contract = load_contract(ROOT / "contracts", suite.contract)
    assert isinstance(contract, ClientContract) == (suite.clients is not None)
    named = {row.subject for each in suite.published_tables for row in each.rows} - {""}
    for subject in named:
        language, _, rest = subject.partition("/")
        folder = ROOT / "subjects" / language / rest.partition(":")[0]
        assert subject in {each.name for each in load_subject(folder)}
    connections = {count for axes in suite.loads for count in axes.connections}
    assert {each.connections for each in suite.published_tables} <= connections
