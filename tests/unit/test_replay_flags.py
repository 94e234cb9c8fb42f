"""The flags of a replay: what it is, and what cannot be beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from trueload.cli.app import run
from trueload.commands.http import read_job
from trueload.protocol.plan import Open, Requests
from trueload.trial.plan import make_phases, make_plan

S = 1_000_000_000
URL = "http://127.0.0.1:1/"


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "traffic.jsonl"
    path.write_text("".join(f'{{"at": {at}, "path": "/{at}"}}\n' for at in range(11)))
    return path


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("--rate", "1k"), "--replay and --rate cannot be used together", "--speed changes them"),
        (("--requests", "9"), "--replay and --requests cannot be used together", "--speed"),
        (("-d", "9s"), "--replay and --duration cannot be used together", "--speed"),
        (("--stages", "1s@9"), "--replay and --stages cannot be used together", "--speed"),
        (("--limit", "p99<9ms"), "--replay and --limit cannot be used together", "try --speed 2x"),
        (("--targets", "x"), "--replay and --targets cannot be used together", "says what is sent"),
        (
            ("--scenario", "x"),
            "--replay and --scenario cannot be used together",
            "says what is sent",
        ),
        (("--body", "x"), "--replay and --body cannot be used together", "says what is sent"),
        (
            ("--expect-same",),
            "--replay and --expect-same cannot be used together",
            "says what is sent",
        ),
        (("--connect-open", "9"), "--replay and --connect-open cannot be used together", "--speed"),
        (
            ("--follow", "9"),
            "--replay and --follow cannot be used together",
            "what followed a redirect",
        ),
        (("--idle", "9"), "--replay and --idle cannot be used together", "keep one of them"),
        (("--warmup", "11s"), "--warmup 11s leaves nothing to measure", "is sent in 10.0 s"),
        (("--speed", "0"), "'0' is not a speed above 0", "help"),
        (("--replay-host", "h"), "has no requests to 'h'", "it names no hosts"),
        (("--log-format", "$status"), "--log-format has no time", "add $time_local"),
        (("--log-format", "$msec $request"), "line 1: no request can be read", "compare a line"),
    ],
)
def test_what_contradicts_a_recording_is_refused(
    words: tuple[str, ...],
    message: str,
    hint: str,
    lines: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["http", URL, "--replay", str(lines), *words]) == 2
    error, hinted = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ")
    assert message in error
    assert hinted.startswith("hint: ")
    assert hint in hinted


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--speed", "2x", URL), "--speed is given, but no --replay"),
        (("--log-format", "%t %r", URL), "--log-format is given, but no --replay"),
        (("--replay", "LINES"), "--replay needs the URL of the server"),
        (
            ("--replay", "LINES", f"{URL}path"),
            "--replay and a path in the URL cannot be used together",
        ),
        (("--replay", "absent.log", URL), "'absent.log' cannot be read: No such file or directory"),
        (
            ("--curl", f"curl {URL}", "--replay", "LINES"),
            "--curl and --replay cannot be used together",
        ),
    ],
)
def test_a_recording_needs_a_server_and_nothing_else(
    words: tuple[str, ...], message: str, lines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(lines) if word == "LINES" else word for word in words]
    assert run(["http", *given]) == 2
    assert message in capsys.readouterr().err


def test_the_warm_up_is_the_first_part_of_the_recording(lines: Path) -> None:
    spec = read_job(url=URL, replay=(lines,), speed=2.0, warmup=2 * S).spec
    warmup, window = make_phases(spec)
    assert warmup is not None
    assert isinstance(warmup.load, Open)
    assert isinstance(window.load, Open)
    assert (warmup.load.arrivals, warmup.load.from_ns) == ("recorded", 0)
    assert (window.load.arrivals, window.load.from_ns) == ("recorded", 2 * S)
    # At twice the speed, 11 requests half a second apart: four of them are before 2 s.
    assert window.stop == Requests(count=7)
    assert sum(stage.ns for stage in window.load.stages) == 3 * S
    plan = make_plan(spec, ())
    assert plan.request is None
    assert plan.targets == ()
    assert plan.replay is not None
    assert plan.replay.count == 11
    assert plan.replay.about == "traffic.jsonl (file of JSON lines, 2x)"


def test_without_a_warm_up_everything_counts(lines: Path) -> None:
    warmup, window = make_phases(read_job(url=URL, replay=(lines,)).spec)
    assert warmup is None
    assert window.stop == Requests(count=11)
