"""The three standard streams of a process, made safe to use.

They may have been closed at the start (``>&-``), made non-blocking by another process, or be unable
to take all text.
"""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Callable
from typing import cast

STREAMS = ("stdin", "stdout", "stderr")  # by the numbers of their files


class PatientFile(io.FileIO):
    """A file that is written to as if it were blocking.

    All processes with the stream open share its blocking mode (fcntl(2), O_NONBLOCK). A node beside
    us may switch it at any time, so we must not.
    """

    def write(self, data: object) -> int:
        """Wait until there is room, and write as much as fits. Raises ``OSError``."""
        write = cast("Callable[[object], int | None]", super().write)
        while (written := write(data)) is None:
            poll = select.poll()
            poll.register(self.fileno(), select.POLLOUT)
            poll.poll()  # also returns if the reader has gone: the next write then fails
        return written


def hold_open() -> None:
    """Open the null device for each stream that was closed when we began.

    Otherwise its number would go to the next file or pipe that is opened, and a child's stderr
    would end up in there.
    """
    for fd, name in enumerate(STREAMS):
        if getattr(sys, name) is not None:
            continue
        # The lowest free number is this one, unless another file already has it.
        opened = os.open(os.devnull, os.O_RDWR)
        os.set_inheritable(opened, opened == fd)
        mode = "r" if fd == 0 else "w"
        setattr(sys, name, os.fdopen(opened, mode, encoding="utf-8", closefd=False))


def write_whole() -> None:
    """Make stdout and stderr write everything from now on.

    Writing waits for a slow reader, and characters that the encoding lacks are escaped.
    """
    for name in STREAMS[1:]:
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper):
            continue
        file = PatientFile(stream.fileno(), "w", closefd=False)
        patient = io.TextIOWrapper(
            io.BufferedWriter(file),
            encoding=stream.encoding,
            errors="backslashreplace",
            # If it was unbuffered (PYTHONUNBUFFERED), line buffering will do.
            line_buffering=stream.line_buffering or stream.write_through,
        )
        setattr(sys, name, patient)
