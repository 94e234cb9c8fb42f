"""The notebook of the documentation runs from its first cell to its last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from harness import ROOT

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"

pytestmark = pytest.mark.engine


@pytest.fixture
def executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TRUELOAD_STORE", str(tmp_path / "store.sqlite"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook: Any = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    client = nbclient.NotebookClient(
        notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}
    )
    return client.execute()


def shown_as(notebook: Any, kind: str) -> list[str]:
    return [
        output.data[kind]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if kind in output.get("data", {})
    ]


def test_every_cell_runs_and_shows_what_it_should(executed: Any) -> None:
    tables = shown_as(executed, "text/html")
    assert any("throughput" in table and "verdict" in table for table in tables)
    assert any("latency_p99_ns" in table for table in tables)
    assert all("<script" not in table for table in tables)
    assert any("B / A" in table and "verdict" in table for table in tables)
    drawings = shown_as(executed, "image/svg+xml")
    assert len(drawings) == 2
    assert all(drawing.startswith("<?xml") for drawing in drawings)
    printed = "".join(
        output.text
        for cell in executed.cells
        for output in cell.get("outputs", ())
        if "text" in output
    )
    assert "hint: " in printed


def test_the_notebook_is_kept_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert all(not cell.get("outputs") and not cell.get("execution_count") for cell in cells)
