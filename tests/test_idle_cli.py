"""`trueload http --idle`: connections that are held and never send, to a real server."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
from harness import Server, Trueload

pytestmark = pytest.mark.engine

LOADS = [
    ("a closed loop", ("-d", "300ms", "--warmup", "100ms")),
    ("a closed loop by requests", ("--requests", "403")),
    ("an open loop", ("-d", "300ms", "--warmup", "100ms", "--rate", "1k/s")),
    ("an open loop by requests", ("--requests", "200", "--rate", "1k/s")),
    ("a connection per request", ("--requests", "200", "--close")),
    ("over epoll, on two threads", ("--requests", "200", "--driver", "epoll", "--threads", "2")),
]


def run(trueload: Trueload, server: Server, *flags: str) -> Any:
    words = ("-c", "4", "--idle", "150", "--json", "-", "--no-save", *flags)
    return trueload.run("http", server.url, *words).json()


@pytest.mark.parametrize(("what", "flags"), LOADS, ids=lambda value: str(value)[:30])
def test_idle_connections_are_held_beside_every_load(
    trueload: Trueload, server: Server, what: str, flags: tuple[str, ...]
) -> None:
    record = run(trueload, server, *flags)
    assert record["idle"]["connections"] == record["idle"]["held"] == 150, what
    assert [step["idle"] for step in record["idle"]["steps"]] == [0, 150]
    assert [step["established"] for step in record["idle"]["steps"]] == [4, 154]
    assert record["plan"]["generate"]["connections"] == 4, "those that send"
    assert record["connections"]["established"] == 154
    assert record["slots"]["asked"] <= 4
    assert record["counts"]["ok"] == record["counts"]["issued"] > 0
    if "--requests" in flags:
        assert record["counts"]["ok"] == int(flags[flags.index("--requests") + 1])


def test_the_result_says_what_an_idle_connection_costs_the_server(trueload: Trueload) -> None:
    from harness import start_server

    fresh = start_server(trueload)
    words = ("-c", "4", "--idle", "2000", "--requests", "100", "--no-save")
    ended = trueload.run("http", fresh.url, *words)
    assert "4 connections beside 2,000 idle ones" in ended.out, ended
    assert "2,000 of 2,000 held to the end" in ended.out, ended
    assert "of the server's memory each" in ended.out, ended
    shown = trueload.run("runs", "list")
    assert shown.code == 0


@pytest.mark.needs("util-linux")
def test_a_server_that_may_open_too_few_files_is_told_of_before_the_start(
    trueload: Trueload,
) -> None:
    process = subprocess.Popen(
        ["prlimit", "--nofile=320:320", sys.executable, "-m", "trueload", "serve", "http"],
        env=trueload.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            url = re.search(r"http://[\d.:]+", process.stdout.readline())
            assert url is not None
            words = ("-c", "10", "--idle", "240", "--requests", "20", "--no-save")
            ended = trueload.run("http", url[0], *words)
            notes = [line for line in ended.err.splitlines() if line.startswith("note: ")]
            assert len(notes) == 1, ended
            assert "may open 320 files, too few for 250 connections" in notes[0]
            assert "ulimit -n 350" in notes[0]
            few = trueload.run("http", url[0], "-c", "10", "--requests", "20", "--no-save")
            assert "note: " not in few.err, few
        finally:
            process.terminate()


MISTAKES = [
    (("--idle", "0"), "'0' is not from 1 to 1,000,000"),
    (("--idle", "-5"), "--idle"),
    (("--idle", "many"), "'many'"),
    (("--idle", "2000000"), "is not from 1 to 1,000,000"),
]


@pytest.mark.parametrize(("words", "error"), MISTAKES, ids=lambda value: str(value)[:20])
def test_a_number_that_is_none_gets_one_line(
    trueload: Trueload, words: tuple[str, ...], error: str
) -> None:
    ended = trueload.run("http", "http://127.0.0.1:9/", *words)
    assert (ended.code, ended.out) == (2, "")
    lines = ended.err.splitlines()
    assert len(lines) == 2, ended
    assert error in lines[0]


def test_too_few_files_for_the_idle_ones_are_told_before_anything_is_sent(
    trueload: Trueload, server: Server
) -> None:
    words = ("-c", "4", "--idle", "900000", "--driver", "epoll")
    ended = trueload.run("http", server.url, *words)
    assert (ended.code, ended.out) == (2, ""), ended
    assert "900004 connections need" in ended.err, ended
    assert "open files" in ended.err, ended
