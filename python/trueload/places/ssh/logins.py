"""Logs in to hosts, a few at a time, and again where the ssh server drops a log-in.

How: sshd refuses at random once ``MaxStartups`` log-ins are under way (10, by default), and so does
that of a jump host on the way to many. So we stay below that. A log-in that was dropped all the
same is tried again after a pause that doubles. Every other failure is final.
"""

from __future__ import annotations

import random
import threading

from trueload.places.copying import Copying
from trueload.places.program import Program
from trueload.places.ssh.connection import Connection, DroppedError

AT_ONCE_MAX = 8  # sshd_config(5): MaxStartups 10:30:100
TRIES_MAX = 5
FIRST_PAUSE_S = 0.5

_turns = threading.BoundedSemaphore(AT_ONCE_MAX)


def log_in(destination: str, program: Program, copying: Copying) -> Connection:
    """Log in to a host. Raises ``UserError``, and ``CalledOffError``."""
    chance = random.Random(destination)  # hosts that were dropped together come back apart
    for tries in range(1, TRIES_MAX + 1):
        with _turns:
            copying.check()
            try:
                return Connection(
                    destination, program.kept_name, program.loader, look=copying.check
                )
            except DroppedError as error:
                if tries == TRIES_MAX:
                    raise
                why = error.message
        pause_s = pause_after(tries) * (0.5 + chance.random())
        copying.announce(f"{why}; trying again in {pause_s:.1f} s")
        copying.wait(pause_s)
    raise AssertionError("the last try returns or raises")


def pause_after(tries: int) -> float:
    """The usual pause in s after so many log-ins that were dropped."""
    return float(FIRST_PAUSE_S * 2 ** (tries - 1))
