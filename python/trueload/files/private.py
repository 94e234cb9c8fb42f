"""Files and folders that only their owner can read: everything that trueload writes is made here.

How: a new file has mode 0600 and a new folder 0700, whatever the umask. A file that exists keeps
its mode, because its owner chose it.

The supervisor and the agent run on other hosts without this module. They write in folders made by
``tempfile.mkdtemp``, which are private as well.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Literal, TextIO

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_USERS = {"cache": "~/.cache", "data": "~/.local/share", "state": "~/.local/state"}
"""Where programs keep what, unless the environment says so (XDG Base Directory Specification)."""


def user_folder(kind: Literal["cache", "data", "state"]) -> Path:
    """Where trueload keeps its files of a kind. The folder need not exist."""
    named = os.environ.get(f"XDG_{kind.upper()}_HOME", "").strip()
    return Path(named or os.path.expanduser(_USERS[kind]), "trueload")


def open_descriptor(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file by ``os.open``, and create it if it is missing; also an ``opener`` for ``open``.
    Raises ``OSError``."""
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except FileExistsError:
        return os.open(path, flags | os.O_CREAT, FILE_MODE)
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != FILE_MODE:
        with contextlib.suppress(OSError):  # a file system without modes
            os.fchmod(descriptor, FILE_MODE)
    return descriptor


def open_text(path: Path, errors: str | None = None) -> TextIO:
    """Open an empty file for UTF-8 text, as ``open`` does. Raises ``OSError``."""
    return open(path, "w", encoding="utf-8", errors=errors, opener=open_descriptor)


def make_folder(path: Path) -> None:
    """Create a folder, and those above it that are missing. Raises ``OSError``."""
    try:
        _make_one(path)
    except FileNotFoundError:
        if path.parent == path:
            raise
        make_folder(path.parent)
        _make_one(path)


def _make_one(path: Path) -> None:
    try:
        path.mkdir(FOLDER_MODE)
    except FileNotFoundError:
        raise
    except OSError:
        if not path.is_dir():  # it may exist although the system complains of something else
            raise
    else:
        if stat.S_IMODE(path.stat().st_mode) != FOLDER_MODE:
            with contextlib.suppress(OSError):
                path.chmod(FOLDER_MODE)


def narrow(path: str | os.PathLike[str]) -> None:
    """Remove everybody else's rights to a file, if it is ours and exists."""
    with contextlib.suppress(OSError):
        found = os.stat(path)
        if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & ~FILE_MODE:
            os.chmod(path, stat.S_IMODE(found.st_mode) & FILE_MODE)
