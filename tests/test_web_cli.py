"""``--web`` from the command line: every measuring command has the page, and ends as it would."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from client_world import add_client, clients_command
from harness import Server, Trueload
from page_viewer import Viewer, get
from subject_world import World
from test_extras import OF_EXTRAS, without


def printed_url(process: subprocess.Popen[str]) -> str:
    """Return the URL of the page from a command's output."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.fullmatch(r"page at (http://127\.0\.0\.1:\d+/[\w-]+/)\n", line):
            return found[1]
    raise AssertionError("it did not say where the page is")


def watched(process: subprocess.Popen[str]) -> tuple[str, list[Any], bytes]:
    """Watch a run to its end as a browser does; return the URL, all states, and the report."""
    url = printed_url(process)
    viewer = Viewer(url)
    states: list[Any] = []
    while (state := viewer.state()) is not None:
        states.append(state)
        if state["end"]:
            break
    viewer.close()
    assert states, "it ended before there was a state"
    report = b""
    if states[-1]["end"] == "report":
        status, _, report = get(url, "report")
        assert status == 200
    return url, states, report


def text_of(state: Any) -> str:
    return unescape(re.sub("<.*?>", "", state["html"]))


def titles_of(states: list[Any]) -> set[str]:
    return {state["title"] for state in states}


def test_a_run_is_watched_and_becomes_its_report_and_its_token_is_kept_nowhere(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    out = tmp_path / "result.json"
    process = trueload.start(
        *("http", server.url, "-c", "4", "-d", "2s", "--warmup", "0", "--web", "--json", out)
    )
    url, states, report = watched(process)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode in (0, 4), stderr  # 4 on a machine with much else to do
    assert titles_of(states) == {f"trueload http {server.url}"}
    assert any("window" in text_of(state) for state in states)
    assert "The result of trueload http" in text_of(states[-1])
    assert b"<h1>" in report
    token = urlsplit(url).path.strip("/").encode()
    assert token.decode() not in stdout + stderr, "it is printed once"
    for path in trueload.folder.rglob("*"):
        assert path.is_dir() or token not in path.read_bytes(), path
    assert token not in out.read_bytes() + report
    assert b"--web" in report, "the command that is stored repeats the run"


def test_a_run_that_nobody_watches_waits_for_nobody(trueload: Trueload, server: Server) -> None:
    done = trueload.run("http", server.url, "-c", "1", "--requests", "5", "--web", "0")
    assert done.code in (0, 4)
    assert "5 ok" in done.out


COMMANDS = {
    "search": ("http", "URL", "--limit", "p99<1us", "-d", "200ms", "--rate", "50"),
    "repeated": ("http", "URL", "--repeat", "3", "-d", "500ms"),
    "ab": ("ab", "URL", "URL/perf", "--repeat", "2", "-d", "300ms"),
    "hosts": ("http", "URL", "--place", "local", "--place", "exec:env", "-d", "2s"),
}
TITLES = {"search": "step 1, ", "repeated": "trueload http ", "ab": "pair 1 of 2, "}


@pytest.mark.parametrize("name", COMMANDS)
def test_whatever_measures_has_the_page(trueload: Trueload, server: Server, name: str) -> None:
    words = [word.replace("URL", server.url) for word in COMMANDS[name]]
    process = trueload.start(*words, "-c", "2", "--warmup", "0", "--no-live", "--web")
    _, states, report = watched(process)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode in (0, 1, 4), stderr
    assert any(title.startswith(TITLES.get(name, "")) for title in titles_of(states))
    assert b"<h1>" in report
    if name == "hosts":
        assert any("hosts ──" in text_of(state) for state in states)


def test_a_suite_has_the_page_with_the_result_of_each_trial(world: World) -> None:
    world.add("fine")
    process = world.trueload.start(
        *("suite", "run", "quick", "-c", "2", "--subjects", "python", "-d", "1500ms"),
        *("--share-cpus", "--repeat", "1", "--web"),
        cwd=world.folder,
        env=world.env,
    )
    _, states, report = watched(process)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode in (0, 4), stderr
    assert any(title.startswith("python/fine, ") for title in titles_of(states))
    assert re.search(r"\[1/1\] python/fine, .*: .* requests/s, ", text_of(states[-1]))
    assert b"<h1>" in report


def test_a_suite_of_clients_has_the_page(world: World) -> None:
    add_client(world, "fine")
    command = clients_command(world, "--web")
    process = world.trueload.start(*command, cwd=world.folder, env=world.env)
    _, states, report = watched(process)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode in (0, 4), stderr
    assert any("client ──" in text_of(state) for state in states)
    assert b"<h1>" in report


def test_a_run_that_is_not_saved_ends_as_its_last_state(trueload: Trueload, server: Server) -> None:
    process = trueload.start(
        *("http", server.url, "-c", "1", "-d", "1500ms", "--warmup", "0", "--web", "--no-save")
    )
    _, states, _ = watched(process)
    process.communicate(timeout=60)
    assert states[-1]["end"].startswith("The run was not saved")


def test_a_plain_install_has_the_page_and_says_what_its_report_needs(
    trueload: Trueload, server: Server
) -> None:
    process = trueload.start(
        *("http", server.url, "-c", "1", "-d", "1500ms", "--warmup", "0", "--web"),
        env=without(trueload, *OF_EXTRAS),
    )
    _, states, _ = watched(process)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode in (0, 4), stderr
    assert "pip install 'trueload[report]'" in states[-1]["end"]


URL = "http://127.0.0.1:1/"
RANGE = "is not a port from 1 to 65535, or 0 for any free one"


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (("http", URL, "--web", "65536"), f"'65536' {RANGE}", "see `trueload http --help`"),
        (("http", URL, "--web", "-1"), f"'-1' {RANGE}", "see `trueload http --help`"),
        (("http", URL, "--web=x"), f"'x' {RANGE}", "see `trueload http --help`"),
        (("http", URL, "--web="), f"'' {RANGE}", "see `trueload http --help`"),
        (
            ("http", "--web", "8080"),
            "there is no URL",
            "write `trueload http URL`, or --targets, --scenario or --curl",
        ),
        (
            ("compare", URL, URL, "--web", "65536"),
            f"'65536' {RANGE}",
            "see `trueload compare --help`",
        ),
        (
            ("suite", "run", "quick", "--web", "65536"),
            f"'65536' {RANGE}",
            "see `trueload suite run --help`",
        ),
        (
            ("http", "--web", URL, "--quiet"),
            "--web and --quiet cannot be used together: the URL of the page has to be printed",
            "keep one of them",
        ),
        (
            ("ws", "ws://127.0.0.1:1/", "--dry-run", "--web", "--place", "k8s:n"),
            "--web and --dry-run cannot be used together: there is nothing to watch",
            "keep one of them",
        ),
        (
            ("suite", "run", "quick", "--dry-run", "--web"),
            "--web and --dry-run cannot be used together: there is nothing to watch",
            "keep one of them",
        ),
    ],
)
def test_what_cannot_be_is_one_line_and_one_hint_and_nothing_is_started(
    trueload: Trueload, words: tuple[str, ...], error: str, hint: str
) -> None:
    done = trueload.run(*words)
    assert (done.code, done.out) == (2, "")
    first, second = done.err.splitlines()
    assert first.startswith("error: ")
    assert first.endswith(error), first
    assert second == f"hint: {hint}"
    assert not trueload.store.exists()


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which something else listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield int(listener.getsockname()[1])


@pytest.mark.parametrize(
    "words", [("http", URL), ("http", URL, "--limit", "p99<1s"), ("ab", URL, URL)]
)
def test_a_port_that_is_taken_is_refused(
    trueload: Trueload, taken: int, words: tuple[str, ...]
) -> None:
    done = trueload.run(*words, "--web", str(taken))
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [
        f"error: --web {taken}: Address already in use",
        "hint: name another port, or none for a free one",
    ]
    assert not trueload.store.exists()


@pytest.mark.parametrize(
    ("env", "words"),
    [({"TRUELOAD_HTTP_WEB": "0"}, ()), ({}, ("--web",)), ({}, ("--web", "0")), ({}, ("--web=0",))],
)
def test_the_port_may_be_left_out_and_the_default_may_be_set(
    trueload: Trueload, server: Server, env: Mapping[str, str], words: tuple[str, ...]
) -> None:
    # A URL behind it is no port.
    process = trueload.start("http", *words, server.url, "-c", "1", "-d", "60s", env=env)
    assert get(printed_url(process))[0] == 200


def test_without_the_option_nothing_of_it_is_imported() -> None:
    code = (
        "import sys; from trueload.cli.app import run;"
        f"run(['http', '{URL}', '--dry-run']); print('trueload.web' in sys.modules,"
        " 'asyncio' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-2:] == ["False", "False"]


def test_the_stored_command_repeats_the_run(trueload: Trueload, server: Server) -> None:
    trueload.run("http", server.url, "-c", "1", "--requests", "5", "--web")
    stored = trueload.run("runs", "show", "last", "--json").out
    assert "--web=0" in json.dumps(json.loads(stored))
