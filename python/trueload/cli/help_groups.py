"""The titled groups in which `--help` and the manual page list a command's options.

An option names its group where it is declared; here is the order of the groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from trueload.commands.declared import option_of

GROUPS = (
    *("Subjects", "Where it listens", "Load", "Broadcast", "Messages", "Requests"),
    *("Search, thresholds and repetitions", "Output", "Streamed answers", "HTTP/2", "TLS"),
    *("Connections", "Faults on purpose", "Where it runs", "Metrics", "Engine", "Help"),
)
FEW = 10  # options that need no groups


def name_of(option: Any) -> str:
    """The long name of an option, without dashes."""
    names: list[str] = [name.lstrip("-") for name in option.opts]
    return max(names, key=len)


def in_groups(options: Iterable[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the options by the titles of their groups; as "Options" where they are few."""
    listed = list(options)
    if len(listed) <= FEW:
        yield "Options", listed
        return
    grouped: dict[str, list[Any]] = {title: [] for title in GROUPS}
    for each in listed:
        declared = option_of(each)
        grouped["Help" if declared is None else declared[0].group].append(each)
    for title, members in grouped.items():
        if members:
            yield title, sorted(members, key=lambda each: not _brief(each))


def _brief(option: Any) -> str:
    declared = option_of(option)
    return "" if declared is None else declared[0].brief


def use_texts(command: Any, path: str) -> None:
    """Give the options of the command at ``path`` the texts that they have there."""
    for each in command.params:
        declared = option_of(each)
        if declared is not None and path in declared[0].texts:
            option, default = declared
            each.help = option.text(default, path)


def write_options(command: Any, context: Any, formatter: Any) -> None:
    """Write a command's arguments, and its options in groups, as click's ``format_options``."""
    shown = [each for each in command.get_params(context) if each.get_help_record(context)]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    options = [each for each in shown if each.param_type_name == "option"]
    sections = [("Arguments", arguments)] if arguments else []
    for title, members in (*sections, *in_groups(options)):
        with formatter.section(title):
            formatter.write_dl([each.get_help_record(context) for each in members])
