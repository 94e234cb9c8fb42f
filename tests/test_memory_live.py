"""An engine that gets too little memory: the cause is named and the measurements are kept.

The exit code says that the machine refused something, not that there is a bug.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from faults.cases import Script, Step
from faults.peer import Peer
from harness import ROOT, Finished, Trueload
from subject_world import World

SCRIPTED = ROOT / "tests" / "scripted_engine.py"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ANSWERS: Script = (Step("read"), Step("send", data=OK), Step("again"))
MACHINE = 71
OUT_OF_MEMORY = "error: the engine ran out of memory "
RAISE = "hint: raise the limit of memory (`ulimit -v`, a container's), or ask for fewer connections"


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """An empty executable file, into which a test writes a shell script as the engine."""
    path = tmp_path / "trueload-engine"
    path.touch(mode=0o755)
    return path


def assert_named(finished: Finished, at: str) -> None:
    lines = [line for line in finished.err.splitlines() if line.startswith(("error:", "hint:"))]
    assert finished.code == MACHINE, finished
    assert len(lines) == 2, lines
    assert lines[0].startswith(OUT_OF_MEMORY), lines
    assert at in lines[0]
    assert lines[1].startswith(RAISE), lines
    assert "Traceback" not in finished.err


@pytest.mark.engine
@pytest.mark.needs("util-linux")
def test_an_engine_that_runs_into_a_memory_limit_is_named_and_what_it_measured_is_saved(
    trueload: Trueload, engine_path: Path, engine: Path
) -> None:
    engine.write_text(f'#!/bin/sh\nulimit -c 0\nexec prlimit --as=18500000 {engine_path} "$@"\n')
    words = ["-c", "1000", "--pipeline", "64", "-d", "1s", "--warmup", "0s", "--json", "-"]
    with Peer((ANSWERS,)) as peer:
        finished = trueload.run("http", peer.url, *words, env={"TRUELOAD_ENGINE": str(engine)})
    record = json.loads(finished.out)
    assert_named(finished, " phase")
    assert (record["partial"], record["verdict"]) == (True, "invalid")
    assert record["trouble"]["kind"] == "memory"
    stored = trueload.run("runs", "show", "last", "--json").json()
    assert record["id"] in str(stored["rows"])


@pytest.mark.parametrize(
    ("script", "at", "ok"),
    [
        ("run_out_of_memory_at_once", "in the connect phase", 0),
        ("run_out_of_memory", "in the window phase", 90),
    ],
)
def test_memory_that_ends_at_any_time_ends_a_command_alike(
    trueload: Trueload, engine: Path, script: str, at: str, ok: int
) -> None:
    engine.write_text(f"#!/bin/sh\nexec {sys.executable} -S {SCRIPTED}\n")
    env = {"TRUELOAD_ENGINE": str(engine), "SCRIPTED_ENGINE": script}
    words = ["-c", "4", "-d", "2s", "--warmup", "0s"]
    finished = trueload.run("http", "http://127.0.0.1:9/", *words, "--json", "-", env=env)
    assert_named(finished, at)
    record = json.loads(finished.out)
    assert (record["partial"], record["counts"]["ok"]) == (True, ok)
    both = ["http://127.0.0.1:9/", "http://127.0.0.1:9/", *words]
    assert_named(trueload.run("compare", *both, env=env), at)
    search = ["http://127.0.0.1:9/", "--limit", "p99<1s"]
    assert trueload.run("http", *search, env=env).code == MACHINE


def test_a_server_that_runs_out_of_memory_is_named(trueload: Trueload, engine: Path) -> None:
    engine.write_text(f"#!/bin/sh\nexec {sys.executable} -S {SCRIPTED}\n")
    for script in ("run_out_of_memory_at_once", "serve_and_run_out_of_memory"):
        env = {"TRUELOAD_ENGINE": str(engine), "SCRIPTED_ENGINE": script}
        assert_named(trueload.run("serve", "http", env=env), "while serving")


@pytest.mark.engine
def test_a_suite_gives_the_reason_in_the_row_and_goes_on(
    world: World, engine_path: Path, engine: Path
) -> None:
    world.add("fine")
    world.add("other")
    once = f"if mkdir {world.folder}/once 2>/dev/null; then exec {sys.executable} -S {SCRIPTED}; fi"
    engine.write_text(f"#!/bin/sh\n{once}\nexec {engine_path}\n")
    env = {"TRUELOAD_ENGINE": str(engine), "SCRIPTED_ENGINE": "run_out_of_memory"}
    words = ["-c", "4", "--requests", "200", "--repeat", "1", "--share-cpus", "--json", "-"]
    ended = world.run("suite", "run", "quick", "--subjects", "python", *words, env=env)
    rows = ended.json()["rows"]
    (out,) = (row for row in rows if "memory" in str(row))
    (fine,) = (row for row in rows if row is not out)
    assert "the engine ran out of memory in the window phase" in out["why"]
    assert (out["verdict"], fine["figures"]["requests"]) == ("invalid", 200)
