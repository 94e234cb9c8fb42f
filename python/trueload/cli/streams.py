"""The three standard streams of a process that may have been started without them (``>&-``).

Must not know what is written there.
"""

from __future__ import annotations

import os
import sys

STREAMS = ("stdin", "stdout", "stderr")  # by the numbers of their files


def hold_open() -> None:
    """Puts the null device where a stream was closed when we began. Its number would go to the next
    file or pipe that is opened, and what a child says on its stderr end up in there."""
    for fd, name in enumerate(STREAMS):
        if getattr(sys, name) is not None:
            continue
        # The lowest number that is free: this one, but where somebody has it already.
        opened = os.open(os.devnull, os.O_RDWR)
        os.set_inheritable(opened, opened == fd)
        setattr(sys, name, os.fdopen(opened, "r" if fd == 0 else "w", encoding="utf-8"))
