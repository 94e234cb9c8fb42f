"""Files that a flag names for a result: looked at before anything is measured, opened when it is
there. Must not know what is written.

A named pipe is not opened before: its reader would take our closing it for the end. When it is
opened, its reader is waited for, but not for ever.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import TextIO

from trueload.private_files import open_descriptor, open_text

READER_S = 10.0  # who reads a named pipe may come so late
LOOK_S = 0.05


def check_writable(path: Path) -> None:
    """Raises ``OSError`` for a file that could not be written."""
    if not path.is_fifo():
        os.close(open_descriptor(path, os.O_WRONLY))
    elif not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def open_for_writing(path: Path, newline: str | None = None) -> TextIO:
    """The file, emptied; ``newline`` as of ``open``. Raises ``OSError``."""
    if not path.is_fifo():
        return open_text(path, newline)
    descriptor = _open_pipe(path, time.monotonic() + READER_S)
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "w", encoding="utf-8", newline=newline)


def _open_pipe(path: Path, until_s: float) -> int:
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        if time.monotonic() >= until_s:
            raise OSError(errno.ENXIO, "nobody reads this pipe", str(path))
        time.sleep(LOOK_S)
