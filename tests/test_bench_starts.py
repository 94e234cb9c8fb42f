"""The pure parts of the report on starts: what is measured, and what is judged."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def starts(bench: Any) -> Any:
    """The module of bench/."""
    return bench["starts"]


def test_the_help_of_every_command_is_measured(starts: Any) -> None:
    asked = [str(command) for command in starts.commands()]
    assert {"trueload --help", "trueload suite run --help", "trueload import har --help"} < {*asked}
    assert len({*asked}) == len(asked)


def test_medians_are_judged_and_of_all_helps_the_dearest(starts: Any) -> None:
    asked = [
        starts.Command(("--help",)),
        starts.Command(("http", "--help")),
        starts.Command(("runs", "list")),
        starts.Command(("http", "URL", "-n", "10"), (0, 4), starts.MEASURED),
    ]
    used_s = ([0.1, 0.1, 9.0], [0.2, 0.21, 0.22], [0.26, 0.3, 0.2], [0.4, 0.5, 0.5])
    found = {str(each): used for each, used in zip(asked, used_s, strict=True)}
    found[starts.BARE] = [0.01, 0.01, 0.02]
    marked = starts.judge(asked, found)
    assert [(each.what, each.measured, each.word) for each in marked] == [
        (
            "CPU of `trueload http --help` (the dearest help)",
            "0.210 s, 21.0 x the bare interpreter",
            "met",
        ),
        ("CPU of `trueload runs list`", "0.260 s, 26.0 x the bare interpreter", "missed"),
        ("CPU of `trueload http URL -n 10`", "0.500 s, 50.0 x the bare interpreter", "met"),
    ]
    assert starts.table(found)[2:4] == [
        "| `python -c pass` | 0.010 | 0.010 to 0.020 | 1.0 |",
        "| `trueload --help` | 0.100 | 0.100 to 9.000 | 10.0 |",
    ]
