#!/usr/bin/env python3
"""Writes down what is declared elsewhere: docs/options.md, and parts of the Python API.

Strategy: a field of a declaration is a row of the page and a line of a class in api/options.py, its
unit decides the type. Each function of api/protocols.py has its coroutine in aio.py, its method of
the pytest fixture and its name in the package. tests/unit/test_options.py fails where what is
written is not what is declared. Run it after a change, from the checkout's virtual environment:

    .venv/bin/python tools/options.py
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from trueload.api import protocols
from trueload.commands.protocols import PROTOCOLS
from trueload.protocol.engine_options import EngineOptions, ThreadOptions
from trueload.protocol.load_options import LoadOptions
from trueload.protocol.option import Option, Settings, flag_of, name_of, options_of
from trueload.suites.definition import ENGINE_KEYS, WINDOW_KEYS, Axes

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "options.md"
PACKAGE = ROOT / "python" / "trueload"
KEYWORDS = PACKAGE / "api" / "options.py"
BEGIN, END = "# Written by tools/options.py.\n", "# End of what is written.\n"
# The types of api/options.py, by the word for a value.
TYPES = {
    "TIME": "Duration",
    "COUNT": "Number",
    "N": "Number",
    "RATE": "Rate",
    "LIST": "Numbers",
    "STAGES": "Text",
}
OF_THREADS = tuple(map(name_of, ThreadOptions.model_fields))
NOT_OF_SUITES = [
    name for name in map(name_of, EngineOptions.model_fields) if name not in ENGINE_KEYS
]
# The classes of keywords: name, base, what it is, and which settings it adds.
CLASSES: tuple[tuple[str, str, str, type[Settings], Iterable[str]], ...] = (
    ("ThreadOptions", "TypedDict", "How an engine runs.", ThreadOptions, OF_THREADS),
    (
        "SuiteEngineOptions",
        "TypedDict",
        "How an engine generates load, where a suite has the CPUs.",
        EngineOptions,
        ENGINE_KEYS,
    ),
    (
        "EngineOptions",
        "SuiteEngineOptions",
        "How an engine generates load.",
        EngineOptions,
        NOT_OF_SUITES,
    ),
    (
        "WindowOptions",
        "TypedDict",
        "How long is measured, and how an open loop is spaced.",
        LoadOptions,
        WINDOW_KEYS,
    ),
    (
        "LoadOptions",
        "WindowOptions",
        "What a server is put under.",
        LoadOptions,
        [name for name in map(name_of, LoadOptions.model_fields) if name not in WINDOW_KEYS],
    ),
)
INTRODUCTION = """# Options

This page lists the options of the load and of the engine, which every command that generates load
takes. It also says how to set defaults of your own. Each option is declared once, in the code, and
the tables come from there. For the other options of a command see its help, such as
`trueload http --help`.

- **Python:** an option is a keyword argument, with `_` for `-`: `connect_rate="500/s"`.
- **Suite:** the third column of the tables below is the key in a suite's file. A key of `[[loads]]`
  takes a list of values.

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
"""


def page() -> str:
    """docs/options.md."""
    parts = [INTRODUCTION]
    for title, model in (("The load", LoadOptions), ("The engine", EngineOptions)):
        head = (
            f"## {title}\n\n| option | Python | suite | default | meaning |\n|---|---|---|---|---|"
        )
        parts.append("\n".join([head, *rows(model)]) + "\n")
    return "\n".join(parts)


def rows(model: type[Settings]) -> Iterator[str]:
    """A row for each setting."""
    for field, option in options_of(model).items():
        name = name_of(field)
        default = option.default_text(model.model_fields[field].default)
        short = f"`{option.short}`, " if option.short else ""
        metavar = option.unit.metavar.strip("<>").replace("|", "\\|")
        cells = (
            f"{short}`{flag_of(field)} {metavar}`",
            f"`{name}`",
            key(name),
            f"`{default}`" if default and not option.unset else default,
            option.help.replace("|", "\\|"),
        )
        yield f"| {' | '.join(cells)} |"


def key(name: str) -> str:
    """Where a suite's file has a setting, if it does."""
    if name in (*ENGINE_KEYS, *WINDOW_KEYS):
        return f"`{name}`"
    return f"`{name}` of `[[loads]]`" if name in Axes.model_fields else ""


def keywords() -> str:
    """The classes of api/options.py that are declared elsewhere."""
    written = []
    for name, base, about, model, names in CLASSES:
        lines = [f"class {name}({base}, total=False):", f'    """{about}"""', ""]
        for field, option in options_of(model, only=names).items():
            lines.append(f"    {name_of(field)}: {type_of(option)}")
        written.append("\n".join(lines) + "\n\n\n")
    return "".join(written)


def type_of(option: Option) -> str:
    """The type of a keyword argument."""
    metavar = option.unit.metavar
    if metavar.startswith("<"):
        choices = ", ".join(f'"{choice}"' for choice in metavar.strip("<>").split("|"))
        return f"Literal[{choices}] | None"
    return TYPES[metavar]


def loading() -> dict[str, inspect.Signature]:
    """The functions that load a server, one for each protocol."""
    return {name: inspect.signature(inspect.unwrap(getattr(protocols, name))) for name in PROTOCOLS}


def options_of_function(name: str) -> str:
    """The class of a function's keywords."""
    annotation = getattr(protocols, name).__annotations__["options"]
    return str(annotation).removeprefix("Unpack[").removesuffix("]")


def names() -> str:
    """The names of the package that the protocols bring."""
    found = sorted([*map(options_of_function, PROTOCOLS), *PROTOCOLS, "serve"])
    imports = ", ".join(found)
    listed = ", ".join(f'"{name}"' for name in found)
    return f"""if TYPE_CHECKING:
    from trueload.api.protocols import {imports}

__all__ += [{listed}]
_MODULES |= dict.fromkeys([{listed}], "trueload.api.protocols")
"""


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
        **options: Unpack[protocols.{options_of_function(name)}],
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
    """A module with its part written anew, formatted."""
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
