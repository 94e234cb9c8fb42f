"""The groups of options in the help: complete, without doubles, and the usual ones first."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from trueload.cli.app import build_command
from trueload.cli.help_groups import (
    FEW,
    GROUPS,
    has_short_help,
    in_groups,
    name_of,
    short_help,
)


def commands(node: Any, name: str = "trueload", above: Any = None) -> Iterator[tuple[str, Any]]:
    """Yield the context of each command that is no group, by its path."""
    context = node.make_context(name, [], parent=above, resilient_parsing=True)
    verbs = getattr(node, "commands", None)
    if verbs is None:
        yield context.command_path, context
    else:
        for verb, child in verbs.items():
            yield from commands(child, verb, context)


COMMANDS = dict(commands(build_command()))


def options(name: str) -> list[Any]:
    context = COMMANDS[name]
    shown = context.command.get_params(context)
    return [
        each for each in shown if each.param_type_name == "option" and each.get_help_record(context)
    ]


WITH_SHORT = [name for name in COMMANDS if has_short_help(COMMANDS[name].command)]
LARGE = [name for name in COMMANDS if len(options(name)) > FEW]


def test_every_group_has_an_option() -> None:
    found = {title for name in LARGE for title, _ in in_groups(options(name))}
    assert found == set(GROUPS)


@pytest.mark.parametrize("name", LARGE)
def test_every_option_of_a_large_command_has_a_group(name: str) -> None:
    found = dict(in_groups(options(name)))
    own = {"no-color", "help", *(["h"] if name in WITH_SHORT else [])}
    assert {name_of(option) for option in found["Help"]} == own
    assert set(found) <= set(GROUPS)
    assert sum(map(len, found.values())) == len(options(name))


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in LARGE])
def test_few_options_need_no_groups(name: str) -> None:
    assert [title for title, _ in in_groups(options(name))] == ["Options"]


def test_what_is_used_most_comes_first() -> None:
    groups = dict(in_groups(options("trueload http")))
    assert list(groups)[:4] == ["Load", "Requests", "Search, thresholds and repetitions", "Output"]
    assert [name_of(option) for option in groups["Load"]][:3] == ["connections", "duration", "rate"]
    assert list(groups)[-1] == "Help"


@pytest.mark.parametrize("name", WITH_SHORT)
def test_a_short_help_has_the_usual_options_in_a_line_each_and_names_the_whole(name: str) -> None:
    lines = short_help(COMMANDS[name]).splitlines()
    listed = [line for line in lines if line.startswith("  -")]
    assert max(map(len, listed)) <= 80, max(listed, key=len)
    assert len(listed) <= 35
    count = len(options(name)) - len(listed) - 1  # -h and --help are one
    assert lines[-1] == (f"`{name} --help` explains these {len(listed)} options, and {count} more.")
    assert lines[0].startswith(f"Usage: {name} ")
    assert any(line.startswith(f"  Example: {name}") for line in lines)


def test_the_commands_with_many_options_have_a_short_help() -> None:
    assert {f"trueload {name}" for name in ("http", "ws", "compare", "suite run")} < set(WITH_SHORT)
    usual = short_help(COMMANDS["trueload http"])
    for expert in ("--refill", "--spin", "--coalesce", "--driver", "--connection-window"):
        assert f"{expert} " not in usual
        assert any(expert in each.opts for each in options("trueload http"))


def examples(name: str) -> list[str]:
    text = re.sub(r"\n *", " ", COMMANDS[name].command.help.replace("\n\n", "\0"))
    found = (re.search(r": (?:sudo )?(trueload .*)", part) for part in text.split("\0"))
    return [" ".join(each[1].split()) for each in found if each]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_of_a_help_is_a_command_line(name: str) -> None:
    found = examples(name)
    assert found, "the help has no example"
    for example in found:
        words = shlex.split(example)
        assert " ".join(words).startswith(name), example
        depth = len(name.split())
        try:
            COMMANDS[name].command.make_context(name, words[depth:], parent=COMMANDS[name].parent)
        except typer.TyperException as error:
            pytest.fail(f"{example}: {error}")
