"""Secrets in a command reach the server, but nothing that is written or shown."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from counting import Counting
from harness import Finished, Trueload, start_server
from trueload.store.runs import Store
from waiting import wait_until

pytestmark = pytest.mark.engine

SECRET = "hunter2"
FORMS = (SECRET.encode(), base64.b64encode(f"me:{SECRET}".encode()), b"hunter%32")
FEW = ("-c", "1", "--requests", "3")


@pytest.fixture(params=[0o000, 0o022])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.fixture
def counting() -> Iterator[Counting]:
    with Counting() as server:
        yield server


def secrets_in(data: bytes) -> list[bytes]:
    return [form for form in FORMS if form in data]


def clean(done: Finished) -> Finished:
    """Check that a command's output shows no secret."""
    assert secrets_in((done.out + done.err).encode()) == [], done
    return done


def files_in(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


def test_no_file_that_a_run_leaves_has_a_secret_or_other_readers(
    trueload: Trueload, counting: Counting, tmp_path: Path, umask: None
) -> None:
    out = tmp_path / "out"
    out.mkdir(0o700)
    plots = out / "new" / "plots"
    url = f"{counting.url}/a?token={SECRET}&x=1&to%6ben2=hunter%32"
    flags = ("-H", f"X-Api-Key: {SECRET}", "--user", f"me:{SECRET}", "--body", f"pin={SECRET}")
    with Store.open(trueload.store):  # keeps SQLite's extra files beside it
        run = trueload.run("http", url, *flags, *FEW, "--json", out / "result.json")
        assert clean(run).code in (0, 4), run
        assert {path.name for path in trueload.folder.iterdir()} >= {
            trueload.store.name + ending for ending in ("", "-wal", "-shm", "-running")
        }
        for kind in ("json", "jsonl", "csv", "markdown", "parquet"):
            path = out / f"run.{kind}"
            clean(trueload.run("runs", "export", "last", "--format", kind, "-o", path))
        clean(trueload.run("report", "last", "-o", out / "report.html", "--plots", plots))
        for words in (("show", "last"), ("show", "last", "--json"), ("list", "--json")):
            assert clean(trueload.run("runs", *words)).code == 0
        written = files_in(trueload.folder, out)
        assert len(written) >= 12
        assert [path for path in written if secrets_in(path.read_bytes())] == []
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in written}
        assert modes == dict.fromkeys(written, 0o600)
    for folder in (trueload.folder, plots, plots.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    first = counting.asked[0]
    assert first.path == url.removeprefix(counting.url)
    assert first.headers["x-api-key"] == SECRET
    assert first.headers["authorization"] == f"Basic {FORMS[1].decode()}"
    assert first.body == f"pin={SECRET}".encode()


SCENARIO = """
[[step]]
name = "log in"
[step.request]
method = "POST"
url = "/in?key={env:KEY}"
body = '{"pin":"{env:KEY}"}'
headers = { X-Key = "{env:KEY}" }
"""


@pytest.mark.parametrize("how", ["flags", "scenario", "curl", "targets", "replay", "ws"])
def test_a_secret_of_the_environment_is_sent_and_only_its_name_is_stored(
    trueload: Trueload, counting: Counting, tmp_path: Path, how: str
) -> None:
    path, url = tmp_path / "asked", f"{counting.url}/in?key={{env:KEY}}"
    flags = ("-H", "X-Key: {env:KEY}", "--user", "me:{env:KEY}")
    lines = {
        "scenario": SCENARIO,
        "targets": '{"url": "/in?key={env:KEY}", "body": "{env:KEY}"}',
        "replay": '127.0.0.1 - - [27/Nov/2026:10:00:00 +0000] "GET /in HTTP/1.1" 200 2\n' * 3,
    }
    path.write_text(lines.get(how, ""))
    words: dict[str, tuple[str | Path, ...]] = {
        "flags": ("http", url, *flags, "--body", "{env:KEY}"),
        "curl": ("http", "--curl", f"curl '{url}' -H 'X-Key: {{env:KEY}}' -d '{{env:KEY}}'"),
        "ws": ("ws", url.replace("http", "ws"), *flags, "--timeout", "1"),
        "replay": ("http", counting.url, "--replay", path, *flags),
    }
    asked = words.get(how, ("http", counting.url, f"--{how}", path, *flags))
    count = () if how == "replay" else FEW
    result = tmp_path / "result.json"
    clean(trueload.run(*asked, *count, "--json", result, env={"KEY": SECRET}))
    clean(trueload.run("runs", "export", "last", "--format", "jsonl", "-o", tmp_path / "x.jsonl"))
    written = files_in(trueload.folder, tmp_path)
    assert [one for one in written if secrets_in(one.read_bytes())] == []
    assert "{env:KEY}" in result.read_text() + trueload.run("runs", "show", "last").out
    first = counting.asked[0]
    assert first.headers["x-key"] == SECRET
    assert how == "replay" or f"key={SECRET}" in first.path
    assert how in ("replay", "ws") or SECRET.encode() in first.body


def arguments_of_all() -> bytes:
    """The arguments of every process that can be seen."""
    found = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += path.read_bytes()
    return found


@pytest.mark.parametrize("how", ["environment", "file"])
def test_no_process_has_a_secret_in_its_arguments(
    trueload: Trueload, counting: Counting, tmp_path: Path, how: str
) -> None:
    marker = f"secret-{os.getpid()}-{how}"
    (tmp_path / "headers").write_text(f"X-Key: {marker}\n")
    header = f"@{tmp_path / 'headers'}" if how == "file" else "X-Key: {env:KEY}"
    few = ("-c", "1", "-d", "30s", "--warmup", "0s")
    running = trueload.start("http", counting.url, "-H", header, *few, env={"KEY": marker})
    try:
        wait_until(lambda: bool(counting.asked), "no request came")
        assert counting.asked[0].headers["x-key"] == marker
        assert marker.encode() not in arguments_of_all()
    finally:
        running.terminate()
        running.communicate()


def test_an_unset_variable_is_a_mistake_with_a_hint(trueload: Trueload) -> None:
    done = trueload.run("http", "http://127.0.0.1:1/", "-H", "X-Key: {env:NO_SUCH}")
    assert done.code == 2
    assert "no variable NO_SUCH is set" in done.err
    assert "hint: export NO_SUCH" in done.err


def test_a_file_that_is_there_keeps_the_mode_that_its_owner_chose(
    trueload: Trueload, counting: Counting, tmp_path: Path
) -> None:
    path = tmp_path / "result.json"
    path.touch()
    path.chmod(0o664)
    trueload.run("http", counting.url, *FEW, "--json", path)
    assert json.loads(path.read_text())["counts"]["ok"] == 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o664


def test_the_command_to_repeat_can_be_pasted_and_says_what_to_fill_in(
    trueload: Trueload, counting: Counting
) -> None:
    trueload.run("http", f"{counting.url}/?sid={SECRET}", *FEW, "--fail-on", "p99>20s")
    lines = clean(trueload.run("runs", "show", "last")).out.splitlines()
    (command,) = (line for line in lines if line.startswith("command "))
    words = shlex.split(command)[1:]
    assert words == [
        *("trueload", "http", f"{counting.url}/?sid=<redacted>", *FEW, "--fail-on", "p99>20s")
    ]
    assert sum("fill it in before you repeat" in line for line in lines) == 1
    trueload.run("http", counting.url, *FEW)
    assert "fill it in" not in trueload.run("runs", "show", "last").out


def test_a_body_is_stored_where_that_is_wanted(trueload: Trueload, counting: Counting) -> None:
    flags = ("--body", f"it's {SECRET}\n", "--keep-body", "-H", "X-Api-Key: hidden")
    trueload.run("http", counting.url, *flags, *FEW)
    shown = trueload.run("runs", "show", "last", "--json")
    assert f"it's {SECRET}\n" in shown.json()["command"]
    assert "hidden" not in shown.out
    assert "fill it in" in trueload.run("runs", "show", "last").out


@pytest.mark.parametrize("more", [(), ("--body-file", "/dev/null")])
def test_a_body_that_is_not_on_the_command_line_cannot_be_kept(
    trueload: Trueload, more: tuple[str, ...]
) -> None:
    done = trueload.run("http", "http://127.0.0.1:1/", "--keep-body", *more)
    assert done.code == 2
    assert "--keep-body needs a body on the command line" in done.err


def test_secrets_of_targets_are_kept_nowhere(
    trueload: Trueload, counting: Counting, tmp_path: Path
) -> None:
    targets = tmp_path / "targets"
    lines: list[dict[str, Any]] = [
        {"url": f"/a?api_key={SECRET}", "headers": {"X-Auth-Token": SECRET}, "body": SECRET},
        {"url": f"/b;jsessionid={SECRET}", "name": f"GET /b?sid={SECRET}"},
    ]
    targets.write_text("\n".join(map(json.dumps, lines)))
    out = tmp_path / "result.json"
    flags = ("--targets", targets, "-c", "2", "--requests", "8", "--json", out)
    assert clean(trueload.run("http", counting.url, *flags)).code in (0, 4)
    clean(trueload.run("runs", "show", "last", "--json"))
    clean(trueload.run("runs", "show", "last"))
    for path in (*files_in(trueload.folder), out):
        assert secrets_in(path.read_bytes()) == []
    assert {asked.path for asked in counting.asked} == {lines[0]["url"], lines[1]["url"]}


@pytest.mark.parametrize(
    "mode", [("--mode", "echo", *FEW), ("--mode", "broadcast", "--steps", "1")]
)
def test_secrets_of_a_websocket_are_kept_nowhere(
    trueload: Trueload, tmp_path: Path, mode: tuple[str, ...]
) -> None:
    server = start_server(trueload, service="ws")
    url = f"ws://me:{SECRET}@127.0.0.1:{server.port}/ws?access_token={SECRET}"
    flags = ("-H", f"X-Auth: {SECRET}", "--json", tmp_path / "result.json")
    few = ("--step", "2", "--samples", "3") if "broadcast" in mode else ()
    clean(trueload.run("ws", url, *mode, *few, *flags))
    clean(trueload.run("runs", "show", "last", "--json"))
    for path in (*files_in(trueload.folder), tmp_path / "result.json"):
        assert secrets_in(path.read_bytes()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("http", f"http://127.0.0.1:1/?token={SECRET}", f"http://b/?token={SECRET}"),
        ("http", "http://127.0.0.1:1/", f"X-Api-Key: {SECRET}"),
        ("http", "http://127.0.0.1:1/", "-H", f"X-Api-Key={SECRET}"),
        ("http", "http://127.0.0.1:1/", "-H", f"X-Api-Key: {SECRET}\n"),
        ("http", f"127.0.0.1:1/?token={SECRET}"),
        ("http", f"http://me:{SECRET}/x@127.0.0.1:1/"),
        ("http", "--curl", f"curl 'http://a/?token={{{SECRET},b}}'"),
        ("ws", f"http://me:{SECRET}@a/"),
        ("ws", f"ws://127.0.0.1:1/?token={SECRET}", "--no-save"),
        ("compare", f"http://127.0.0.1:1/?token={SECRET}", f"me:{SECRET}@b"),
    ],
)
def test_complaints_show_no_secret(trueload: Trueload, words: tuple[str, ...]) -> None:
    done = clean(trueload.run(*words))
    assert done.code in (2, 3)
    assert "error: " in done.err


def test_a_crash_report_is_private_and_has_no_secret(trueload: Trueload, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import trueload.commands.run as run, sys\n"
        "def broken(job): raise RuntimeError(f'at {sys.argv[2]}')\n"
        "run.run_job = broken\n"
    )
    url = f"http://127.0.0.1:1/?token={SECRET}"
    path = f"{tmp_path}:{trueload.env()['PYTHONPATH']}"
    done = clean(trueload.run("http", url, env={"PYTHONPATH": path}))
    assert done.code == 70
    (report,) = (trueload.folder / "state").rglob("crash-*.txt")
    assert b"RuntimeError" in report.read_bytes()
    assert secrets_in(report.read_bytes()) == []
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
