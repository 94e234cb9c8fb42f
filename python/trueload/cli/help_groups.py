"""The two helps of a command: `--help` has all options, in titled groups, and `-h` the usual ones.

An option names its group where it is declared, and its line in the short help; here is the order of
the groups.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any

from trueload.protocol.option import Option

GROUPS = (
    *("Subjects", "Where it listens", "Load", "Broadcast", "Messages", "Requests"),
    *("Search, thresholds and repetitions", "Output", "Streamed answers", "HTTP/2", "TLS"),
    *("Connections", "Faults on purpose", "Where it runs", "Metrics", "Engine", "Help"),
)
FEW = 10  # options that need no groups
DEFAULT_MOST = 14  # characters of a default in the short help
OWN_MOST = 46  # characters of a command's own text in it


def option_of(parameter: Any) -> Option | None:
    """Return the declaration of a parameter (``commands.declarations``), if it has one."""
    offer = getattr(getattr(parameter, "type_descriptor", None), "parameter_info", None)
    return getattr(offer, "declared", None)


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
        grouped["Help" if declared is None else declared.group].append(each)
    for title, members in grouped.items():
        if members:
            yield title, sorted(members, key=lambda each: not _brief(each))


def _brief(option: Any) -> str:
    """The line of an option in the short help; empty if it is for experts."""
    declared = option_of(option)
    return "" if declared is None else declared.brief


def has_short_help(command: Any) -> bool:
    """Whether ``-h`` shows only some of a command's options."""
    return len(command.params) > FEW and any(map(_brief, command.params))


def short_help(context: Any) -> str:
    """Return the short help of a command: its usual options, in a line each, and how to see all."""
    command = context.command
    options = [each for each in command.params if each.param_type_name == "option"]
    usual = {title: list(filter(_brief, members)) for title, members in in_groups(options)}
    text = inspect.cleandoc(command.help)
    lines = [command.get_usage(context), "", f"  {_first_sentence(text)}."]
    if example := re.search(r"^Example: .*(\n.+)*", text, re.MULTILINE):
        lines += ["", f"  {' '.join(example[0].split())}"]
    path = context.command_path.partition(" ")[2]
    for title, members in usual.items():
        if members:
            lines += ["", f"{title}:", *(_short_line(each, path) for each in members)]
    shown = sum(map(len, usual.values()))
    whole = f"`{context.command_path} --help`"
    lines += ["", f"{whole} explains these {shown} options, and {len(options) - shown} more."]
    return "\n".join(lines)


def _first_sentence(text: str) -> str:
    return re.split(r"[;.](?:\s|$)", " ".join(text.split()))[0]


def _short_line(each: Any, path: str) -> str:
    option = option_of(each)
    assert option is not None, "it has a brief"
    word = name_of(each).upper() if option.choices else option.unit.metavar
    own = _first_sentence(option.texts.get(path, ""))
    said = own if 0 < len(own) <= OWN_MOST else option.brief
    shown = option.default_text
    flags = f"{', '.join(each.opts)} {word}".rstrip()
    return f"  {flags:<26} {said}" + (f"  [{shown}]" if 0 < len(shown) <= DEFAULT_MOST else "")


def use_texts(command: Any, path: str) -> None:
    """Give the options of the command at ``path`` the texts that they have there."""
    for each in command.params:
        option = option_of(each)
        if option is not None and path in option.texts:
            each.help = option.text(path)


def write_options(command: Any, context: Any, formatter: Any) -> None:
    """Write a command's arguments, and its options in groups, as click's ``format_options``."""
    shown = [each for each in command.get_params(context) if each.get_help_record(context)]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    options = [each for each in shown if each.param_type_name == "option"]
    sections = [("Arguments", arguments)] if arguments else []
    for title, members in (*sections, *in_groups(options)):
        with formatter.section(title):
            formatter.write_dl([each.get_help_record(context) for each in members])
