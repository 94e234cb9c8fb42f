"""The examples of docs/websocket.md as they stand, against real servers (``websocket_servers``)."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import Trueload

pytestmark = [pytest.mark.engine, pytest.mark.needs("node")]

ROOT = Path(__file__).parent.parent
SERVERS = Path(__file__).parent / "websocket_servers"
EXAMPLES = re.findall(
    r"^```toml\n(# (\w[\w-]*)\.toml: (.*?)\n.*?)^```",
    (ROOT / "docs" / "websocket.md").read_text(),
    re.MULTILINE | re.DOTALL,
)
URLS = {"chat": "ws://127.0.0.1:8080/chat"}
# What each server must have done: how often each step went well, of eight conversations.
STEPS = {
    "chat": {"connect": 8, "join": 8, "say": 24, "leave": 8},
    "socketio": {"connect": 8, "open": 8, "join": 8, "echo": 40},
    "phoenix": {"connect": 8, "join": 8, "shout": 40},
    "graphql": {"connect": 8, "init": 8, "subscribe": 8, "next": 32, "complete": 8},
}


@pytest.fixture(scope="session")
def modules() -> Path:
    """The folder with the libraries of the servers, which are installed once."""
    folder = ROOT / "build" / "websocket-servers"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = (SERVERS / "package-lock.json").read_text()
        done = folder / "installed"
        if not done.exists() or done.read_text() != wanted:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(SERVERS / name, folder)
            words = ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"]
            subprocess.run(words, cwd=folder, check=True, timeout=300)
            done.write_text(wanted)
    return folder / "node_modules"


@contextmanager
def serving(name: str, modules: Path) -> Iterator[str]:
    """Run a server; gives its address."""
    server = subprocess.Popen(
        ["node", SERVERS / f"{name}.js"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "NODE_PATH": str(modules)},
    )
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        assert port, f"{name}.js did not start"
        yield f"127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def example(trueload: Trueload, name: str, at: str) -> tuple[str, Path]:
    """The URL and the file of an example."""
    text, told = next((text, told) for text, file, told in EXAMPLES if file == name)
    trueload.folder.mkdir(exist_ok=True)
    file = trueload.folder / f"{name}.toml"
    file.write_text(text)
    found = re.search(r"ws://[^ ']+", told)
    url = found[0] if found else URLS[name]
    return url.replace("127.0.0.1:8080", at), file


@pytest.mark.parametrize("name", STEPS)
def test_an_example_has_its_conversations(trueload: Trueload, modules: Path, name: str) -> None:
    with serving(name, modules) as at:
        url, file = example(trueload, name, at)
        words = ("ws", url, "--scenario", str(file), "-c", "4", "--requests", "8", "--json", "-")
        found = trueload.run(*words).json()
    steps = {step["name"]: step["counts"] for step in found["targets"]}
    assert {step: counts["ok"] for step, counts in steps.items()} == STEPS[name]
    assert not any(counts["failed"] or counts["skipped"] for counts in steps.values())
    assert found["sessions"]["ok"] == 8


def test_listeners_and_writers_of_a_feed(trueload: Trueload, modules: Path) -> None:
    with serving("feed", modules) as at:
        url, file = example(trueload, "feed", at)
        limit = ("--fail-on", "delivery_p99>10s", "--fail-on", "message_gap_p99>10s")
        words = ("ws", url, "--scenario", str(file), "-c", "10", "-d", "2s", *limit)
        found = trueload.run(*words, "--json", "-").json()
    assert found["counts"]["failed"] == {}
    messages = found["messages"]
    # Each message of the writer goes to the nine listeners, and back to it.
    assert messages["delivery_ns"]["count"] == messages["received"] > 500
    assert messages["gap_ns"]["max"] < 2e9
