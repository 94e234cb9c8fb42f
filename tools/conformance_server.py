"""Runs a reference server for the suites of `make conformance`."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READY_S = 20.0
END_S = 10.0


@contextlib.contextmanager
def serving(*words: str) -> Iterator[str]:
    """Run `trueload serve WORDS` on a free port; yields the URL that it listens on."""
    command = [sys.executable, "-m", "trueload", "serve", *words, "--listen", "127.0.0.1:0"]
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, env=env, start_new_session=True
    ) as process:
        try:
            yield url_of(process)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=END_S)
            except subprocess.TimeoutExpired:
                process.kill()


def url_of(process: subprocess.Popen[bytes]) -> str:
    """Wait until the server says where it listens."""
    assert process.stderr is not None
    output = b""
    until = time.monotonic() + READY_S
    while (left_s := until - time.monotonic()) > 0:
        if select.select([process.stderr], [], [], left_s)[0]:
            more = os.read(process.stderr.fileno(), 4096)
            output += more
            if match := re.search(rb"listening on (\S+)\n", output):
                return match[1].decode()
            if not more:
                break
    raise SystemExit(f"the server did not start: {output.decode(errors='replace')}")
