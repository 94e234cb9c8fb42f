"""Which process writes a run: a lock that the kernel releases however its holder ends.

How: the run's number is a byte of one file beside the store. That byte is locked through an open
file description (fcntl(2), F_OFD_SETLK). Until the file is closed nobody else can lock it, not even
another open store in the same process. The file stays, empty; nothing in it can be stale. SQLite's
own file is not used, because closing it a second time would drop SQLite's locks.

If a file system has no such locks, or the file cannot be made, nobody is kept out: a run must not
fail for what only keeps others from it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from pathlib import Path

from trueload.closeable import Closeable
from trueload.files.private import open_descriptor

# struct flock of the kernel: type, whence, start, length, pid (0 for these locks), padding.
FLOCK = struct.Struct("hhqqi4x")
LOCK_ENDING = "-running"
"""Suffix of the lock's file after the name of the store."""


class HeldError(Exception):
    """Another holder has the run."""


class RunLock(Closeable):
    """One run, held until closed."""

    def __init__(self, store: Path, seq: int) -> None:
        """Lock the run. Raises ``HeldError`` if another holder has it."""
        self._descriptor: int | None = None
        with contextlib.suppress(OSError):
            self._descriptor = open_descriptor(lock_path(store), os.O_RDWR)
        if self._descriptor is None:
            return
        wanted = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, seq, 1, 0)
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, wanted)
        except BlockingIOError:
            self.close()
            raise HeldError from None
        except OSError:
            self.close()

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def is_held(store: Path, seq: int) -> bool:
    """Whether a run is held, or may be, if that cannot be known. It is not if there is no lock
    file: the store was copied, and its runs go on, if at all, where it came from."""
    wanted = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, seq, 1, 0)
    try:
        descriptor = os.open(lock_path(store), os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, wanted)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    kind: int = FLOCK.unpack(found)[0]
    return kind != fcntl.F_UNLCK


def lock_path(store: Path) -> Path:
    """Path of the lock's file, beside the store itself, whatever link leads there."""
    real = Path(os.path.realpath(store))
    return real.with_name(real.name + LOCK_ENDING)
