"""The groups of options in the help: complete, without doubles, and the usual ones first."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from trueload.cli.app import build_command
from trueload.cli.help_groups import FEW, GROUPS, in_groups, name_of


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


LARGE = [name for name in COMMANDS if len(options(name)) > FEW]


def test_every_group_has_an_option() -> None:
    found = {title for name in LARGE for title, _ in in_groups(options(name))}
    assert found == set(GROUPS)


@pytest.mark.parametrize("name", LARGE)
def test_every_option_of_a_large_command_has_a_group(name: str) -> None:
    found = dict(in_groups(options(name)))
    assert {name_of(option) for option in found["Help"]} == {"no-color", "help"}
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
