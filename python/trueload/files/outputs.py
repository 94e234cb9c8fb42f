"""Files that a flag names for a result: checked before anything is measured, and written later,
whole or not at all.

How: a regular file is written under another name beside itself and renamed, so that a full disk or
an interruption leaves the old one. A file that is not regular is written directly. So is one that a
process holds open, such as ``/dev/stdout``, and one whose folder allows no new file.

A named pipe is not opened before: its reader would take our closing it for the end. When it is
opened, we wait for its reader, but not for ever.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

from trueload.errors import ExitCode, UserError
from trueload.files.private import open_descriptor

READER_S = 10.0  # how late the reader of a named pipe may come
LOOK_S = 0.05
LINKS_MAX = 40  # as the kernel follows (path_resolution(7))
_NO_NEW_FILE = (errno.EACCES, errno.EPERM, errno.EROFS)


def check_writable(path: Path) -> None:
    """Raise ``OSError`` for a file that could not be written; leaves none behind."""
    if path.is_fifo():
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return
    real = _replaceable(path)
    if real is None or real.exists():
        os.close(os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC))
        return
    file, part = _new_beside(real)
    file.close()
    part.unlink()


@contextlib.contextmanager
def output(path: Path) -> Iterator[BinaryIO]:
    """Open the file for a ``with`` block; if that ends well, what was written is there. Raises
    ``UserError`` if not."""
    try:
        with _opened(path) as file:
            yield file
    except OSError as error:
        raise UserError(
            f"{path} could not be written: {error.strerror or error}",
            "free some space, or name another file",
            ExitCode.OUTPUT,
        ) from error


@contextlib.contextmanager
def text_output(path: Path | None, newline: str | None = None) -> Iterator[TextIO]:
    """Like ``output``, for text; ``newline`` is that of ``open``. To stdout for ``-`` and None."""
    if path is None or str(path) == "-":
        yield sys.stdout
        return
    with output(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline=newline)
        try:
            yield text
            text.flush()
        finally:
            with contextlib.suppress(OSError):
                text.detach()  # otherwise it would close the file before that is renamed


def write_text(path: Path | None, text: str) -> None:
    """Write a file whole, or to stdout for ``-`` and None. Raises ``UserError``."""
    with text_output(path) as file:
        file.write(text)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    check_writable(path)
    real = _replaceable(path)
    try:
        new = None if real is None else _new_beside(real)
    except OSError as error:
        if error.errno not in _NO_NEW_FILE:
            raise
        new = None
    if real is None or new is None:
        with _open_in_place(path) as file:
            yield file
        return
    file, part = new
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # some file systems say only now that they are full
        _put(part, real)
    finally:
        part.unlink(missing_ok=True)


def _replaceable(path: Path) -> Path | None:
    """The real path of a file that may be replaced; None if it must be written in place."""
    link = path
    for _ in range(LINKS_MAX):
        folder = os.path.realpath(link.parent)
        if folder == "/dev" or folder.startswith("/proc/"):
            return None  # a process's descriptor, which goes on with the file that it has
        if not link.is_symlink():
            break
        link = Path(folder, os.readlink(link))
    real = Path(os.path.realpath(path))
    try:
        there = real.stat()
    except FileNotFoundError:
        return real
    return real if stat.S_ISREG(there.st_mode) and not _is_of_a_stream(there) else None


def _is_of_a_stream(there: os.stat_result) -> bool:
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            if os.path.samestat(there, os.fstat(descriptor)):
                return True
    return False


def _new_beside(real: Path) -> tuple[BinaryIO, Path]:
    """Create a file in the same folder, with the mode and owner of the existing one, if any."""
    part = real.with_name(f".trueload-{os.urandom(8).hex()}.part")
    descriptor = open_descriptor(part, os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC)
    with contextlib.suppress(OSError):
        there = real.stat()
        with contextlib.suppress(OSError):
            os.fchown(descriptor, there.st_uid, there.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(there.st_mode))
    return os.fdopen(descriptor, "wb"), part


def _put(part: Path, real: Path) -> None:
    try:
        part.replace(real)
    except OSError:
        # A mount point, or another user's file in a sticky folder, can only be written in place.
        if not real.exists():
            raise
        with part.open("rb") as source, real.open("wb") as copy:
            shutil.copyfileobj(source, copy)


def _open_in_place(path: Path) -> BinaryIO:
    if not path.is_fifo():
        return path.open("wb")
    descriptor = _open_pipe(path, time.monotonic() + READER_S)
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "wb")


def _open_pipe(path: Path, until_s: float) -> int:
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        if time.monotonic() >= until_s:
            raise OSError(errno.ENXIO, "nothing reads from this pipe", str(path))
        time.sleep(LOOK_S)
