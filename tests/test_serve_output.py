"""What `trueload serve` prints at its start: a command that loads it and works as printed.

The targets of the documentation also find their routes there.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from harness import Trueload

TARGETS = """\
{"url": "/", "weight": 3}
{"url": "/item/{counter}?nocache={random}"}
{"method": "POST", "url": "/item", "body": "{\\"id\\": {counter}}", "expect": {"status": 201}}
"""


def output_of(trueload: Trueload, *words: str) -> list[str]:
    """The command that a server prints, as the words after ``trueload``."""
    process = trueload.start("serve", *words)
    assert process.stderr is not None
    listening, load = process.stderr.readline(), process.stderr.readline()
    assert listening.startswith("listening on "), listening
    assert load.startswith("load it with: trueload "), load
    return shlex.split(load.partition(": ")[2])[1:]


@pytest.mark.parametrize(
    "words",
    [
        ("http",),
        ("http", "--tls"),
        ("http", "--http", "2"),
        ("http", "--http", "2", "--tls"),
        ("tcp",),
        ("udp",),
        ("ws",),
        ("ws", "--dialect", "binary"),
        ("ws", "--tls"),
    ],
    ids=" ".join,
)
def test_what_a_server_says_loads_it(trueload: Trueload, words: tuple[str, ...]) -> None:
    load = output_of(trueload, *words, "--listen", "127.0.0.1:0")
    ended = trueload.run(*load, "-n", "40", "-c", "4", "--json", "-", "--no-save")
    assert json.loads(ended.out)["counts"]["ok"] == 40, ended


def test_what_a_server_on_a_socket_file_says_loads_it(trueload: Trueload, tmp_path: Path) -> None:
    load = output_of(trueload, "http", "--listen", f"unix:{tmp_path / 'a server'}")
    ended = trueload.run(*load, "-n", "40", "-c", "4", "--json", "-", "--no-save")
    assert json.loads(ended.out)["counts"]["ok"] == 40, ended


def test_the_targets_of_the_tutorial_are_all_answered(trueload: Trueload, tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "from-wrk.md").read_text()
    assert TARGETS in page
    (tmp_path / "targets.jsonl").write_text(TARGETS)
    load = output_of(trueload, "http", "--listen", "127.0.0.1:0")
    flags = ("--targets", tmp_path / "targets.jsonl", "-n", "200", "--json", "-", "--no-save")
    ended = trueload.run(*load, *flags)
    assert json.loads(ended.out)["counts"]["ok"] == 200, ended
