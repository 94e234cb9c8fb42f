#!/usr/bin/env python3
"""Writes down what is declared elsewhere: docs/options.md, and parts of the Python API.

An option of a command is an item of the page. A field of a declaration is a line of a class in
api/options.py; its unit has the type. Each function of api/protocols.py has its coroutine in
aio.py, its method of the pytest fixture and its name in the package. tests/unit/test_options.py
fails where what is written is not what is declared. Run it after a change, from the checkout's
virtual environment:

    .venv/bin/python tools/options.py
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trueload.api import protocols
from trueload.api.measure import OF_PRINTING
from trueload.cli.app import build_command
from trueload.cli.help_groups import GROUPS, option_of
from trueload.commands import (
    measure_options,
    place_options,
    serve_options,
    suite_options,
)
from trueload.commands.protocols import PROTOCOLS
from trueload.metrics import options as metrics_options
from trueload.protocol import engine_options, load_options, request_options
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.load_options import WINDOW_KEYS, LoadOptions
from trueload.protocol.option import Option, Settings, name_of, options_of
from trueload.suites import changes

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "options.md"
PACKAGE = ROOT / "python" / "trueload"
KEYWORDS = PACKAGE / "api" / "options.py"
BEGIN, END = "# Written by tools/options.py.\n", "# End of what is written.\n"
# The modules that declare options, from the lowest; their classes are those of the keywords.
DECLARING = (
    *(engine_options, load_options, request_options, measure_options),
    *(place_options, metrics_options, serve_options, changes, suite_options),
)
# What tells an option of one protocol from that of another, and says no more than its name.
ALIKE = {
    r"(message|datagram)": "request",
    r"(Messages|Datagrams)": "Requests",
    r"have come back": "are answered",
    r"from each socket": "on each connection",
    r"HTTP/1\.1 connection": "connection",
}
# Groups of commands.
TOGETHER = {
    "http, tcp, udp, ws, compare": "loads",
    "serve http, serve tcp, serve udp, serve ws": "serve",
}
# What only the command line has.
PRINTING = {*OF_PRINTING, "published"}
NOT_TYPED = {"RatioOptions", "WsLimitOptions", "BroadcastOptions"}
# The classes of functions, with what they take beside the options of a declared class of that name.
FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "LoadingOptions": (
        "Options of every function that loads a server.",
        ("MeasureOptions", "EngineOptions", "LoadOptions", "PlacementOptions", "MetricsOptions"),
    ),
    "AbOptions": (
        "Options of ``trueload.ab``; ``repeat`` is the number of pairs.",
        (
            *("ResultOptions", "RepeatOptions", "EngineOptions", "LoadOptions", "PlaceOptions"),
            *("WaitOptions", "MetricsOptions", "RequestOptions"),
        ),
    ),
    "HttpOptions": ("Options of ``trueload.http``.", ("LoadingOptions",)),
    "TcpOptions": ("Options of ``trueload.tcp``.", ("LoadingOptions",)),
    "UdpOptions": ("Options of ``trueload.udp``.", ("LoadingOptions", "EchoOptions")),
    "WsOptions": (
        "Options of ``trueload.ws``.",
        ("LoadingOptions", "WsEchoOptions", "WsBroadcastOptions", "ModeOptions"),
    ),
    "SuiteOptions": (
        "Options of ``trueload.suite``.",
        ("PlaceOptions", "WaitOptions", "MetricsOptions"),
    ),
}
# Classes that stay, although only one other is made of them.
KEPT = {"ServeOptions", "ServeStreamOptions"}
INTRODUCTION = """# Options

The options of all commands that measure or serve, and how to set defaults of your own. `-h` lists
the usual options of a command, `--help` all of them.

- **Python:** an option is a keyword argument, with `_` for `-`: `connect_rate="500/s"`.
- **Suite:** a suite's file has [keys](your-own-suite.md#a-suite) of the same names, with `_`.

Each option is followed by the commands that have it, and by its default. *Loads* are `http`, `tcp`,
`udp`, `ws` and `compare`; a *request* of TCP and WebSocket is a message, of UDP a datagram.

## Defaults of your own

A file `trueload.toml` sets defaults, with one table for each command. In `pyproject.toml` these
tables stand under `[tool.trueload]`:

```toml
[http]                     # [tool.trueload.http] in pyproject.toml
connections = 128
header = ["Accept: application/json"]
fail-on = ["p99>20ms"]

[suite.run]
repeat = 6
```

trueload looks for the file in the current folder, then in the folders above it. It skips a file
that another user could change, and a line says so. `TRUELOAD_CONFIG` names another file; if it is
empty, trueload reads none.

An environment variable sets the default of one option: `TRUELOAD_HTTP_CONNECTIONS=128`,
`TRUELOAD_SUITE_RUN_REPEAT=6`, `TRUELOAD_HTTP_NO_SAVE=1`.

- The command line overrides variables, and variables override the file.
- An option also replaces the defaults of options that it excludes. With `--requests` on the command
  line, for example, a default of `duration` is left out.
- A line says which defaults were used, and the stored command contains them.
- The Python API reads no defaults.

<!-- options: written by make options -->
"""
END_OF_PAGE = "<!-- end of options -->\n"


def page() -> str:
    """docs/options.md."""
    tables: dict[str, dict[tuple[str, str, str], list[str]]] = {title: {} for title in GROUPS}
    for path, command in leaves(build_command()):
        for parameter in command.params:
            if (found := option_of(parameter)) is not None:
                cells = (flags(parameter, found), shown(found), found.help_of(path))
                tables[found.group].setdefault(cells, []).append(path)
    parts = [INTRODUCTION]
    for title, table in tables.items():
        if table:
            parts.append("\n".join([f"## {title}", "", *rows(table)]) + "\n")
    return "\n".join([*parts, END_OF_PAGE])


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command that is no group, by its path."""
    children = getattr(node, "commands", {})
    if not children:
        yield path, node
    for name, child in children.items():
        yield from leaves(child, f"{path} {name}".strip())


def rows(table: Mapping[tuple[str, str, str], list[str]]) -> Iterator[str]:
    """An item for each option, and one more for each other text that it has, behind it."""
    found = joined(table)
    order = list(dict.fromkeys(long_name(cells[0]) for cells in table))
    for cells in sorted(found, key=lambda cells: order.index(long_name(cells[0]))):
        of = ", ".join(found[cells])
        for commands, name in TOGETHER.items():
            of = of.replace(commands, name)
        default = f"; {cells[1]}" if cells[1] else ""
        yield f"- {cells[0]} ({of}{default}): {cells[2]}"


def joined(
    table: Mapping[tuple[str, str, str], list[str]],
) -> dict[tuple[str, str, str], list[str]]:
    """The rows, those of one option together whose texts are alike: that of requests stays."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    first: dict[tuple[str, str], tuple[str, str, str]] = {}
    for flags, default, text in sorted(table, key=lambda cells: "equest" not in cells[2]):
        alike, commands = text, table[flags, default, text]
        for ours, plain in ALIKE.items():
            alike = re.sub(ours, plain, alike)
        cells = first.setdefault((flags, alike), (flags, default, text))
        other = default and cells[1] != default
        rows.setdefault((flags, default, text) if other else cells, []).extend(commands)
    return rows


def long_name(flags: str) -> str:
    """The name of an option, without dashes."""
    return str(re.findall(r"--([a-z0-9-]+)", flags)[0])


def flags(parameter: Any, option: Option) -> str:
    """An option as it is typed."""
    words: list[str] = [*parameter.opts, *parameter.secondary_opts]
    words[-1] = f"{words[-1]} {option.unit.metavar.strip('<>')}".rstrip()
    return ", ".join(f"`{word}`" for word in words)


def shown(option: Option) -> str:
    """A default: as it is typed, or in words."""
    text = option.default_text
    return f"`{text}`" if text and not option.unset else text


def keywords() -> str:
    """The classes of api/options.py: those that are declared, and those of the functions.

    A class of which only one other is made is a part of that one.
    """
    models = {model.__name__: model for model in declared()}
    bases = {name: bases_of(model) for name, model in models.items() if has_keywords(model)}
    bases |= {name: (*more, *bases.get(name, ())) for name, (_, more) in FUNCTIONS.items()}
    uses = Counter(base for found in bases.values() for base in found)
    inlined = {name for name in bases if uses[name] == 1 and name not in KEPT}

    def made_of(name: str) -> tuple[list[str], dict[str, Option]]:
        """The bases that stay, and the options of the class and of those that do not."""
        kept: list[str] = []
        options: dict[str, Option] = {}
        for base in bases[name]:
            more, others = made_of(base) if base in inlined else ([base], {})
            kept += [each for each in more if each not in kept]
            options |= others
        return kept, options | own_options(models.get(name, Settings))

    engine = options_of(EngineOptions, only=("threads", "timeout"))
    window = options_of(LoadOptions, only=WINDOW_KEYS)
    written = []
    for name in [*(name for name in bases if name not in FUNCTIONS), *FUNCTIONS]:
        if name not in inlined:
            text = FUNCTIONS[name][0] if name in FUNCTIONS else about(models[name])
            found, options = made_of(name)
            options |= engine | window if name == "SuiteOptions" else {}
            written.append(typed(name, found, text, options))
    return "".join(written)


def declared() -> Iterator[type[Settings]]:
    """The classes that declare options, in the order in which they can be written."""
    for module in DECLARING:
        for name, model in vars(module).items():
            ours = isinstance(model, type) and model.__module__ == module.__name__
            if ours and issubclass(model, Settings) and name not in NOT_TYPED:
                yield model


def own_options(model: type[Settings]) -> dict[str, Option]:
    """The options that a class declares itself, without those that only print."""
    own = set(map(name_of, inspect.get_annotations(model))) - PRINTING
    return options_of(model, only=own)


def bases_of(model: type[Settings]) -> tuple[str, ...]:
    """The classes with keywords that a class is made of."""
    return tuple(base.__name__ for base in model.__bases__ if has_keywords(base))


def has_keywords(model: type) -> bool:
    """Whether a class has options for Python."""
    if model is Settings or not issubclass(model, Settings):
        return False
    return bool(own_options(model) or bases_of(model))


def about(model: type[Settings]) -> str:
    """What a class says of itself first."""
    return " ".join((inspect.getdoc(model) or "").partition("\n\n")[0].split())


def typed(name: str, bases: Iterable[str], text: str, options: Mapping[str, Option]) -> str:
    """A class of keywords."""
    found = ", ".join(bases) or "TypedDict"
    lines = [f"class {name}({found}, total=False):", f'    """{text}"""', ""]
    for field, option in options.items():
        lines.append(f"    {name_of(field)}: {type_of(option)}")
        if option.off:
            lines.append(f"    {option.off.lstrip('-').replace('-', '_')}: {type_of(option)}")
    return "\n".join(lines) + "\n\n\n"


def type_of(option: Option) -> str:
    """The type of a keyword argument."""
    if option.choices:
        return f"Literal[{', '.join(map(json.dumps, option.choices))}] | None"
    keyword = option.unit.keyword
    return f"{keyword}s" if option.several and keyword in ("Text", "Name") else keyword


def loading() -> dict[str, inspect.Signature]:
    """The functions that load a server, one for each protocol."""
    return {name: inspect.signature(inspect.unwrap(getattr(protocols, name))) for name in PROTOCOLS}


def options_of_function(name: str) -> str:
    """The class of a function's keywords."""
    annotation = getattr(protocols, name).__annotations__["options"]
    return str(annotation).removeprefix("Unpack[").removesuffix("]")


def names() -> str:
    """The names of the package that the protocols bring."""
    parts = []
    for module, found in (
        ("trueload.api.options", sorted(map(options_of_function, PROTOCOLS))),
        ("trueload.api.protocols", sorted([*PROTOCOLS, "serve"])),
    ):
        imports, listed = ", ".join(found), ", ".join(f'"{name}"' for name in found)
        parts.append(f"""if TYPE_CHECKING:
    from {module} import {imports}

__all__ += [{listed}]
_MODULES |= dict.fromkeys([{listed}], "{module}")
""")
    return "".join(parts)


def coroutines() -> str:
    """The bindings of aio.py."""
    listed = ", ".join(f'"{name}"' for name in sorted(PROTOCOLS))
    lines = [f"{name} = _awaited(protocols.{name})" for name in PROTOCOLS]
    return "\n".join([f"__all__ += [{listed}]", *lines]) + "\n"


def methods() -> str:
    """The methods of the pytest fixture."""
    return "\n".join(method(name, signature) for name, signature in loading().items())


def method(name: str, signature: inspect.Signature) -> str:
    """A method that does what a function does, and judges the result."""
    own = [each for each in signature.parameters.values() if each.kind is each.POSITIONAL_ONLY]
    given = ", ".join(each.name for each in own)
    return f"""\
    def {name}(
        self, {", ".join(map(parameter, own))}, /, *, invalid_ok: bool = False,
        **options: Unpack[of.{options_of_function(name)}]
    ) -> Result:
        \"""``trueload.{name}``; an invalid verdict fails the test unless ``invalid_ok``.\"""
        __tracebackhide__ = True
        result: Result = self._trusted("{name}", ({given},), options, invalid_ok)
        return result
"""


def parameter(each: inspect.Parameter) -> str:
    """A parameter as it is written."""
    default = "" if each.default is each.empty else f" = {each.default!r}"
    return f"{each.name}: {each.annotation}{default}"


WRITTEN = {
    KEYWORDS: keywords,
    PACKAGE / "__init__.py": names,
    PACKAGE / "aio.py": coroutines,
    PACKAGE / "pytest_plugin.py": methods,
}
"""The modules that have a part written by this program, and what writes it."""


def rewritten(path: Path) -> str:
    """A module with its part written again, formatted."""
    found = re.compile(f"^( *){re.escape(BEGIN)}.*^ *{re.escape(END)}", re.DOTALL | re.MULTILINE)
    text = path.read_text()
    assert found.search(text), f"{path} has no place that begins with {BEGIN.strip()!r}"
    written = WRITTEN[path]()
    text = found.sub(lambda at: f"{at[1]}{BEGIN}\n{written}\n{at[1]}{END}", text)
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(path), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Write the page and the modules."""
    PAGE.write_text(page())
    for path in WRITTEN:
        path.write_text(rewritten(path))


if __name__ == "__main__":
    main()
