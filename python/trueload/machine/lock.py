"""The lock of this machine: one measurement at a time, since two would measure each other.

How: it is a ``flock`` on a file of the user's, so it ends with the process that holds it. The file
names the holder's run and what it does; engines on other hosts take the same lock there
(crates/engine/src/lock.rs). Threads of one process share it, and so does what the process starts:
it finds ``VARIABLE`` in its environment.
"""

from __future__ import annotations

import fcntl
import os
import threading
import uuid
from pathlib import Path

from trueload.closeable import Closeable
from trueload.files.private import make_folder, open_descriptor, user_folder

VARIABLE = "TRUELOAD_LOCK"
TEXT_BYTES_MAX = 4096
_GUARD = threading.Lock()


class _Process:
    """What the threads of this process share, behind ``_GUARD``."""

    descriptor: int | None = None
    holders = 0
    beside: tuple[str, ...] = ()


def is_inherited() -> bool:
    """Whether a process that has started this one, directly or not, holds the lock for it."""
    return not _Process.holders and bool(os.environ.get(VARIABLE))


def beside() -> str | None:
    """Return what else measures at the same time, because it is not waited for; None if nothing."""
    of_own = ("another thread of this process",) if _Process.holders > 1 else ()
    return ", ".join((*_Process.beside, *of_own)) or None


def note_beside(others: tuple[str, ...]) -> None:
    """Note what is not waited for; empty at the end of a measurement."""
    _Process.beside = others


class LocalLock(Closeable):
    """The lock of this machine, for one measurement of this process."""

    def __init__(self, what: str) -> None:
        self.token = uuid.uuid4().hex
        self._what = what
        self._holds = False

    def ask(self) -> None:
        """Take the lock if it is free, before any host is asked: one may be this machine."""
        with _GUARD:
            self._by = None if self._holds or _Process.holders else self._lock()
            if self._by is None:
                _Process.holders += not self._holds
                self._holds = True

    def answer(self) -> str | None:
        """Return what another process does that has the lock; None if this one has it."""
        return self._by

    def release(self) -> None:
        with _GUARD:
            _Process.holders -= self._holds
            self._holds = False
            if not _Process.holders and _Process.descriptor is not None:
                fcntl.flock(_Process.descriptor, fcntl.LOCK_UN)  # forked children have it, too
                os.close(_Process.descriptor)
                _Process.descriptor = None
                del os.environ[VARIABLE]

    def close(self) -> None:
        self.release()

    def _lock(self) -> str | None:
        try:
            descriptor = open_descriptor(_path(), os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            return None  # where there can be no file, nobody can be waited for
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            text = os.pread(descriptor, TEXT_BYTES_MAX, 0).decode(errors="replace")
            os.close(descriptor)
            return text.partition("\n")[2].strip() or "another run"
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{self.token}\n{self._what}\n".encode(errors="replace"), 0)
        _Process.descriptor = descriptor
        os.environ[VARIABLE] = self.token
        return None


def _path() -> Path:
    """The file of the lock: in the user's folder of this boot, else of the state of programs."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    if os.path.isdir(runtime):
        return Path(runtime) / "trueload.lock"
    folder = user_folder("state")
    make_folder(folder)
    return folder / f"{os.uname().nodename}.lock"  # homes may be shared by several machines
