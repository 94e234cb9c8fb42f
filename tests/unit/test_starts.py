"""What a command imports before it does anything: a help needs no model of plans and records.

What is imported is what a start costs (bench/starts.py measures it), so nothing here looks at a
clock. Every command is asked, in one process of its own: a module that is not there after all of
them was imported by none.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from samples import good_record
from trueload.store.runs import Store

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import contextlib, io, json, sys
from trueload.cli.app import COMMANDS, build_command, run

def paths(node, path):
    yield path
    for name, child in getattr(node, "commands", {}).items():
        yield from paths(child, [*path, name])

def lines():
    for name in COMMANDS:
        for path in paths(build_command(name).commands[name], [name]):
            yield 0, [*path, "--help"]
            yield 0, [*path, "-h"]
            yield 2, [*path, "--no-such-option"]
    yield 2, ["htpp", "http://127.0.0.1/"]
    yield 0, ["runs", "list"]
    yield 0, ["doctor", "--quick"]

asked, imported = [], {}
for code, words in lines():
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        ended = run(words)
    if ended != code:
        sys.exit(f"{words} ended with {ended}: {out.getvalue()}")
    asked.append(words)
    for module in sys.modules:
        imported.setdefault(module, " ".join(words))
print(json.dumps([asked, imported]))
"""
HEAVY = (
    # plans, records, and whoever is made of them
    *("trueload.protocol.plan", "trueload.record.schema", "trueload.trial", "trueload.verdict"),
    *("trueload.engines.engine", "trueload.assemble", "trueload.search", "trueload.compare"),
    *("trueload.suites.definition", "trueload.commands.job", "trueload.commands.run"),
    # whatever has a model
    *("pydantic", "pydantic_core", "trueload.protocol.model", "trueload.subjects.manifest"),
    # libraries that are for results
    *("numpy", "pandas", "polars", "pyarrow", "altair", "rich.console", "psutil", "cryptography"),
    *("requests", "prometheus_client", "opentelemetry", "ray", "asyncio", "multiprocessing"),
)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[list[str]], dict[str, str]]:
    """The lines that were run, and each imported module with the line that imported it first."""
    path = tmp_path_factory.mktemp("starts") / "store"
    with Store.open(path) as store:
        run = store.new_run(kind="http", title="one")
        store.add_record(run, good_record())
        store.end_run(run)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python"),
        "TRUELOAD_STORE": str(path),
        "TRUELOAD_CONFIG": "",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    asked, imported = json.loads(done.stdout)
    return asked, imported


def test_neither_help_nor_mistake_nor_list_nor_quick_look_imports_what_a_measurement_needs(
    started: tuple[list[list[str]], dict[str, str]],
) -> None:
    asked, imported = started
    assert ["suite", "run", "--no-such-option"] in asked
    assert {module: imported[module] for module in HEAVY if module in imported} == {}


def imported_by(modules: str) -> set[str]:
    code = f"import {modules}, sys; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_a_run_imports_no_form_of_results_or_requests_that_was_not_asked_for() -> None:
    loaded = imported_by("trueload.commands.run, trueload.commands.request_flags")
    assert {"trueload.trial.run", "trueload.report.result"} <= loaded
    requests = ("curl", "form", "replay", "scenario")
    others = {f"trueload.request.{name}" for name in requests}
    others |= {f"trueload.report.{name}" for name in ("html", "sheets")}
    others |= {f"trueload.report.export.{name}" for name in ("csv", "junit", "markdown", "parquet")}
    assert not loaded & {*others, "numpy", "xml.etree", "rich.console", "requests", "jinja2"}


def test_serving_starts_without_the_heavy_libraries() -> None:
    loaded = imported_by("trueload.cli.serve")
    assert "trueload.cli.serve" in loaded
    heavy = {"numpy", "scipy", "rich", "hdrh", "psutil", "sqlite3", "trueload.trial.run"}
    assert not loaded & heavy
