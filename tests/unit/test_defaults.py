"""Defaults from the environment and a file: their use, precedence and errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from trueload.cli.app import COMMANDS, build_command
from trueload.commands.defaults import (
    ConfigFile,
    defaults_text,
    find_config,
    in_front,
    read_defaults,
)
from trueload.errors import UserError


def command_at(*path: str) -> Any:
    node: Any = build_command(path[0])
    for name in path:
        node = node.commands[name]
    return node


def whole(
    typed: str,
    tables: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    path: tuple[str, ...] = ("http",),
) -> str:
    config = None if tables is None else ConfigFile("trueload.toml", tables)
    command = command_at(*path)
    found = read_defaults(path, command, environ or {}, config, list(COMMANDS))
    words, _ = in_front(typed.split(), command, found)
    return " ".join(words)


@pytest.mark.parametrize(
    ("typed", "table", "environ", "expected"),
    [
        ("URL", {}, {}, "URL"),
        ("URL", {"connections": 8}, {}, "--connections=8 URL"),
        (
            "URL",
            {"fail_on": ["p99>1s", "errors>1%"]},
            {},
            "--fail-on=p99>1s --fail-on=errors>1% URL",
        ),
        ("URL", {"duration": 2.5}, {}, "--duration=2.5s URL"),
        ("URL", {"no-save": True, "strict": False}, {}, "--no-save URL"),
        # A typed option takes precedence, under any of its names.
        ("URL -c 4", {"connections": 8}, {}, "URL -c 4"),
        ("URL --connections=4", {"connections": 8}, {}, "URL --connections=4"),
        ("URL -z 4s", {"duration": "8s"}, {}, "URL -z 4s"),
        ("URL -H A:1", {"header": ["B: 2"]}, {}, "URL -H A:1"),
        # So does an option that replaces it.
        ("URL -n 100", {"duration": "8s", "connections": 8}, {}, "--connections=8 URL -n 100"),
        ("URL --stages 1s@1", {"duration": "8s", "rate": "1k"}, {}, "URL --stages 1s@1"),
        ("URL --body-file F", {"body": "x"}, {}, "URL --body-file F"),
        # The environment takes precedence over the file.
        ("URL", {"duration": "8s"}, {"TRUELOAD_HTTP_REQUESTS": "9"}, "--requests=9 URL"),
        (
            "URL",
            {"connections": 8, "strict": True},
            {"TRUELOAD_HTTP_CONNECTIONS": "4", "TRUELOAD_HTTP_STRICT": "off"},
            "--connections=4 URL",
        ),
        ("URL", {}, {"TRUELOAD_HTTP_NO_SAVE": "1", "TRUELOAD_HTTP_BODY": ""}, "--no-save URL"),
        ("URL", {}, {"TRUELOAD_TCP_CONNECTIONS": "4", "TRUELOAD_STORE": "x"}, "URL"),
        # A line that the parser will refuse is passed on unchanged.
        ("URL --nonsense", {"connections": 8}, {}, "URL --nonsense"),
    ],
)
def test_defaults_stand_in_front_unless_something_typed_takes_their_place(
    typed: str, table: dict[str, object], environ: dict[str, str], expected: str
) -> None:
    assert whole(typed, {"http": table}, environ) == expected


def test_a_table_is_of_one_command() -> None:
    tables = {"suite": {"run": {"repeat": 3}}, "http": {"connections": 8}}
    assert whole("quick", tables, path=("suite", "run")) == "--repeat=3 quick"
    assert whole("H:1", tables, path=("tcp",)) == "H:1"


def test_defaults_by_a_command_s_former_name_are_those_of_its_present_one() -> None:
    tables = {"ab": {"repeat": 8}, "runs": {"compare": {"format": "json"}}}
    environ = {"TRUELOAD_AB_CONNECTIONS": "4", "TRUELOAD_RUNS_COMPARE_OUTPUT": "x"}
    assert whole("A B", tables, environ, ("compare",)) == "--connections=4 --repeat=8 A B"
    assert whole("a b", tables, environ, ("runs", "diff")) == "--output=x --format=json a b"


@pytest.mark.parametrize(
    ("tables", "message", "hint"),
    [
        ({"htpp": {}}, "trueload.toml: trueload has no command 'htpp'", "did you mean http?"),
        ({"http": 3}, "trueload.toml: 'http' is not a table", "write a table for each command"),
        (
            {"http": {"conections": 3}},
            "trueload.toml: 'conections' is not an option: trueload http has no --conections",
            "did you mean --connections?",
        ),
        ({"http": {"help": True}}, "'help' is not an option", "--help"),
        ({"http": {"strict": "yes"}}, "--strict is 'yes', and is either given or not", "True"),
        ({"http": {"connections": {"a": 1}}}, "--connections cannot be a dict", "as text"),
    ],
)
def test_a_mistake_in_the_file_gets_a_line_and_a_hint(
    tables: dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(UserError) as raised:
        whole("URL", tables)
    assert message in raised.value.message
    assert hint in raised.value.hint


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("TRUELOAD_HTTP_CONECTIONS", "4", "is not an option: trueload http has no --conections"),
        (
            "TRUELOAD_HTTP_STRICT",
            "maybe",
            "is 'maybe', but its option is a flag",
        ),
    ],
)
def test_a_mistake_in_the_environment_is_told(variable: str, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        whole("URL", environ={variable: text})


def test_what_was_used_is_told_without_its_secrets() -> None:
    command = command_at("http")
    tables = {"http": {"header": ["Authorization: Bearer abcdefgh"], "strict": False}}
    environ = {"TRUELOAD_HTTP_CONNECTIONS": "4"}
    config = ConfigFile("trueload.toml", tables)
    found = read_defaults(("http",), command, environ, config, list(COMMANDS))
    _, used = in_front(["URL"], command, found)
    assert defaults_text(used) == (
        "defaults: --connections=4 (from TRUELOAD_HTTP_CONNECTIONS), "
        "'--header=Authorization: <redacted>' (from trueload.toml)"
    )
    assert defaults_text([]) == ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    return inner


def found_in(folder: Path, environ: Mapping[str, str] | None = None) -> tuple[str, object] | None:
    notes: list[str] = []
    config = find_config(folder, environ or {}, notes.append)
    assert not notes
    return None if config is None else (config.name, config.tables)


def test_the_nearest_file_is_used(folder: Path) -> None:
    assert found_in(folder) is None
    above = folder.parent / "trueload.toml"
    above.write_text("[http]\nconnections = 1")
    assert found_in(folder) == (str(above), {"http": {"connections": 1}})
    project = folder / "pyproject.toml"
    project.write_text("[tool.other]\nx = 1")
    assert found_in(folder) == (str(above), {"http": {"connections": 1}})
    project.write_text("[tool.trueload.http]\nconnections = 2")
    assert found_in(folder) == ("[tool.trueload] of pyproject.toml", {"http": {"connections": 2}})
    project.write_text("not toml")
    assert found_in(folder) == (str(above), {"http": {"connections": 1}})
    (folder / "trueload.toml").write_text("")
    assert found_in(folder) == ("trueload.toml", {})


def test_the_environment_names_another_file_or_none(folder: Path, tmp_path: Path) -> None:
    (folder / "trueload.toml").write_text("[http]")
    assert found_in(folder, {"TRUELOAD_CONFIG": ""}) is None
    other = tmp_path / "other.toml"
    other.write_text("[tcp]")
    assert found_in(folder, {"TRUELOAD_CONFIG": str(other)}) == (str(other), {"tcp": {}})
    with pytest.raises(UserError, match=r"missing\.toml cannot be read: No such file"):
        found_in(folder, {"TRUELOAD_CONFIG": str(tmp_path / "missing.toml")})
    other.write_text("[tcp")
    with pytest.raises(UserError, match="is not TOML"):
        found_in(folder, {"TRUELOAD_CONFIG": str(other)})


def test_a_file_that_others_can_change_is_passed_over_and_told(folder: Path) -> None:
    path = folder / "trueload.toml"
    path.write_text("[http]\nconnections = 1")
    path.chmod(0o666)
    notes: list[str] = []
    assert find_config(folder, {}, notes.append) is None
    assert len(notes) == 1
    assert notes[0].startswith("trueload.toml is not used: ")
    assert f"set TRUELOAD_CONFIG={path} to use it anyway" in notes[0]
    assert found_in(folder, {"TRUELOAD_CONFIG": str(path)}) is not None
