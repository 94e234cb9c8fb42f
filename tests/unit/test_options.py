"""A setting is declared once, and then appears on every surface by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from trueload.api.options import HttpOptions
from trueload.cli.app import build_command
from trueload.commands.foreign_flags import KEYS_OF_SUITES
from trueload.errors import UserError
from trueload.protocol.engine_options import ENGINE_DEFAULTS, EngineOptions, ThreadOptions
from trueload.protocol.load_options import WINDOW_KEYS, LoadOptions
from trueload.protocol.option import (
    Settings,
    any_span,
    flag_of,
    name_of,
    options_of,
    positive_span,
    read_texts,
)
from trueload.protocol.plan import Generate, Serve
from trueload.suites.definition import ENGINE_KEYS, Axes, Suite, load_suite

from tools import options

ROOT = Path(__file__).resolve().parents[2]
# The settings that each command offers; a setting that it omits has its reason beside its reader.
LOADING: list[tuple[type[Settings], set[str]]] = [(EngineOptions, set()), (LoadOptions, set())]
SERVING: list[tuple[type[Settings], set[str]]] = [(ThreadOptions, set())]
COMMANDS: dict[str, list[tuple[type[Settings], set[str]]]] = {
    **dict.fromkeys(("http", "tcp", "udp", "ws", "compare"), LOADING),
    "suite run": [
        (EngineOptions, set(map(name_of, options_of(EngineOptions))) - {"threads", "timeout"}),
        (LoadOptions, set(map(name_of, options_of(LoadOptions))) - set(WINDOW_KEYS)),
    ],
    **dict.fromkeys(("serve http", "serve udp"), SERVING),
}


def options_at(command: str) -> dict[str, Any]:
    node: Any = build_command()
    for word in command.split():
        node = node.commands[word]
    return {flag: parameter for parameter in node.params for flag in parameter.opts}


def commands_below(node: Any) -> Iterator[Any]:
    """Every command that takes options."""
    children = getattr(node, "commands", {})
    yield from (each for child in children.values() for each in commands_below(child))
    if not children:
        yield node


def test_what_is_typed_is_read_by_a_parser_of_ours_or_is_a_text_as_it_stands() -> None:
    """typer's own rules for numbers and files are not applied: see ``cli/app.py``."""
    for command in commands_below(build_command()):
        for parameter in command.params:
            declared, where = parameter.type_descriptor, (command.name, parameter.name)
            info = declared.parameter_info
            rules = (info.min, info.max, info.exists, info.writable, info.resolve_path)
            assert not any(rule not in (None, False) for rule in rules), where
            as_it_stands = declared.annotation in (bool, str, Path, list[str], list[Path])
            assert info.parser or declared.choices or as_it_stands, where


@pytest.mark.parametrize("model", [EngineOptions, LoadOptions])
def test_every_setting_says_what_it_is(model: type[Settings]) -> None:
    assert options_of(model).keys() == get_type_hints(model).keys() - {"group", "own_options"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_setting_is_an_option_of_each_command_with_its_help(command: str) -> None:
    there = options_at(command)
    for model, without in COMMANDS[command]:
        for field, option in options_of(model, without=without).items():
            shown = there[flag_of(field)]
            text = option.help if command == "suite run" else option.texts.get(command, option.help)
            assert shown.help.startswith(text)
            default = bool(option.default_text) and command != "suite run"
            assert ("[default: " in shown.help) == default
            assert shown.metavar == option.unit.metavar


@pytest.mark.parametrize("model", [EngineOptions, LoadOptions])
def test_every_default_that_is_shown_reads_as_the_default(model: type[Settings]) -> None:
    for field, option in options_of(model).items():
        if option.default is not None:
            assert option.unit.parse(option.default_text) == option.default, field


# A value for each kind of setting, as text.
VALUES = {"TIME": "10us", "COUNT": "3", "RATE": "300/s", "<auto|io_uring|epoll>": "epoll"}


def test_every_setting_of_an_engine_is_a_key_of_a_suite(tmp_path: Path) -> None:
    given = options_of(EngineOptions, only=ENGINE_KEYS)
    texts = {field: VALUES[option.unit.metavar] for field, option in given.items()}
    lines = [f"{name_of(field)} = {json.dumps(text)}" for field, text in texts.items()]
    path = tmp_path / "one.toml"
    path.write_text("\n".join(['about = "a"', 'contract = "c"', 'duration = "1s"', *lines]))
    engine = load_suite(path).engine
    for field, option in given.items():
        assert getattr(engine, field) == option.unit.parse(texts[field])
    assert {"connections", "idle", "pipeline", "rate"} <= set(Axes.model_fields)
    assert {flag_of(field) for field in given} == {*KEYS_OF_SUITES, "--threads", "--timeout"}
    assert set(ENGINE_KEYS) == {name_of(field) for field in options_of(EngineOptions)} - {"cpus"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('driver = "kqueue"', "driver: 'kqueue' is not one of 'auto', 'io_uring', 'epoll'"),
        ('spin = "11ms"', "spin: '11ms' is more than 10ms, and saves nothing beyond"),
        ("threads = 0", "threads: '0' is not from 1 to 1,024"),
        ("timeout = true", "timeout: 'True' is not a duration: write for example 10s"),
        ("engine = 3", "'engine' is not a key; keys are about, contract"),
        ("cpus = 3", "'cpus' is not a key; keys are about, contract"),
    ],
)
def test_a_suite_says_which_setting_is_wrong(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "one.toml"
    path.write_text(f'about = "a"\ncontract = "c"\nduration = "1s"\n{line}\n')
    with pytest.raises(UserError) as error:
        load_suite(path)
    assert error.value.message.startswith(f"{path}: {message}")


def test_every_setting_of_an_engine_is_in_the_plan_that_it_reads() -> None:
    schema = json.loads((ROOT / "schema" / "to-engine.schema.json").read_text())
    generate, serve = schema["oneOf"][:2]
    assert set(options_of(EngineOptions)) <= set(generate["properties"])
    assert set(options_of(ThreadOptions)) <= set(serve["properties"])
    ours = Generate.model_json_schema()["properties"]
    for field, option in options_of(EngineOptions, without=("cpus",)).items():
        assert ours[field]["description"] == option.help
    assert set(options_of(ThreadOptions)) <= set(Serve.model_fields)


def test_settings_that_were_given_are_laid_over_others_and_none_is_not_given() -> None:
    given = EngineOptions(threads=1, spin_ns=5, refill=None)
    base = EngineOptions(threads=4, refill=2)
    assert given.over(base) == EngineOptions(threads=1, spin_ns=5, refill=2)
    assert given.given == {"threads": 1, "spin_ns": 5}
    assert read_texts(EngineOptions, {}).over(base) == base
    assert Suite(about="a", contract="c", window=LoadOptions(requests=1)).engine == ENGINE_DEFAULTS


def test_the_page_of_options_and_the_python_api_are_as_declared() -> None:
    again = "run `.venv/bin/python tools/options.py`"
    assert options.PAGE.read_text() == options.page(), again
    for path in options.WRITTEN:
        assert options.rewritten(path) == path.read_text(), again


@pytest.mark.parametrize("model", [EngineOptions, LoadOptions])
def test_every_setting_is_a_keyword_argument_and_a_row_of_the_page(model: type[Settings]) -> None:
    typed = get_type_hints(HttpOptions)
    for field in options_of(model):
        assert name_of(field) in typed
        assert f"`{flag_of(field)} " in options.PAGE.read_text()


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("10", 10**10),
        (" 1.5 ", 1_500_000_000),
        ("0", 0),
        ("500ms", 500_000_000),
        ("2m", 12 * 10**10),
        ("1e3", 10**12),
        ("1m30s", 9 * 10**10),
        ("1sec", 10**9),
    ],
)
def test_a_time_without_a_unit_is_seconds(text: str, ns: int) -> None:
    assert any_span(text) == ns


@pytest.mark.parametrize(
    "text", ["", "s", "-1", "1e", "e3", "1m30", "x5", "1_0", "\u0663", "1.", "10x"]
)
def test_what_is_no_time_is_named_as_it_was_written(text: str) -> None:
    with pytest.raises(ValueError, match="^'" + re.escape(text) + "' "):
        any_span(text)


def test_no_time_at_all_is_none() -> None:
    with pytest.raises(ValueError, match="'0' must be greater than 0"):
        positive_span("0")
