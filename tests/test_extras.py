"""A plain install: a command that needs an extra says so before it starts, and the rest works."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from harness import Server, Trueload
from report_samples import put, read
from trueload.store.runs import Store

OF_EXTRAS = (
    *("altair", "jinja2", "vl_convert", "prometheus_client", "opentelemetry", "requests", "ray"),
    *("grpc", "pandas", "polars", "pyarrow", "numpy", "scipy", "hdrh", "setuptools", "h2"),
    "websockets",
)
HIDING = """
import sys

class Hiding:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hiding())
"""


def without(trueload: Trueload, *modules: str) -> dict[str, str]:
    """An environment in which Python finds none of these modules."""
    folder = trueload.folder / "hiding"
    folder.mkdir(parents=True)
    (folder / "sitecustomize.py").write_text(HIDING.format(hidden=modules))
    return {"PYTHONPATH": os.pathsep.join([str(folder), trueload.env()["PYTHONPATH"]])}


HTTP = ("http", "http://127.0.0.1:1/")
REPORT = ("report", "last", "-o", "page.html")
PARQUET = ("runs", "export", "last", "--format", "parquet", "-o", "rows")


@pytest.mark.parametrize(
    ("words", "hidden", "error", "extra"),
    [
        ((*HTTP, "--prometheus", "0"), "prometheus_client", "--prometheus needs", "metrics"),
        ((*HTTP, "--otlp", "http://127.0.0.1:1"), "opentelemetry", "--otlp needs", "metrics"),
        (
            ("suite", "run", "quick", "--prometheus", "0"),
            "prometheus_client",
            "--prometheus needs",
            "metrics",
        ),
        ((*HTTP, "--place", "ray", "--hosts", "2"), "ray", "a place on a cluster needs", "ray"),
        (REPORT, "altair", "a report or chart needs", "report"),
        (REPORT, "jinja2", "a report or chart needs", "report"),
        (REPORT, "vl_convert", "a report or chart needs", "report"),
        (PARQUET, "pyarrow", "Parquet needs", "parquet"),
        (("suite", "run", "http2-servers"), "h2", "a contract over HTTP/2 needs", "http2"),
        (
            ("suite", "run", "ws-broadcast"),
            "websockets",
            "a contract over WebSocket needs",
            "websocket",
        ),
    ],
    ids=lambda value: "" if isinstance(value, tuple) else value,
)
def test_a_missing_extra_is_named_before_anything_is_done(
    words: tuple[str, ...], hidden: str, error: str, extra: str, trueload: Trueload, tmp_path: Path
) -> None:
    with Store.open(trueload.store) as store:
        runs = [put(store, read("http")).id]
    done = trueload.run(*words, env=without(trueload, hidden), cwd=tmp_path)
    assert done.code == 2, done
    first, second = done.err.splitlines()
    assert first.startswith(f"error: {error}")
    assert first.endswith(" which is not installed")
    assert hidden in first
    assert second == f"hint: pip install 'trueload[{extra}]'"
    assert [*tmp_path.glob("page*"), *tmp_path.glob("rows*")] == []
    with Store.open(trueload.store) as store:
        assert [run.id for run in store.runs()] == runs


def test_a_plain_install_measures_and_shows(trueload: Trueload, server: Server) -> None:
    plain = without(trueload, *OF_EXTRAS)
    measured = trueload.run("http", server.url, "-c", "1", "--requests", "50", env=plain)
    assert "50 ok" in measured.out, measured
    for words in (
        *(("runs", "show", "last"), ("runs", "export", "last", "--format", "csv")),
        *(("runs", "compare", "last", "last"), ("subjects", "list"), ("suite", "list")),
    ):
        done = trueload.run(*words, env=plain)
        assert done.code in (0, 4), done
        assert "error:" not in done.err
