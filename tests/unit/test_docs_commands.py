"""Every command line of trueload on a page is one that its parser accepts, and its files load.

Strategy: collect the lines of code blocks and the inline code that call ``trueload``, and hand the
words to the parser of that command. It refuses unknown options, values of a wrong kind, and missing
arguments. Nothing is run (`test_docs_examples.py` does that), but suites are planned, and blocks of
TOML are read by who reads such files.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from documented import PAGES, commands_in, words_of
from harness import ROOT
from trueload.cli.app import build_command, run
from trueload.cli.first_words import with_port
from trueload.places.lab import read_lab
from trueload.request.conversation import read_conversation
from trueload.request.scenario import ScenarioFlags, read_scenario
from trueload.request.url import parse_url
from trueload.request.values import Request
from trueload.subjects.contracts import load_contract
from trueload.subjects.manifest import MANIFEST, load_subject
from trueload.suites.definition import load_suite

# Words that a reader replaces by a suite, a subject or a file of their own.
READERS_OWN = {"FILE", "NAME", "LANGUAGE/NAME", "my-api", "my-server,trueload", "places.toml"}


@cache
def cli() -> Any:
    return build_command()


def mistake_in(command: str) -> str:
    """Return what the parser says against a command line; an empty text if it accepts it.

    A mere name, such as `trueload compare`, only has to be a command.
    """
    words = with_port(words_of(command))
    context = cli().make_context("trueload", [], resilient_parsing=True)
    while verbs := getattr(context.command, "commands", None):
        if not words:
            return ""
        name = words.pop(0)
        if name not in verbs:
            return f"no command is called {name}"
        context = verbs[name].make_context(name, [], parent=context, resilient_parsing=True)
    try:
        if words:
            context.command.make_context(context.info_name, words, parent=context.parent)
    except typer.Exit:
        return ""  # --help
    except typer.TyperException as error:
        return str(error)
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_line_of_a_page_is_accepted(page: Path) -> None:
    for command in commands_in(page.read_text(), is_code=page.suffix != ".md"):
        assert mistake_in(command) == "", command


def test_the_pages_have_many_commands() -> None:
    found = {command for page in PAGES for command in commands_in(page.read_text())}
    assert len(found) > 100


def test_every_suite_of_a_page_has_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    """Suites and subjects that a page names exist, and the options fit the suite."""
    found = sorted({command for page in PAGES for command in commands_in(page.read_text())})
    suites = [words for words in map(words_of, found) if words[:2] == ["suite", "run"]]
    planned = [words for words in suites if words[2:] and not READERS_OWN & set(words)]
    assert len(planned) > 10
    for words in planned:
        assert run([*words, "--dry-run"]) == 0, f"{words}: {capsys.readouterr().err}"


@pytest.mark.parametrize(
    ("command", "mistake"),
    [
        ("trueload http URL --frobnicate 3", "No such option: --frobnicate"),
        ("trueload http URL -c many", "'many' is not a count: write for example 20k"),
        ("trueload http URL more", "Got unexpected extra argument(s) (more)"),
        ("trueload compare URL_A", "Missing parameter: url_b"),
        ("trueload runs frobnicate", "no command is called frobnicate"),
        ("trueload http URL -d 1s | jq .verdict", ""),
        ("trueload http --help", ""),
        ("trueload runs", ""),
    ],
)
def test_a_mistake_would_be_found(command: str, mistake: str) -> None:
    assert mistake_in(command) == mistake


def test_commands_are_found_in_blocks_and_in_prose() -> None:
    block = "```\n$ trueload doctor --quick   looks\nsaved (trueload runs show 7)\n```\n"
    text = f"{block}`trueload\nruns`"
    assert list(commands_in(text)) == [
        "trueload doctor --quick",
        "trueload runs show 7",
        "trueload runs",
    ]
    assert list(commands_in("  - exec trueload http URL", is_code=True)) == ["trueload http URL"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_target_of_make_on_a_page_exists(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?m)(?:^|`)make ([a-z0-9-]+)", page.read_text()):
        assert re.search(rf"(?m)^{target}:", makefile), f"make {target}"


def read_defaults(path: Path) -> None:
    """Check that each table is a command, and each key one of its options."""
    tables = [("trueload", tomllib.loads(path.read_text()))]
    while tables:
        command, table = tables.pop()
        for key, value in table.items():
            if isinstance(value, dict):
                tables.append((f"{command} {key}", value))
            else:
                words = value if isinstance(value, list) else [value]
                flags = [f"--{key}={word}" for word in words]
                argument = "NAME" if command.endswith("run") else "URL"
                assert mistake_in(shlex.join([*command.split(), argument, *flags])) == ""


def read_manifest(path: Path) -> None:
    folder = path.parent / "rust" / "my-server"
    folder.mkdir(parents=True)
    path.rename(folder / MANIFEST)
    assert load_subject(folder)


def read_contract(path: Path) -> None:
    load_contract(path.parent, path.stem)


def read_steps(path: Path) -> None:
    users = path.with_name("users.csv")
    users.write_text("user,password\n")
    read_scenario(path, ScenarioFlags(parse_url("http://127.0.0.1:8080/"), data=users))


def read_talk(path: Path) -> None:
    base = ScenarioFlags(parse_url("http://127.0.0.1:8080/"))
    assert read_conversation(path, base, Request(host="127.0.0.1:8080", path="/")).steps


READERS: dict[str, list[Callable[[Path], Any]]] = {
    "adding-a-subject.md": [read_manifest],
    "hosts.md": [read_lab],
    "http2.md": [load_suite],
    "options.md": [read_defaults],
    "scenarios.md": [read_steps] * 4,
    "websocket.md": [read_talk] * 6,
    "your-own-suite.md": [load_suite, load_suite, read_contract],
}


@pytest.mark.parametrize("name", [page.name for page in PAGES if page.suffix == ".md"])
def test_every_file_in_toml_of_a_page_can_be_read(name: str, tmp_path: Path) -> None:
    (page,) = (page for page in PAGES if page.name == name and page.parent != ROOT / "subjects")
    blocks = re.findall(r"(?ms)^```toml\n(.*?)^```", page.read_text())
    readers = READERS.get(name, [])
    assert len(blocks) == len(readers)
    for at, (block, read) in enumerate(zip(blocks, readers, strict=True)):
        path = tmp_path / f"block-{at}.toml"
        path.write_text(block)
        read(path)
