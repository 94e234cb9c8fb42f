"""Limits of a reference server's connections: what is refused, and what they do."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import pytest
from harness import Trueload, start_server


@pytest.mark.parametrize("service", ["http", "ws", "tcp"])
@pytest.mark.parametrize(
    ("flag", "value", "expected"),
    [
        ("--idle-timeout", "0s", "must be greater than 0"),
        ("--idle-timeout", "soon", "soon"),
        ("--idle-timeout", "-1s", "-1s"),
        ("--max-connections", "0", "0"),
        ("--max-connections", "many", "many"),
        ("--max-connections", "5000000000", "5000000000"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(
    trueload: Trueload, service: str, flag: str, value: str, expected: str
) -> None:
    ended = trueload.run("serve", service, f"{flag}={value}")
    assert ended.code == 2
    assert flag in ended.err
    assert expected in ended.err
    assert "hint: " in ended.err


@pytest.mark.parametrize("flags", [("--idle-timeout", "1s"), ("--max-connections", "5")])
def test_datagrams_have_no_connections_to_limit(trueload: Trueload, flags: tuple[str, ...]) -> None:
    ended = trueload.run("serve", "udp", *flags)
    assert ended.code == 2
    assert flags[0] in ended.err


@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
@pytest.mark.parametrize("service", ["http", "ws", "tcp"])
def test_silent_connections_and_those_beyond_the_most_are_closed_and_counted(
    trueload: Trueload, tmp_path: Path, service: str, driver: str
) -> None:
    told = tmp_path / "told.json"
    limits = ("--idle-timeout", "300ms", "--max-connections", "2", "--driver", driver)
    server = start_server(trueload, *limits, "--json", str(told), service=service)
    held = [socket.create_connection((server.host, server.port), timeout=10) for _ in range(2)]
    with socket.create_connection((server.host, server.port), timeout=10) as third:
        assert _is_ended(third)
    for each in held:
        assert _is_ended(each)
        each.close()
    server.process.send_signal(signal.SIGINT)
    server.process.wait(10)
    counts = json.loads(told.read_text())
    assert (counts["accepted"], counts["refused"], counts["timed_out"]) == (3, 1, 2)


def _is_ended(of: socket.socket) -> bool:
    try:
        return of.recv(1) == b""
    except ConnectionResetError:
        return True
