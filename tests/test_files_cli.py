"""A suite's `files`: the open-file limit of the subject, but not of the engine."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest
from subject_world import World
from waiting import wait_until

pytestmark = pytest.mark.engine

FILES = 120
SUITE = f"""
about = "few files"
contract = "http-plaintext"
duration = "60s"
repeat = 1
files = {FILES}

[[loads]]
connections = [4]
"""


def limits_of_engines(world: World) -> list[tuple[int, int]]:
    """The soft and hard open-file limit of each engine of the world."""
    found = []
    for pid in world.marked():
        try:
            if "engine" in (Path("/proc") / str(pid) / "comm").read_text():
                found.append(resource.prlimit(pid, resource.RLIMIT_NOFILE))
        except OSError:
            continue
    return found


def test_the_limit_holds_for_a_subject_that_raises_its_own(world: World) -> None:
    serve = ["{trueload}", "serve", "http", "--listen", "{host}:{port}", "--threads", "1"]
    world.add("ours", run=serve)
    path = world.folder / "few.toml"
    path.write_text(SUITE)
    words = ("suite", "run", str(path), "--subjects", "python", "--share-cpus")
    process = world.trueload.start(*words, cwd=world.folder, env=world.env)

    def limits_of_both() -> list[tuple[int, int]]:
        limits = limits_of_engines(world)
        # The engine raises its own limit, so wait for that.
        return limits if len(limits) == 2 and max(limits)[0] == max(limits)[1] else []

    limits = wait_until(limits_of_both, "both engines run")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert sorted(limits) == sorted([(FILES, FILES), (hard, hard)]), "the subject's, the engine's"
    world.wait_until_nothing_is_left()
