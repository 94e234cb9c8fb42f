"""Every block of Python in docs/python.md does what it says.

How: blocks run in the order of the page, in one namespace, as in a notebook. Only what depends on
the machine is replaced: addresses, durations and limits of time.
"""

from __future__ import annotations

import ast
import asyncio
import re
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trueload as tl
from harness import ROOT, find_free_port

pytestmark = pytest.mark.engine

CHANGED = (
    ("duration=5", "duration=0.3, warmup=0"),
    ("repeat=6", "repeat=2"),
    ("< 0.020", "< 10"),
)


@pytest.fixture
def urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Replacements for the page's addresses: live servers, and a free port."""
    monkeypatch.setenv("TRUELOAD_STORE", str(tmp_path / "store.sqlite"))
    with tl.serve() as one, tl.serve() as other:
        ports = [each.url.rpartition(":")[2].rstrip("/") for each in (one, other)]
        yield dict(zip(("8080", "8081", "8082"), (*ports, str(find_free_port())), strict=True))


def blocks_of(page: str, ports: dict[str, str]) -> list[str]:
    found: list[str] = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    for was, becomes in (*CHANGED, *ports.items()):
        found = [block.replace(was, becomes) for block in found]
    return found


def run(block: str, names: dict[str, Any], loop: asyncio.AbstractEventLoop) -> None:
    """Run a block as a notebook's cell, in which await is allowed."""
    code = compile(block, "a block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    try:
        awaited = eval(code, names)
        if awaited is not None:
            loop.run_until_complete(awaited)
    except AssertionError:
        # Only if the machine was too busy to measure, which the page says to check first.
        assert names["r"].verdict == "invalid"


def output_of(call: str, names: dict[str, Any]) -> str:
    """The last lines of the traceback of the error that a call raises."""
    with pytest.raises(tl.UserError) as refused:
        eval(call, names)
    return "".join(traceback.format_exception_only(refused.value)).strip()


def pytest_output(test: str, folder: Path) -> str:
    """Run one test in a pytest process of its own; return pytest's output.

    The fixture ``pytester`` would make this process forget modules first imported in this test, and
    numpy and vl_convert cannot be imported again.
    """
    path = folder / "test_block.py"
    path.write_text(test)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", str(path)]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)
    return ended.stdout


def test_every_block_of_the_page_runs(
    urls: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, Any] = {}
    loop = asyncio.new_event_loop()
    monkeypatch.chdir(tmp_path)  # a block writes a file
    kinds = []
    for block in blocks_of("docs/python.md", urls):
        if "def test_" in block:
            kinds.append("test")
            output = pytest_output(block, tmp_path)
            assert "1 passed" in output or "is invalid: " in output
        elif block.startswith(">>> "):
            kinds.append("mistake")
            call, expected = block.removeprefix(">>> ").split("\n", 1)
            assert output_of(call, names) == expected.strip()
        else:
            kinds.append("code")
            run(block, names, loop)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert kinds == ["code", "test", "test", "code", "code", "mistake", "code"]
    assert list(names["sweep"].dtypes[["throughput", "p50", "p99"]]) == [float] * 3
    assert (tmp_path / "sweep.svg").read_text().startswith("<svg")
    assert names["first"].ok > 0
    assert names["server"].served.responses == 1000
