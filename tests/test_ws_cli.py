"""``trueload ws`` as a user runs it, against the reference server and against faulty ones."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from typing import get_args

import pytest
from harness import Finished, Server, Trueload, against, start_server
from trueload.protocol.shootout import Dialect
from websockets.sync.server import ServerConnection, serve
from ws_room import Room, peer

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
STEPS = ("--mode", "broadcast", "--step", "8", "--steps", "2", "--samples", "20")
LOOSE = ("--limit", "p95<5s", "--timeout", "3s")


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Dialect, Server]]:
    """A reference server for each dialect."""
    command = Trueload(tmp_path_factory.mktemp("rooms"))
    yield {
        dialect: start_server(command, "--dialect", dialect, service="ws") for dialect in DIALECTS
    }
    command.close()


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


FEW = ("--requests", "200", "-c", "4", "--json", "-")


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--binary",),
        ("--size", "1"),
        ("--size", "100KiB"),
        ("--pipeline", "8"),
        ("--rate", "2k/s"),
    ],
    ids=" ".join,
)
def test_every_echo_comes_back_as_it_was_sent(
    trueload: Trueload, rooms: dict[Dialect, Server], flags: tuple[str, ...]
) -> None:
    url = f"ws://127.0.0.1:{rooms['json'].port}/echo"
    done = trueload.run("ws", url, *FEW, *flags)
    record = done.json()
    assert (record["counts"]["ok"], record["counts"]["failed"]) == (200, {}), done
    exchange = record["plan"]["generate"]["exchange"]
    assert (exchange["kind"], exchange["text"]) == ("ws_echo", "--binary" not in flags)
    assert against(record) == set(), done


@pytest.mark.parametrize("dialect", DIALECTS)
def test_echoes_are_wrapped_in_every_dialect(
    trueload: Trueload, rooms: dict[Dialect, Server], dialect: Dialect
) -> None:
    ours = f"ws://127.0.0.1:{rooms[dialect].port}/ws"
    with peer(Room(dialect)) as (host, port):
        for url in (ours, f"ws://{host}:{port}/"):
            done = trueload.run("ws", url, *FEW, "--dialect", dialect)
            record = done.json()
            assert (record["counts"]["ok"], record["counts"]["failed"]) == (200, {}), done


def test_an_altered_echo_is_a_mismatch(trueload: Trueload) -> None:
    def upside_down(client: ServerConnection) -> None:
        for wire in client:
            client.send(wire[::-1])

    with serve(upside_down, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.socket.getsockname()[1]
        done = trueload.run("ws", f"ws://127.0.0.1:{port}/", *FEW)
    assert done.code == 4, done
    record = done.json()
    assert record["counts"]["failed"] == {"mismatch": 200}
    (why,) = record["connections"]["reasons"].values()
    shown = trueload.run("runs", "show", "last", "--why").out
    assert " ".join(shown.split()).count(" was expected") == 1, "shown once"
    message = r'"[^"]+"( \(\d+ bytes\))?'
    assert re.fullmatch(f"{message} came, {message} was expected", why)


@pytest.mark.parametrize("mode", [("--dialect", "json"), STEPS])
def test_a_server_that_upgrades_and_then_says_nothing_was_upgraded(
    trueload: Trueload, mode: tuple[str, ...]
) -> None:
    def silent(client: ServerConnection) -> None:
        for _ in client:
            pass

    with serve(silent, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.socket.getsockname()[1]
        done = trueload.run("ws", f"ws://127.0.0.1:{port}/", *mode, "--timeout", "300ms")
    assert done.code == 3, done
    assert "timeout.total: the connection was upgraded, and then no client could join" in done.err


def test_a_connection_that_is_closed_with_a_request_on_it_was_dropped_once(
    trueload: Trueload,
) -> None:
    def close_first(client: ServerConnection) -> None:
        client.recv()
        client.close(1001)

    with serve(close_first, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.socket.getsockname()[1]
        done = trueload.run("ws", f"ws://127.0.0.1:{port}/", *FEW)
    found = done.json()
    assert found["counts"]["failed"] == {"ws.closed": 200}, done
    assert found["connections"]["dropped"] == 0, "each is among the requests that failed"
    (why,) = [check["why"] for check in found["checks"] if check["name"] == "connections"]
    assert "dropped 100 % of those that were opened" in why


@pytest.mark.parametrize("mode", ["echo", "broadcast"])
def test_both_modes_speak_tls(trueload: Trueload, mode: str) -> None:
    server = start_server(trueload, "--tls", service="ws")
    url = f"wss://127.0.0.1:{server.port}/"
    refused = trueload.run("ws", f"{url}echo", *FEW)
    assert refused.code == 3, refused
    assert "tls.cert" in refused.err
    if mode == "echo":
        done = trueload.run("ws", f"{url}echo", "--insecure", *FEW)
        record = done.json()
    else:
        done = trueload.run("ws", f"{url}ws", "--insecure", *STEPS, *LOOSE, "--json", "-")
        record = done.json()["steps"][0]
        assert record["deliveries"]["lost"] == 0
    assert (record["tls"]["verification"], record["counts"]["failed"]) == ("off", {}), done


def test_who_asks_a_plain_port_for_tls_is_told_the_scheme_without_it(
    trueload: Trueload, server: Server
) -> None:
    done = trueload.run("ws", f"wss://127.0.0.1:{server.port}/", *FEW)
    assert done.code == 3, done
    assert "hint: does it speak TLS there? without it write ws://" in done.err


def test_clients_connect_from_the_addresses_that_are_named(
    trueload: Trueload, rooms: dict[Dialect, Server]
) -> None:
    url = f"ws://127.0.0.1:{rooms['json'].port}/ws"
    from_there = ("--local-address", "127.0.0.2", "--local-address", "127.0.0.3")
    done = trueload.run("ws", url, *STEPS, *LOOSE, *from_there, "--json", "-")
    steps = done.json()["steps"]
    assert steps[0]["plan"]["generate"]["local_addresses"] == ["127.0.0.2", "127.0.0.3"]
    assert (done.code, steps[0]["counts"]["failed"]) == (0, {}), done


def test_a_closed_port_ends_with_3(trueload: Trueload, refusing_port: int) -> None:
    done = trueload.run("ws", f"ws://127.0.0.1:{refusing_port}/", *STEPS, "--timeout", "1s")
    assert done.code == 3, done
    assert f"hint: is a server listening on 127.0.0.1:{refusing_port}?" in done.err


def test_a_server_that_accepts_and_does_not_upgrade_is_not_looked_for(trueload: Trueload) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"ws://127.0.0.1:{listening.getsockname()[1]}/"
        done = trueload.run("ws", url, "-c", "2", "--requests", "2", "--timeout", "300ms")
    assert done.code == 3, done
    assert "timeout.first_byte: the connection was not upgraded in time" in done.err
    assert "hint: does the server speak WebSocket at /, in this dialect?" in done.err


def test_a_server_that_does_not_upgrade_ends_with_3(trueload: Trueload, server: Server) -> None:
    done = trueload.run("ws", f"ws://127.0.0.1:{server.port}/", *STEPS)
    assert done.code == 3, done
    assert "ws.handshake: the server answered 200 instead of 101" in done.err
    assert "hint: does the server speak WebSocket at /, in this dialect?" in done.err
