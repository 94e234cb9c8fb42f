"""A small process between a front and an engine on the same machine.

It forwards the front's lines, and tells the engine twice a second that the front is alive. The
front may be unable to do so itself: in a notebook a library may hold the interpreter's lock for
longer than the engine waits.

``python supervisor.py PROGRAM …``. How: the program inherits our output and gets its input from us.
When our input ends, even by the front's death, the program's input ends. Runs as a script by
itself: must not import anything of ours, nor know any line except the one that it sends.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

LEASE = b'{"type":"lease"}\n'
LEASE_EVERY_S = 0.5  # the engine ends without one for 2 s
READ_BYTES = 2**16


def main() -> int:
    """Run the program until it ends, then end as it did."""
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE) as program:
        # Readers of its output must see that end with the program, so we close our own copies.
        _let_go_of(1, 2)
        assert program.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            hand_on(0, program.stdin.fileno())
        with contextlib.suppress(BrokenPipeError):
            program.stdin.close()
        code = program.wait()
    if code < 0:
        with contextlib.suppress(OSError):  # some signals cannot be reset
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def hand_on(source: int, output: int) -> None:
    """Forward until the source has ended, or the output has no reader any more. A lease is never
    written inside a line. Raises ``BrokenPipeError``."""
    poll = select.poll()
    poll.register(source, select.POLLIN)
    poll.register(output, 0)  # reports only errors: that its reader has gone
    due_s = time.monotonic() + LEASE_EVERY_S
    within_line = False
    while True:
        ready = dict(poll.poll(max(0.0, due_s - time.monotonic()) * 1000))
        if output in ready:
            return
        if source in ready:
            chunk = os.read(source, READ_BYTES)
            if not chunk:
                return
            _write_all(output, chunk)
            within_line = not chunk.endswith(b"\n")
        if time.monotonic() >= due_s:
            due_s = time.monotonic() + LEASE_EVERY_S
            if not within_line:
                _write_all(output, LEASE)


def _write_all(output: int, rest: bytes) -> None:
    while rest:
        rest = rest[os.write(output, rest) :]


def _let_go_of(*descriptors: int) -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    for descriptor in descriptors:
        os.dup2(nothing, descriptor)
    os.close(nothing)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
