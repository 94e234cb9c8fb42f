"""Defaults of options: variables like ``TRUELOAD_HTTP_DURATION``, then ``trueload.toml``.

How: defaults are inserted in front of the words of a command line, unless it has that option
itself, or one that replaces it. So a default is parsed, refused, recorded and repeated as if it had
been typed.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from trueload.commands.command_line import option_words
from trueload.commands.foreign_flags import RENAMED, former_names, removed_hint
from trueload.commands.hints import by_flag
from trueload.errors import UserError
from trueload.files.ownership import first_fault, steps, trusted_here
from trueload.near import did_you_mean

FILE = "trueload.toml"
PYPROJECT = "pyproject.toml"
CONFIG = "TRUELOAD_CONFIG"
"""The variable that names another file; empty for none."""

# Options that cannot be used together: if one is typed, the defaults of its line are dropped.
ONE_OF: tuple[tuple[str, ...], ...] = (
    ("--duration", "--requests", "--stages", "--replay"),
    ("--rate", "--stages", "--replay"),
    ("--close", "--pipeline", "--streams"),
    ("--body", "--body-file"),
    ("--size", "--data"),
    ("--text", "--dialect"),
    ("--cacert", "--insecure"),
)

_WRITE = "write a table for each command, like [http], with `connections = 64` in it"


@dataclass(frozen=True)
class Default:
    """The default of one option: its words, and where they come from."""

    flag: str
    words: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class ConfigFile:
    """The contents of a file, by command, and its name in messages."""

    name: str
    tables: Mapping[str, object]


def current_folder() -> Path | None:
    """Return the current folder, unless it has been removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


def find_config(
    folder: Path | None, environ: Mapping[str, str], announce: Callable[[str], object]
) -> ConfigFile | None:
    """Find the configuration file.

    It is the file that ``TRUELOAD_CONFIG`` names. Otherwise it is the first ``trueload.toml``, or
    ``pyproject.toml`` with ``[tool.trueload]``, in the folder or one above. A file that another
    user could change is skipped, and ``announce`` gets a line on it. Raises ``UserError`` for a
    file that cannot be read.
    """
    if (named := environ.get(CONFIG)) is not None:
        return _read(Path(named), named) if named else None
    for each in () if folder is None else (folder, *folder.parents):
        for name in (FILE, PYPROJECT):
            path = each / name
            if not os.path.isfile(path):
                continue
            shown = name if each == folder else str(path)
            found = _read(path, shown)
            if found is None:
                continue
            if (why := first_fault(steps(path), path, trusted_here())) is None:
                return found
            announce(
                f"{shown} is not used: {why}; set {CONFIG}={shlex.quote(str(path))} to use it"
                " anyway"
            )
    return None


def _read(path: Path, shown: str) -> ConfigFile | None:
    from trueload.files.toml import UnreadableError, read_toml  # imported late: few have a file

    of_others = path.name == PYPROJECT
    try:
        tables: object = read_toml(path)
    except UnreadableError as error:
        if of_others:
            return None  # its own tools report the error
        raise UserError(f"{shown} {error}", _WRITE) from None
    if of_others:
        for key in ("tool", "trueload"):
            tables = tables.get(key) if isinstance(tables, dict) else None
        shown = f"[tool.trueload] of {shown}"
    if tables is None:
        return None
    if not isinstance(tables, dict):
        raise UserError(f"{shown} is not a table", _WRITE)
    return ConfigFile(shown, tables)


def read_defaults(
    path: Sequence[str],
    command: Any,
    environ: Mapping[str, str],
    config: ConfigFile | None,
    names: Sequence[str],
) -> tuple[list[Default], list[Default]]:
    """Return the defaults for the command at ``path`` (``suite run``).

    The first list is from the environment, the second from the file. ``names`` are all commands.
    Raises ``UserError`` for an option that the command does not have.
    """
    flags = _long_flags(command)
    names = [*names, *(before[0] for before in RENAMED)]
    of_environment: list[Default] = []
    of_file: list[Default] = []
    for each in (*former_names(path), path):
        of_environment += _of_environment(each, command, environ, flags)
        of_file += [] if config is None else _of_file(each, command, config, flags, names)
    return of_environment, of_file


def _of_environment(
    path: Sequence[str], command: Any, environ: Mapping[str, str], flags: Mapping[str, Any]
) -> Iterator[Default]:
    prefix = "_".join(["TRUELOAD", *path, ""]).upper()
    for variable, text in sorted(environ.items()):
        if variable.startswith(prefix) and text:
            flag = "--" + variable.removeprefix(prefix).lower().replace("_", "-")
            if flag not in flags:
                raise _unknown(variable, f"trueload {' '.join(path)}", flag, flags)
            is_flag = getattr(flags[flag], "is_flag", False)
            value = _yes_or_no(variable, text) if is_flag else text
            yield _default(variable, command, flag, value, flags)


def _yes_or_no(variable: str, text: str) -> bool:
    word = text.strip().lower()
    if word not in ("1", "true", "yes", "on", "0", "false", "no", "off"):
        raise UserError(
            (f"{variable} is {text!r}, but its option is a flag, which is on or off"),
            "set it to 1 or 0",
        )
    return word in ("1", "true", "yes", "on")


def _of_file(
    path: Sequence[str],
    command: Any,
    config: ConfigFile,
    flags: Mapping[str, Any],
    names: Sequence[str],
) -> Iterator[Default]:
    for name in config.tables:
        if name not in names:
            raise UserError(
                f"{config.name}: trueload has no command '{name}'",
                did_you_mean(name, names) or _WRITE,
            )
    table: object = config.tables
    for name in path:
        table = table.get(name, {}) if isinstance(table, Mapping) else {}
    if not isinstance(table, Mapping):
        raise UserError(f"{config.name}: '{'.'.join(path)}' is not a table", _WRITE)
    for key, value in table.items():
        flag = "--" + key.replace("_", "-")
        if flag not in flags:
            raise _unknown(f"{config.name}: '{key}'", f"trueload {' '.join(path)}", flag, flags)
        yield _default(config.name, command, flag, value, flags)


def _default(
    source: str, command: Any, flag: str, value: object, flags: Mapping[str, Any]
) -> Default:
    try:
        words = tuple(option_words(command, {flag.removeprefix("--"): value}))
    except UserError as error:
        raise UserError(f"{source}: {error.message}", error.hint) from None
    return Default(flags[flag].opts[-1], words, source)


def _unknown(what: str, command: str, flag: str, flags: Mapping[str, Any]) -> UserError:
    hint = removed_hint(command, flag) or did_you_mean(flag, flags) or f"see `{command} --help`"
    return UserError(f"{what} is not an option: {command} has no {flag}", hint)


def _long_flags(command: Any) -> dict[str, Any]:
    others = ("--help", "--version")
    found = by_flag(command.params)
    return {flag: found[flag] for flag in found if flag.startswith("--") and flag not in others}


def in_front(
    words: Sequence[str], command: Any, defaults: Sequence[Sequence[Default]]
) -> tuple[list[str], list[Default]]:
    """Return the words after the command's name with the defaults in front, and the defaults used.

    A typed option, or one in an earlier list, drops the default of the same option and of those
    that it replaces. Words that ``command`` cannot parse are returned as they are.
    """
    taken = _typed(words, command)
    if taken is None:
        return list(words), []
    used: list[Default] = []
    for each in defaults:
        replaced = {other for flag in taken for other in _replaced_by(flag)}
        now = [default for default in each if default.flag not in replaced]
        taken |= {default.flag for default in now}
        used += now
    return [*(word for default in used for word in default.words), *words], used


def _typed(words: Sequence[str], command: Any) -> set[str] | None:
    context = command.context_class(command)
    try:
        values, _, _ = command.make_parser(context).parse_args(list(words))
    except typer.TyperException:  # the parser will report it again
        return None
    by_name = {parameter.name: parameter for parameter in command.params}
    return {flag for name in values for flag in by_name[name].opts if flag.startswith("--")}


def _replaced_by(flag: str) -> Iterator[str]:
    yield flag
    for line in ONE_OF:
        if flag in line:
            yield from line


def defaults_text(used: Sequence[Default]) -> str:
    """Return a line with the defaults used and where they come from, without their secrets.

    Empty if there are none.
    """
    parts = []
    for source in dict.fromkeys(default.source for default in used if default.words):
        from trueload.request.redact import redact_command  # imported late: most have no defaults

        words = [word for default in used if default.source == source for word in default.words]
        parts.append(f"{shlex.join(redact_command(words))} (from {source})")
    return f"defaults: {', '.join(parts)}" if parts else ""
