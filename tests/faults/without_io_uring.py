"""Runs a command where the kernel forbids io_uring, as many containers do.

How: a seccomp filter, kept across `exec`, makes one of io_uring's calls fail; this needs no
privilege. Started as `python without_io_uring.py setup|enter|register ERROR COMMAND…`, with the
error's name; output and exit code are the command's own.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 38, 22
SECCOMP_MODE_FILTER = 2
CALLS = {"setup": 425, "enter": 426, "register": 427}  # the same on every architecture
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF_0000, 0x0005_0000


class Program(ctypes.Structure):
    """A `struct sock_fprog`: the number of instructions, and their address."""

    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def instruction(code: int, value: int, if_not: int = 0) -> bytes:
    """Encode a `struct sock_filter`."""
    return struct.pack("HBBI", code, 0, if_not, value)


def forbid(number: int, error: int) -> None:
    """Make a system call fail with this error, here and in children. Raises ``OSError``."""
    code = b"".join(
        (
            instruction(LOAD_WORD, 0),
            instruction(JUMP_IF_EQUAL, number, if_not=1),
            instruction(RETURN, ERRNO | error),
            instruction(RETURN, ALLOW),
        )
    )
    program = Program(len(code) // 8, code)
    libc = ctypes.CDLL(None, use_errno=True)
    calls = (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
    )
    for call in calls:
        if libc.prctl(*call):
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    forbid(CALLS[sys.argv[1]], getattr(errno, sys.argv[2]))
    os.execvp(sys.argv[3], sys.argv[3:])
