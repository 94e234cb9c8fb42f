"""Targets files of tests, and runs with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness import Trueload


def write(folder: Path, *lines: dict[str, Any]) -> Path:
    """A targets file of these lines."""
    file = folder / "targets.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    return file


def measure(trueload: Trueload, *words: str | Path) -> Any:
    """The record. On a busy machine it may be invalid, which is not what is tested here."""
    done = trueload.run("http", *words, "--json", "-")
    assert done.code in (0, 4), done
    return done.json()
