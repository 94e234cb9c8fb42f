"""Writes targets files for tests, and runs with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness import Trueload


def write(folder: Path, *lines: dict[str, Any]) -> Path:
    """Write a targets file of these lines."""
    file = folder / "targets.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    return file


def measure(trueload: Trueload, *words: str | Path) -> Any:
    """Run and return the record.

    A busy machine may make it invalid, which these tests do not judge.
    """
    done = trueload.run("http", *words, "--json", "-")
    assert done.code in (0, 4), done
    return done.json()
