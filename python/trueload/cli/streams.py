"""The three standard streams of a process that may have been started without them (``>&-``), with
some that somebody else has made non-blocking, or in a place where not all text can be written.

Must not know what is written there.
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
    """Written to as if it were blocking. Whether it is belongs to everybody who has the stream open
    (fcntl(2), O_NONBLOCK): a node beside us may switch that at any time, and so must not we."""

    def write(self, data: object) -> int:
        """As much as there is room for, once there is some. Raises ``OSError``."""
        write = cast("Callable[[object], int | None]", super().write)
        while (written := write(data)) is None:
            poll = select.poll()
            poll.register(self.fileno(), select.POLLOUT)
            poll.poll()  # also when its reader has gone: to write again says so
        return written


def hold_open() -> None:
    """Puts the null device where a stream was closed when we began. Its number would go to the next
    file or pipe that is opened, and what a child says on its stderr end up in there."""
    for fd, name in enumerate(STREAMS):
        if getattr(sys, name) is not None:
            continue
        # The lowest number that is free: this one, but where somebody has it already.
        opened = os.open(os.devnull, os.O_RDWR)
        os.set_inheritable(opened, opened == fd)
        mode = "r" if fd == 0 else "w"
        setattr(sys, name, os.fdopen(opened, mode, encoding="utf-8", closefd=False))


def write_whole() -> None:
    """From now on what is written to stdout and stderr is written as a whole: a reader is waited
    for, and what its encoding does not have is escaped."""
    for name in STREAMS[1:]:
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper):
            continue
        file = PatientFile(stream.fileno(), "w", closefd=False)
        patient = io.TextIOWrapper(
            io.BufferedWriter(file),
            encoding=stream.encoding,
            errors="backslashreplace",
            # Unbuffered (PYTHONUNBUFFERED) is as good by the line.
            line_buffering=stream.line_buffering or stream.write_through,
        )
        setattr(sys, name, patient)
