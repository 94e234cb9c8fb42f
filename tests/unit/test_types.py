"""mypy's judgement of calls of the Python functions: right ones pass, wrong ones do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CALLS = ROOT / "tests" / "typed_calls.py"


@pytest.mark.timeout(300)
def test_mypy_finds_each_wrong_call_and_no_other() -> None:
    command = [sys.executable, "-m", "mypy", str(CALLS)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.stdout.startswith("Success: no issues found"), ran.stdout + ran.stderr
