"""Where the engine's binary is. Must not import the messages: what only looks for it needs none."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from trueload.errors import UserError

BINARY = "trueload-engine"


def find_engine() -> Path:
    """Find the engine: ``TRUELOAD_ENGINE``, else the newer of the one beside this Python and the
    checkout's release build, else the one on the PATH. Raises ``UserError``."""
    named = os.environ.get("TRUELOAD_ENGINE")
    if named:
        path = Path(named)
        if not os.access(path, os.X_OK) or path.is_dir():
            raise UserError(
                f"TRUELOAD_ENGINE names {path}, which is not a program",
                "unset it, or set it to the trueload-engine binary",
            )
        return path
    there = [p for p in engine_candidates() if p.is_file() and os.access(p, os.X_OK)]
    if there:
        return max(there, key=lambda path: path.stat().st_mtime_ns)
    found = shutil.which(BINARY)
    if found:
        return Path(found)
    raise UserError(
        f"the engine, {BINARY}, is not there",
        "build it with `cargo build --release`, or set TRUELOAD_ENGINE to the binary",
    )


def engine_candidates() -> Sequence[Path]:
    """Where to look for the engine: a checkout has its own build, an install a copy of one."""
    checkout = Path(__file__).resolve().parents[3]
    return (
        checkout / "target" / "release" / BINARY,
        Path(sys.executable).parent / BINARY,
        Path(sys.prefix) / "bin" / BINARY,
    )
