"""A front that is paused: its engines end without it, and no host is blamed."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import psutil
import pytest
from harness import Server, Trueload
from waiting import wait_until

TWO = ("--place", "local", "--place", "exec:env", "--allow-lost", "1")
WORKED_S = 0.3  # longer than it takes to start


def engines(pid: int) -> list[psutil.Process]:
    """The engines that a process has started."""
    children = psutil.Process(pid).children(recursive=True)
    return [child for child in children if "trueload-engine" in name_of(child)]


def name_of(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.name()
    return ""


def works(engine: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return sum(engine.cpu_times()[:2]) > WORKED_S
    return False


def is_connected(engine: psutil.Process) -> bool:
    """Whether it can still send requests. Its process may be there for longer: its last words need
    a front that reads them. Only root may look into one that is about to end."""
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        return bool(engine.net_connections("tcp"))
    return False


@pytest.mark.parametrize(("places", "hosts"), [((), 1), (TWO, 2)])
def test_a_front_that_stood_still_names_itself(
    trueload: Trueload, server: Server, tmp_path: Path, places: tuple[str, ...], hosts: int
) -> None:
    words = ("-c", "4", "-d", "60s", "--warmup", "0s", *places)
    process = trueload.start("http", server.url, *words, env={"TRUELOAD_CACHE": str(tmp_path)})
    wait_until(lambda: sum(map(works, engines(process.pid))) == hosts, "every engine is at work")
    os.kill(process.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: not any(map(is_connected, engines(process.pid))), "the load has ended")
    finally:
        os.kill(process.pid, signal.SIGCONT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 4, (out, err)
    assert "cut short: trueload itself was paused for " in out
    assert "host lost" not in out
    record = trueload.run("runs", "show", "last", "--json").json()["rows"][0]["record"]
    assert (record["verdict"], record["partial"]) == ("invalid", True)
    assert record["trouble"]["kind"] == "paused"
    assert record["counts"]["ok"] > 0, "what was heard is kept"
    assert all(host["lost"] is None for host in record["hosts"])
