"""Packs a folder into a stream of bytes with a local tar, and tells whether the stream was whole.

How: a tar that fails goes on with what it can read, so its stream looks like a good one. Only its
exit code tells.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from trueload.closeable import Closing
from trueload.errors import UserError
from trueload.places.ssh import refusals

END_S = 5.0  # its output has been read by then: only its exit is awaited
OUTPUT_BYTES_MAX = 4096


class Packing(Closing):
    """A running tar; a context manager. ``stdout`` is the stream."""

    def __init__(self, folder: Path, options: Sequence[str]) -> None:
        """Start tar. Raises ``UserError``."""
        with contextlib.ExitStack() as stack:
            # A file, not a pipe: nobody reads while tar runs, and a full pipe would block it.
            self._output = stack.enter_context(tempfile.TemporaryFile())
            try:
                self._tar = subprocess.Popen(
                    ["tar", "-cf", "-", *options, "-C", str(folder), "."],
                    stdout=subprocess.PIPE,
                    stderr=self._output,
                    env={**os.environ, "LC_ALL": "C"},
                    process_group=0,
                )
            except FileNotFoundError as error:
                raise UserError(
                    "tar is not installed here", "install it: Debian's package is tar"
                ) from error
            self._open = stack.pop_all()

    @property
    def stdout(self) -> IO[bytes]:
        """The tar stream, to be read to its end."""
        assert self._tar.stdout is not None
        return self._tar.stdout

    def fault(self) -> str | None:
        """Why the stream, once read to its end, is not the whole folder; None if it is."""
        try:
            code = self._tar.wait(END_S)
        except subprocess.TimeoutExpired:
            return "tar does not end"
        if code == 0:
            return None
        self._output.seek(0)
        output = self._output.read(OUTPUT_BYTES_MAX).decode(errors="replace")
        # The first line is the cause; the last one only says that there was an error.
        return refusals.last_line(output.strip().partition("\n")[0]) or f"tar ended with {code}"

    def close(self) -> None:
        """Kill tar, whether the stream was read or not."""
        with self._open, self._tar:
            self._tar.kill()
