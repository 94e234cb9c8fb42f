"""``trueload udp`` and ``serve udp`` as a user runs them: the real command and engine."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Server, Trueload, against, start_server

FEW = ("--requests", "200", "-c", "4")
NUMBERS_BYTES = 16
GONE = b"gone"  # the answer of a peer that ends
NONE = {"late": 0, "duplicated": 0, "reordered": 0, "unsolicited": 0, "dropped": 0, "overflowed": 0}


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A reference server that echoes."""
    command = Trueload(tmp_path_factory.mktemp("echo"))
    yield start_server(command, service="udp")
    command.close()


def free_port() -> int:
    """A port where nobody listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone:
        gone.bind(("127.0.0.1", 0))
        return int(gone.getsockname()[1])


def at(server: Server) -> str:
    return f"{server.host}:{server.port}"


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--size", "16"),
        ("--size", "1400", "--pipeline", "64"),
        ("--size", "65507", "--requests", "20"),
        ("--pipeline", "16"),
        ("--rate", "2k/s"),
        ("--driver", "epoll"),
        ("--driver", "epoll", "--pipeline", "16"),
    ],
    ids=" ".join,
)
def test_every_datagram_comes_back(
    trueload: Trueload, echo: Server, flags: tuple[str, ...]
) -> None:
    given = dict(zip(flags[::2], flags[1::2], strict=True))
    done = trueload.run("udp", at(echo), "--json", "-", *FEW, *flags)
    record = done.json()
    assert against(record) == set(), done
    counts = record["counts"]
    assert counts["ok"] == counts["issued"] == int(given.get("--requests", "200"))
    assert (counts["failed"], record["datagrams"]) == ({}, NONE)
    assert record["plan"]["url"] == f"udp://{at(echo)}"
    assert record["plan"]["generate"]["exchange"]["kind"] == "udp_echo"
    assert record["plan"]["payload_bytes"] == int(given.get("--size", "64"))
    checks = {check["name"]: check["status"] for check in record["checks"]}
    assert checks["audit"] == checks["connections"] == "pass"
    assert checks["stale"] == checks["ledger"] == "n/a"


@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
@pytest.mark.parametrize("pipeline", ["1", "16"])
def test_the_client_share_is_told(
    trueload: Trueload, echo: Server, driver: str, pipeline: str
) -> None:
    words = ("-c", "4", "-d", "1s", "--pipeline", pipeline, "--driver", driver)
    record = trueload.run("udp", at(echo), "--json", "-", *words).json()
    received, trips = record["client_ns"]["receive"], record["round_trip_ns"]
    assert received["count"] == trips["count"] > 100
    assert 0 < trips["p50"] <= record["service_ns"]["max"]


def test_a_run_is_shown_saved_and_reported(
    trueload: Trueload, echo: Server, tmp_path: Path
) -> None:
    done = trueload.run("udp", at(echo), *FEW)
    assert f"udp://{at(echo)}  4 connections, messages of 64 B, 200 requests" in done.out
    assert "datagrams    0 lost, 0 late, 0 duplicated, 0 reordered\n" in done.out
    assert "server" in done.out, "its process is found by its socket"
    listed = trueload.run("runs", "list", "--json").json()
    assert [run["kind"] for run in listed] == ["udp"]
    assert "0 reordered" in trueload.run("runs", "show", "last").out
    page = tmp_path / "page.html"
    assert trueload.run("report", "last", "-o", str(page)).code == 0
    assert "0 reordered" in page.read_text()


def test_a_reference_server_counts_the_datagrams_it_sent_back(trueload: Trueload) -> None:
    server = start_server(trueload, "--threads", "2", "--json", "-", service="udp")
    found = trueload.run("udp", at(server), "--json", "-", *FEW, "--size", "100").json()
    assert found["counts"]["ok"] == 200
    server.process.send_signal(signal.SIGINT)
    out, _ = server.process.communicate(timeout=30)
    seen = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
    assert (seen["requests"], seen["responses"], seen["bytes_in"]) == (200, 200, 20_000)
    assert "sent back 200 of 200 datagrams\n" in out


@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
@pytest.mark.parametrize(
    "flags",
    [
        # Longer than a command may take here, so no answer is waited for.
        ("--requests", "200", "--timeout", "100s"),
        ("--requests", "200", "--pipeline", "16", "--timeout", "100s"),
        ("-d", "300ms", "--warmup", "200ms"),
        ("-d", "300ms", "--rate", "1k/s"),
    ],
    ids=" ".join,
)
def test_nothing_is_measured_where_nobody_listens(
    trueload: Trueload, driver: str, flags: tuple[str, ...]
) -> None:
    words = ("-c", "4", "--driver", driver, *flags)
    done = trueload.run("udp", f"127.0.0.1:{free_port()}", "--json", "-", *words)
    record = done.json()
    assert done.code == 3, done
    assert "error: no connection became usable: connect.refused\n" in done.err
    assert "hint: is a server listening on 127.0.0.1:" in done.err
    assert set(record["counts"]["failed"]) == {"connect.refused"}
    assert record["connections"]["established"] == 0
    assert record["connections"]["failed"] == {"connect.refused": 4}


def test_a_search_where_nobody_listens_ends_at_its_first_step(trueload: Trueload) -> None:
    words = ("--limit", "p99<100ms", "--search", "rate", "-c", "4", "--json", "-")
    done = trueload.run("udp", f"127.0.0.1:{free_port()}", *words)
    assert done.code == 3, done
    assert [step["step"]["outcome"] for step in done.json()["steps"]] == ["gone"]


def test_a_server_that_is_only_silent_is_no_refusal(trueload: Trueload) -> None:
    peer = Peer(lambda number, datagram: [])
    done = trueload.run("udp", peer.where, "--json", "-", *FEW, "--timeout", "20ms")
    record = done.json()
    assert done.code == 4, done
    assert record["counts"]["failed"] == {"lost": 200}
    assert record["connections"]["established"] == 4


@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
def test_a_server_that_ends_in_mid_run_was_there(trueload: Trueload, driver: str) -> None:
    peer = Peer(lambda number, datagram: [datagram] if number < 50 else [GONE])
    words = ("-c", "1", "--requests", "100", "--driver", driver, "--timeout", "200ms")
    done = trueload.run("udp", peer.where, "--json", "-", *words)
    record = done.json()
    assert done.code == 4, done
    assert record["counts"]["ok"] == 50
    assert set(record["counts"]["failed"]) <= {"connect.refused", "lost"}
    assert record["connections"]["established"] == 1


@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
def test_a_server_that_starts_late_was_there(trueload: Trueload, driver: str) -> None:
    port = free_port()
    words = ("-c", "4", "-d", "5s", "--rate", "200/s", "--warmup", "0s", "--driver", driver)
    command = trueload.start("udp", f"127.0.0.1:{port}", "--json", "-", *words)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as early:
        early.bind(("127.0.0.1", port))
        early.recv(1)  # it has begun to send
    received = threading.Event()

    def answer(_: int, datagram: bytes) -> list[bytes]:
        received.set()
        return [datagram]

    Peer(answer, port)
    assert received.wait(30)
    out, _ = command.communicate(timeout=60)
    record = json.loads(out)
    assert command.returncode in (0, 4)
    assert record["counts"]["ok"] > 0
    assert record["connections"]["established"] == 4


class Peer:
    """A peer on one socket; ``answer`` returns what it sends for the datagram of this number."""

    def __init__(self, answer: Callable[[int, bytes], list[bytes]], port: int = 0) -> None:
        self._answer = answer
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", port))
        self.where = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with self._socket:
            while True:
                datagram, there = self._socket.recvfrom(65_536)
                number = int.from_bytes(datagram[8:NUMBERS_BYTES])
                for sent in self._answer(number, datagram):
                    if sent == GONE:
                        return
                    self._socket.sendto(sent, there)


def counted(trueload: Trueload, peer: Peer, *flags: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run once; return the failures by class, and the other counts of datagrams."""
    done = trueload.run("udp", peer.where, "--json", "-", "-c", "1", *flags)
    record = done.json()
    counts = record["counts"]
    assert counts["issued"] == counts["ok"] + sum(counts["failed"].values()), done
    assert {check["name"]: check["status"] for check in record["checks"]}["audit"] == "pass"
    return counts["failed"], record["datagrams"]


def test_lost_duplicated_and_reordered_datagrams_are_counted_apart(trueload: Trueload) -> None:
    held: list[bytes] = []

    def answer(number: int, datagram: bytes) -> list[bytes]:
        match number % 7:
            case 6:
                return []
            case 1:
                return [datagram, datagram]
            case 2:
                held.append(datagram)
                return []
            case 3:
                return [datagram, held.pop()]
            case _:
                return [datagram]

    # There are more places than lost datagrams, so nothing waits for a place until it is late.
    flags = ("--requests", "70", "--pipeline", "16", "--refill", "1", "--timeout", "2s")
    failed, datagrams = counted(trueload, Peer(answer), *flags)
    assert failed == {"lost": 10}
    assert datagrams == NONE | {"duplicated": 10, "reordered": 10}


def test_late_answers_settle_nothing_and_are_counted(trueload: Trueload) -> None:
    held: dict[float, bytes] = {}

    def answer(number: int, datagram: bytes) -> list[bytes]:
        now_s = time.monotonic()
        if number in (5, 17):
            held[now_s + 2] = datagram
            return []
        due = [at_s for at_s in held if at_s <= now_s]
        return [datagram, *(held.pop(at_s) for at_s in due)]

    flags = ("--requests", "300", "--rate", "100/s", "--pipeline", "256", "--timeout", "1s")
    failed, datagrams = counted(trueload, Peer(answer), *flags)
    assert failed == {"lost": 2}
    assert datagrams == NONE | {"late": 2}


def test_altered_and_unsolicited_datagrams_are_told_apart(trueload: Trueload) -> None:
    def answer(number: int, datagram: bytes) -> list[bytes]:
        if number % 5 == 1:
            return [datagram[:-1] + bytes([datagram[-1] ^ 1])]
        if number % 5 == 2:
            return [datagram[:10], b"", bytes(64), datagram]
        return [datagram]

    failed, datagrams = counted(trueload, Peer(answer), "--requests", "50", "--pipeline", "4")
    assert failed == {"mismatch": 10}
    assert datagrams == NONE | {"unsolicited": 30}


def test_what_is_lost_is_shown(trueload: Trueload) -> None:
    peer = Peer(lambda number, datagram: [datagram] if number % 2 else [])
    flags = ("--requests", "10", "-c", "1", "--timeout", "100ms")
    done = trueload.run("udp", peer.where, *flags)
    assert "datagrams    5 lost, 0 late, 0 duplicated, 0 reordered\n" in done.out
    assert "fail errors: 5 of 10 requests failed, mostly lost" in done.out
    assert done.code == 4, done


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("127.0.0.1:9", "--size", "15"), "a datagram cannot have 15 bytes here"),
        (("127.0.0.1:9", "--size", "65508"), "use 16 (two numbers that tell answers apart)"),
        (("unix:/run/x.sock",), "UDP has no socket files"),
        (("tcp://127.0.0.1:9",), "is not HOST:PORT"),
        (("127.0.0.1:9", "--close"), "--close"),
    ],
)
def test_what_cannot_be_sent_is_refused(
    trueload: Trueload, flags: tuple[str, ...], expected: str
) -> None:
    done = trueload.run("udp", *flags)
    assert done.code == 2, done
    assert expected in done.err


def test_a_file_is_sent_behind_the_numbers(trueload: Trueload, tmp_path: Path) -> None:
    file = tmp_path / "message"
    file.write_bytes(bytes(range(32)))
    seen: list[bytes] = []

    def answer(_: int, datagram: bytes) -> list[bytes]:
        seen.append(datagram)
        return [datagram]

    failed, _ = counted(trueload, Peer(answer), "--requests", "5", "--data", str(file))
    assert failed == {}
    assert {datagram[NUMBERS_BYTES:] for datagram in seen} == {bytes(range(16, 32))}
