"""``trueload tcp`` and ``serve tcp`` as a user runs them: the real command and engine."""

from __future__ import annotations

import json
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Server, Trueload, against, start_server

FEW = ("--requests", "200", "-c", "4")


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A reference server that echoes."""
    command = Trueload(tmp_path_factory.mktemp("echo"))
    yield start_server(command, service="tcp")
    command.close()


def at(server: Server) -> str:
    return f"{server.host}:{server.port}"


def measure(trueload: Trueload, server: Server, *flags: str) -> dict[str, Any]:
    done = trueload.run("tcp", at(server), "--json", "-", *flags)
    found: dict[str, Any] = done.json()
    assert against(found) == set(), done
    return found


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--size", "1"),
        ("--size", "1MiB", "--requests", "20"),
        ("--pipeline", "16"),
        ("--close",),
        ("--close", "--half-close"),
        ("--rate", "2k/s"),
        ("--driver", "epoll"),
    ],
    ids=" ".join,
)
def test_every_message_comes_back(trueload: Trueload, echo: Server, flags: tuple[str, ...]) -> None:
    given = dict(zip(flags[::2], flags[1::2], strict=False))
    record = measure(trueload, echo, *FEW, *flags)
    counts = record["counts"]
    assert counts["ok"] == counts["issued"] == int(given.get("--requests", "200"))
    assert counts["failed"] == {}
    assert record["plan"]["url"] == f"tcp://{at(echo)}"
    assert record["plan"]["generate"]["exchange"]["kind"] == "tcp_echo"
    sizes = {"1": 1, "1MiB": 2**20}
    assert record["plan"]["payload_bytes"] == sizes.get(given.get("--size", ""), 64)
    checks = {check["name"]: check["status"] for check in record["checks"]}
    assert checks["audit"] == "pass"
    assert checks["stale"] == checks["ledger"] == "n/a"


def test_a_file_is_sent_as_it_is(trueload: Trueload, echo: Server, tmp_path: Path) -> None:
    file = tmp_path / "message"
    file.write_bytes(bytes(range(256)))
    record = measure(trueload, echo, *FEW, "--data", str(file))
    assert record["counts"]["ok"] == 200
    assert record["plan"]["payload_bytes"] == 256


def test_a_run_is_shown_saved_and_shown_again(trueload: Trueload, echo: Server) -> None:
    done = trueload.run("tcp", at(echo), *FEW)
    assert f"tcp://{at(echo)}  4 connections, messages of 64 B, 200 requests" in done.out
    listed = trueload.run("runs", "list", "--json").json()
    assert [run["kind"] for run in listed] == ["tcp"]
    assert "messages of 64 B" in trueload.run("runs", "show", "last").out
    compared = trueload.run("runs", "compare", "last", "last", "--format", "json")
    assert compared.code in (0, 4), compared  # 4 where much else is done


def test_the_largest_rate_can_be_searched(trueload: Trueload, echo: Server) -> None:
    short = ("-d", "100ms", "--warmup", "0", "-c", "4")
    done = trueload.run("tcp", at(echo), "--limit", "p99<1ns", *short, "--json", "-")
    found = done.measured(1)
    assert found["result"]["outcome"] == "none"
    assert trueload.run("runs", "list", "--json").json()[0]["kind"] == "search"


def test_a_closed_port_ends_with_3(trueload: Trueload, refusing_port: int) -> None:
    done = trueload.run("tcp", f"127.0.0.1:{refusing_port}", *FEW, "--timeout", "1s")
    assert done.code == 3, done
    assert f"hint: is a server listening on 127.0.0.1:{refusing_port}?" in done.err


def test_a_reference_server_counts_the_bytes_it_sent_back(trueload: Trueload) -> None:
    server = start_server(trueload, "--json", "-", service="tcp")
    measure(trueload, server, *FEW)
    server.process.send_signal(signal.SIGINT)
    out, _ = server.process.communicate(timeout=30)
    # Both are in one pipe here, in either order.
    lines = out.splitlines()
    seen = json.loads(next(line for line in lines if line.startswith("{")))
    assert seen["bytes_in"] == seen["bytes_out"] == 200 * 64
    assert "sent back 12,800 of 12,800 bytes on 4 connections" in out


class Faulty:
    """A server that answers each message with ``answer(message)`` instead of an echo."""

    def __init__(self, answer: Callable[[bytes], bytes], *, ends: bool) -> None:
        self._answer, self._ends = answer, ends
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while message := connection.recv(64, socket.MSG_WAITALL):
                connection.sendall(self._answer(message))
                if self._ends:
                    return

    def close(self) -> None:
        self._listener.close()


@pytest.mark.parametrize(
    ("what", "answer", "ends", "failure"),
    [
        ("one byte is another", lambda m: m[:-1] + bytes([m[-1] ^ 1]), False, "mismatch"),
        ("one byte is missing, then the end", lambda m: m[:-1], True, "truncated"),
        ("one byte more", lambda m: m + b"!", False, "unsolicited"),
    ],
)  # fmt: skip
def test_an_echo_that_is_none_is_a_failure(
    trueload: Trueload, what: str, answer: Callable[[bytes], bytes], ends: bool, failure: str
) -> None:
    peer = Faulty(answer, ends=ends)
    try:
        flags = ("--requests", "40", "-c", "2", "--timeout", "2s", "--json", "-")
        done = trueload.run("tcp", f"127.0.0.1:{peer.port}", *flags)
    finally:
        peer.close()
    assert done.code == 4, (what, done)
    record = done.json()
    assert record["verdict"] == "invalid"
    assert failure in record["counts"]["failed"], (what, record["counts"])
