"""Ctrl-C, SIGTERM and SIGHUP as a flag, so that what was measured is saved before the end.

The first signal only sets the flag. The code that measures looks at it (at least every 100 ms),
ends politely and saves. The second signal raises ``KeyboardInterrupt`` at once, wherever the main
thread is; ``finally`` blocks then kill what was started. A library that only borrows the signals
for a while passes the first one on afterwards.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import Self

from trueload.closeable import Closeable

_OUTER: ContextVar[Interrupt | None] = ContextVar("outer", default=None)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_like_ctrl_c() -> None:
    """Make each of the signals raise ``KeyboardInterrupt`` from now on, as Ctrl-C does by itself.
    Otherwise a process that SIGTERM ends leaves behind what it has started."""
    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def raise_at_ctrl_c() -> None:
    """Let Ctrl-C raise ``KeyboardInterrupt`` from now on, unless it is to be ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Interrupt(Closeable):
    """A context in which the three signals set ``requested``; its end restores the handlers."""

    def __init__(self) -> None:
        # A plain flag: the lock of an Event could be held by the very thread that is interrupted.
        self._requested = False
        self._outer = _OUTER.get()
        self._first: int | None = None
        self._previous: dict[signal.Signals, signal.Handlers] = {}

    @property
    def requested(self) -> bool:
        """True from the first signal on."""
        return self._requested or (self._outer is not None and self._outer.requested)

    def request(self) -> None:
        """Set the flag, as the first signal does."""
        self._requested = True

    def hand_on(self) -> None:
        """Pass the first signal on to its previous handler, after the context has ended. Mostly it
        raises ``KeyboardInterrupt``, or ends the process."""
        if self._first is not None:
            signal.raise_signal(self._first)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                # A signal that the parent had us ignore (nohup) stays ignored.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._handle)  # type: ignore[assignment]
        return self

    def close(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._requested:
            raise KeyboardInterrupt
        self._requested, self._first = True, number


@contextmanager
def within(outer: Interrupt) -> Iterator[None]:
    """A context in which a request of ``outer`` also counts for every new ``Interrupt``: for
    threads, which no signal reaches."""
    token = _OUTER.set(outer)
    try:
        yield
    finally:
        _OUTER.reset(token)


@dataclass(frozen=True)
class EarlyEnd:
    """What ends a trial early: the user, or the end of the subject."""

    user: Interrupt
    ended: Callable[[], bool]

    @property
    def requested(self) -> bool:
        """Whether one of them has happened."""
        return self.user.requested or self.ended()
