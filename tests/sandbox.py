"""A sandbox for a program under test that refuses system calls, as a container may.

It uses a seccomp filter for x86-64. Elsewhere ``CALLS`` is empty, and the tests that need it are
skipped.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

CALLS = (
    {"getrlimit": 97, "setrlimit": 160, "prlimit64": 302, "clone3": 435}
    if platform.machine() == "x86_64"
    else {}
)
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_LOAD_NUMBER = struct.pack("HBBI", 0x20, 0, 0, 0)
_ALLOW = struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)


class _Program(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def refuse(*names: str, error: int = errno.EPERM) -> None:
    """Make these system calls fail with ``error``, in this process and what it executes."""
    rules = [_LOAD_NUMBER]
    for name in names:
        rules.append(struct.pack("HBBI", 0x15, 0, 1, CALLS[name]))  # not equal: skip the next
        rules.append(struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | error))
    rules.append(_ALLOW)
    program = _Program(len(rules), b"".join(rules))
    libc = ctypes.CDLL(None, use_errno=True)
    for asked in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if libc.prctl(*asked) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
