"""Fixtures for every test. What they do is in ``harness.py``."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Server, Trueload, find_free_port, start_server
from subject_world import World
from trueload.engines.engine import find_engine


def pytest_configure() -> None:
    """What is ignored here is ignored by what is tested: SIGHUP under nohup, SIGINT behind `&`."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    # What a group or everybody can write is not run.
    os.umask(0o022)


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are CPUs, for what is left to ``-n auto``: many tests wait more
    than they work. On two CPUs all of them take 680 s, by two at a time 970 s."""
    return max(2, len(os.sched_getaffinity(0)) * 3 // 2)


@pytest.fixture(scope="session")
def engine_path() -> Path:
    """The engine's binary; a missing one is a failure, never a skipped test."""
    return find_engine()


@pytest.fixture
def trueload(tmp_path: Path) -> Iterator[Trueload]:
    """Runs ``trueload`` with a store and folders of its own."""
    command = Trueload(tmp_path / "trueload")
    yield command
    command.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A catalogue of subjects of its own."""
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
def refusing_port() -> Iterator[int]:
    """A TCP port of 127.0.0.1 that refuses: it is taken, so that nobody else can, and nobody
    listens there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def free_port() -> int:
    """A TCP port that was free on 127.0.0.1 a moment ago."""
    return find_free_port()
