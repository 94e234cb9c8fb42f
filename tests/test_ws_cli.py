"""``trueload ws`` as a user runs it, against the reference server and against faulty ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from harness import Finished, Server, Trueload, start_server
from trueload.shootout import Dialect
from ws_room import Room, peer

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
STEPS = ("--mode", "broadcast", "--step", "8", "--steps", "2", "--samples", "20")
LOOSE = ("--limit", "p95<5s", "--timeout", "3s")
# What else runs on the machine that tests run on is no matter of the server.
OF_THE_MACHINE = {"noise", "same-host", "hiccup", "quantile-width", "server-idle"}


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Dialect, Server]]:
    """A reference server for each dialect."""
    command = Trueload(tmp_path_factory.mktemp("rooms"))
    yield {
        dialect: start_server(command, "--dialect", dialect, service="ws") for dialect in DIALECTS
    }
    command.close()


def against(found: dict[str, Any]) -> set[str]:
    """The checks that say something against a run, other than of the machine."""
    checks = {each["name"] for each in found["checks"] if each["status"] in ("warn", "fail")}
    return checks - OF_THE_MACHINE


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_client_gets_every_broadcast_of_the_reference_server(
    trueload: Trueload, rooms: dict[Dialect, Server], dialect: Dialect
) -> None:
    url = f"ws://127.0.0.1:{rooms[dialect].port}/ws"
    done = trueload.run("ws", url, *STEPS, *LOOSE, "--dialect", dialect, "--json", "-")
    found = done.json()
    assert against(found) == set(), done
    for step in found["steps"]:
        clients = step["connections"]["established"]
        messages = step["plan"]["window"]["stop"]["count"]
        assert step["counts"]["ok"] == messages
        deliveries = step["deliveries"]
        assert deliveries["expected"] == deliveries["delivered"] == messages * clients
        assert deliveries["lost"] == deliveries["duplicate"] == 0
    loads = dict.fromkeys(step["step"]["load"] for step in found["steps"])
    assert list(loads)[:2] == [8, 16]


def broadcast_to(trueload: Trueload, room: Room, *flags: str) -> Finished:
    with peer(room) as (host, port):
        flags = (*STEPS, *LOOSE, "--dialect", room.dialect, *flags, "--json", "-")
        return trueload.run("ws", f"ws://{host}:{port}/", *flags)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_independent_server_is_measured_in_every_dialect(
    trueload: Trueload, dialect: Dialect
) -> None:
    done = broadcast_to(trueload, Room(dialect))
    found = done.json()
    assert against(found) == set(), done
    assert all(step["deliveries"]["lost"] == 0 for step in found["steps"])


@pytest.mark.parametrize(
    ("flaw", "wrong"),
    [("forgets one", "were lost"), ("says all twice", "came twice"), ("drops a client", "lost")],
)
def test_a_server_that_loses_or_doubles_messages_is_invalid_and_told_how_many(
    trueload: Trueload, flaw: str, wrong: str
) -> None:
    done = broadcast_to(trueload, Room("json", flaw), "--stop-on-loss")
    assert done.code == 4, (flaw, done)
    found = done.json()
    assert found["verdict"] == "invalid"
    ledger = next(check for check in found["checks"] if check["name"] == "ledger")
    assert (ledger["status"], wrong in ledger["why"]) == ("fail", True), (flaw, ledger)
    assert len(found["steps"]) == 1, "it was to end there"


@pytest.mark.parametrize(
    ("flaw", "dialect", "failure"),
    [
        ("gives no receipt", "json", "timeout"),
        ("never echoes", "json", "timeout"),
        ("closes at once", "json", "ws."),
        ("rejects", "actioncable", "ws."),
    ],
)
def test_a_server_that_keeps_its_clients_waiting_ends_in_time_with_its_class(
    trueload: Trueload, flaw: str, dialect: Dialect, failure: str
) -> None:
    flags = ("--timeout", "500ms", "--samples", "4", "--step", "2", "--steps", "1")
    done = broadcast_to(trueload, Room(dialect, flaw), *flags)
    assert done.code in (1, 3, 4), (flaw, done)
    found = done.json()
    failed = found["steps"][0]["counts"]["failed"]
    assert any(name.startswith(failure) for name in failed), (flaw, failed)
    assert found["steps"][0]["counts"]["ok"] == 0


def test_a_closed_port_ends_with_3(trueload: Trueload, free_port: int) -> None:
    done = trueload.run("ws", f"ws://127.0.0.1:{free_port}/", *STEPS, "--timeout", "1s")
    assert done.code == 3, done
    assert f"hint: is a server listening on 127.0.0.1:{free_port}?" in done.err


def test_a_server_that_does_not_upgrade_ends_with_3(trueload: Trueload, server: Server) -> None:
    done = trueload.run("ws", f"ws://127.0.0.1:{server.port}/", *STEPS)
    assert done.code == 3, done
    assert "ws.handshake: the server answered 200 instead of 101" in done.err
    assert "hint: does the server speak WebSocket at /, in this dialect?" in done.err
