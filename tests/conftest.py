"""Fixtures for every test; ``harness.py`` implements them."""

from __future__ import annotations

import math
import os
import signal
import socket
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import hypothesis
import needing
import pytest
from harness import ROOT, Server, Trueload, find_free_port, start_server
from subject_world import World
from trueload.engines.binary import find_engine


def pytest_configure(config: pytest.Config) -> None:
    """Reset signals: SIGHUP is ignored under nohup, SIGINT under `&`, and children inherit that."""
    config.pluginmanager.register(needing)
    # Tests measure side by side: none waits for another (``test_machine_lock.py`` is about that).
    os.environ["TRUELOAD_LOCK"] = "tests"
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    # trueload refuses to run files that their group or everybody can write.
    os.umask(0o022)
    # How long an example takes says something of the machine, which other tests use, too.
    hypothesis.settings.register_profile("unhurried", deadline=None)
    hypothesis.settings.load_profile("unhurried")


def pytest_xdist_auto_num_workers() -> int:
    """Run more workers than CPUs under ``-n auto``, as many tests wait more than they compute."""
    return 2 * len(os.sched_getaffinity(0)) + 1


class _Bench(dict[str, Any]):
    """The modules of bench/ by name. It is not a package, because its scripts run in place."""

    def __missing__(self, name: str) -> Any:
        folder = str(ROOT / "bench")
        sys.path.insert(0, folder)
        try:
            return self.setdefault(name, import_module(name))
        finally:
            sys.path.remove(folder)


@pytest.fixture(scope="session")
def bench() -> Any:
    """The modules of bench/ by name."""
    return _Bench()


@pytest.fixture(scope="session")
def engine_path() -> Path:
    """The path of the engine's binary; if it is missing, tests fail and are never skipped."""
    return find_engine()


@pytest.fixture
def trueload(tmp_path: Path) -> Iterator[Trueload]:
    """A ``trueload`` command with its own store and folders."""
    command = Trueload(tmp_path / "trueload")
    yield command
    command.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A world with its own catalogue of subjects."""
    made = World(tmp_path)
    yield made
    made.trueload.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A reference server on 127.0.0.1, shared by the tests of one worker process."""
    command = Trueload(tmp_path_factory.mktemp("server"))
    yield start_server(command, "--threads", "1")
    command.close()


@pytest.fixture
def pairs_uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the count of pairs that would find a difference. No claim depends on it, and it takes
    most of a simulation's time."""
    from trueload.compare import difference

    monkeypatch.setattr(difference, "pairs_to_find", lambda *_: math.inf)


@pytest.fixture
def refusing_port() -> Iterator[int]:
    """A TCP port of 127.0.0.1 that refuses connections.

    It is bound, so that nobody else can take it, but not listening.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def free_port() -> int:
    """A TCP port that was free on 127.0.0.1 a moment ago."""
    return find_free_port()
