"""What the user is told when something cannot go on, and the exit codes of every command.

An error that a user can cause or fix is a ``UserError``: one line that names the mistake, one line
with the next step, and the exit code. Only the command line prints the two lines.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from enum import IntEnum

PATH_SHOWN = 200
_SHORTAGES = {
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise the limit of open files: `ulimit -n`"),
    **dict.fromkeys(
        (errno.EAGAIN, errno.ENOMEM), "end other programs, or raise a limit: `ulimit -a` shows them"
    ),
}


_OF_PATHS = {
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS), ("check its permissions, or name another path")
    ),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space, or name another"),
    **dict.fromkeys(
        (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO),
        "name a path that exists",
    ),
}


_NO_THREAD = "can't start new thread"  # RuntimeError of the interpreter
_FORBIDDEN = (errno.EPERM, errno.EACCES, errno.ENOSYS)


class ExitCode(IntEnum):
    """How a command ended, for scripts. The numbers are part of the interface."""

    OK = 0
    """Measured; the verdict is valid or suspect."""
    THRESHOLD = 1
    """Measured, and a threshold that the user set (``--fail-on``) was crossed."""
    USAGE = 2
    """The command line, a file or a manifest is wrong: nothing was sent."""
    NOTHING_MEASURED = 3
    """Nothing could be measured: no connection became usable, or another trueload measured on the
    machine for longer than this one waits."""
    INVALID = 4
    """Measured, but the verdict is invalid; the failed checks say why."""
    INTERNAL = 70
    """A mistake in trueload itself (EX_SOFTWARE of sysexits.h); the traceback is in a file."""
    MACHINE = 71
    """The machine, or a limit or sandbox on it, refused what trueload itself needs: a thread,
    memory, a system call (EX_OSERR)."""
    OUTPUT = 74
    """What was measured could not be saved, or the output could not be written, mostly because of a
    full disk (EX_IOERR)."""
    INTERRUPTED = 130
    """Interrupted; what was measured until then is saved and marked partial."""


def unsaved(code: ExitCode) -> ExitCode:
    """The exit code of a command that would have ended with ``code``, but could not save or write
    all that it was asked to. An invalid result takes precedence: its figures are of no use, and a
    script that only repeats the saving must not accept them."""
    return ExitCode.OUTPUT if code in (ExitCode.OK, ExitCode.THRESHOLD) else code


class UserError(Exception):
    """A mistake that the user can fix.

    ``message`` names the mistake and ``hint`` the next step, each on one line and without a final
    full stop; ``exit_code`` is what the command ends with.
    """

    def __init__(self, message: str, hint: str, exit_code: ExitCode | int = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.add_note(f"hint: {hint}")  # a traceback shows it, too
        self.message = message
        self.hint = hint
        self.exit_code = ExitCode(exit_code)

    def __str__(self) -> str:
        return self.message


class HostError(UserError):
    """A host that load should come from cannot be used now. It may be back later."""


def some_broken(kind: str, broken: Mapping[str, UserError]) -> UserError:
    """The error that ends a listing which has shown what it could: the fault of the only broken
    entry, or the names of all. ``broken`` is never empty."""
    first, *others = broken.values()
    if not others:
        return first
    return UserError(f"{len(broken)} {kind} are broken: {', '.join(broken)}", first.hint)


def path_fault(error: OSError) -> tuple[str, str] | None:
    """What is wrong with the file that an error names, and the next step; None if the file is not
    to blame."""
    hint = _OF_PATHS.get(error.errno or 0)
    if hint is None or error.filename is None:
        return None
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "a file"
    shown = name if len(name) <= PATH_SHOWN else f"{name[:PATH_SHOWN]}…"
    return f"{shown}: {error.strerror}", hint


def machine_fault(error: Exception) -> tuple[str, str] | None:
    """What this machine has refused to trueload itself, and the next step; None if something else
    is wrong. An error that names a file is for ``path_fault``."""
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        hint = "raise the limits: `ulimit -v` of memory, `ulimit -u` or a container's of threads"
        return "this machine grants no more threads", hint
    if isinstance(error, MemoryError):
        return "this machine grants no more memory", "raise the limit of memory: `ulimit -v`"
    if isinstance(error, OSError) and error.filename is None and error.errno in _FORBIDDEN:
        hint = "allow it: a sandbox forbids it, such as a container's seccomp profile"
        return f"this machine forbids a system call that trueload needs: {error.strerror}", hint
    return None


def refused_by_machine(what: str) -> UserError:
    """The error for an engine whose machine has refused it something; ``what`` completes "grants",
    as in no thread, no descriptors."""
    hint = "raise its limits (`ulimit -a` shows them), or ask for fewer --threads"
    return UserError(f"the engine's machine grants {what}", hint, ExitCode.MACHINE)


def out_of_memory(what: str) -> UserError:
    """The error for an engine that got too little memory from a limit, or from its machine."""
    hint = (
        "raise the limit of memory (`ulimit -v`, a container's), or ask for fewer connections or"
        " smaller bodies"
    )
    return UserError(what, hint, ExitCode.MACHINE)


def shortage_hint(error: OSError) -> str | None:
    """The next step if this machine, or a limit, has run out of something that every program needs;
    None if something else is wrong."""
    return _SHORTAGES.get(error.errno or 0)
