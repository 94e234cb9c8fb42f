"""What callgrind wrote is summed by source file, without the cost of calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

WRITTEN = """\
events: Ir
fl=(1) /tree/crates/wire/src/echo.rs
fn=(1) take
10 5
+2 7
fi=(2) /rustc/abc/library/core/src/mem/mod.rs
* 20
fe=(1)
-1 3
cfi=(3) /tree/crates/meter/src/lazy.rs
cfn=(2) record
calls=4 30
12 900

fl=(3)
fn=(2)
30 40
"""


@pytest.fixture
def instructions(bench: Any) -> Any:
    """The module of bench/."""
    return bench["instructions"]


def test_costs_are_summed_by_file_and_calls_are_left_out(instructions: Any) -> None:
    assert instructions.read_costs(WRITTEN) == {
        "crates/wire/src/echo.rs": 15,
        "library/core/src/mem/mod.rs": 20,
        "crates/meter/src/lazy.rs": 40,
    }


def test_what_a_request_costs_is_the_difference_of_two_lengths(
    instructions: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(program: object, load: str, requests: int) -> Any:
        start, hot = "crates/engine/src/main.rs", "crates/wire/src/hot.rs"
        costs = {start: 1_000_000, hot: 7 * requests}
        others = (
            "library/core/src/mem/mod.rs",
            "crates/sim/src/play.rs",
            "crates/drive/src/fake/a.rs",
        )
        costs |= dict.fromkeys(others, 3 * requests)
        return instructions.Run(requests, instructions.Counter(costs))

    monkeypatch.setattr(instructions, "play", play)
    assert instructions.per_request(None, "depth-1") == {
        "crates/engine/src/main.rs": 0,
        "crates/wire/src/hot.rs": 7,
    }


def test_a_revision_that_is_not_there_is_told(
    instructions: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    monkeypatch.setattr(instructions, "TARGET", tmp_path)
    monkeypatch.setattr("sys.argv", ["instructions.py", "no-such-revision"])
    assert instructions.main() == 2
    said = capsys.readouterr()
    assert (said.out, said.err.startswith("error: ")) == ("", True)
    assert "hint: it takes Debian's valgrind" in said.err
