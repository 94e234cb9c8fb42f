"""A front that stands still: its engines end without it, and no host is blamed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
from harness import Server, Trueload
from waiting import wait_until

TWO = ("--place", "local", "--place", "exec:env", "--allow-lost", "1")


def engines(pid: int) -> list[psutil.Process]:
    """The engines that a process has started, and that still run."""
    return [
        child
        for child in psutil.Process(pid).children(recursive=True)
        if "trueload-engine" in child.name() and child.status() != psutil.STATUS_ZOMBIE
    ]


def at_work(pid: int) -> list[psutil.Process]:
    """The engines that have worked for longer than it takes to start."""
    return [engine for engine in engines(pid) if sum(engine.cpu_times()[:2]) > 0.3]


@pytest.mark.parametrize(("places", "hosts"), [((), 1), (TWO, 2)])
def test_a_front_that_stood_still_names_itself(
    trueload: Trueload, server: Server, tmp_path: Path, places: tuple[str, ...], hosts: int
) -> None:
    words = ("-c", "4", "-d", "60s", "--warmup", "0s", *places)
    process = trueload.start("http", server.url, *words, env={"TRUELOAD_CACHE": str(tmp_path)})
    wait_until(lambda: len(at_work(process.pid)) == hosts, "every engine is at work")
    os.kill(process.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: not engines(process.pid), "the engines have ended by themselves")
    finally:
        os.kill(process.pid, signal.SIGCONT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 4, (out, err)
    assert "cut short: trueload itself stood still for " in out
    assert "host lost" not in out
    record = trueload.run("runs", "show", "last", "--json").json()["rows"][0]["record"]
    assert (record["verdict"], record["partial"]) == ("invalid", True)
    assert record["trouble"]["kind"] == "paused"
    assert record["counts"]["ok"] > 0, "what was heard is kept"
    assert all(host["lost"] is None for host in record["hosts"])
