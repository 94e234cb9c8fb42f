"""Locks every machine that a run measures on, or waits until another run has released them.

How: on this machine by its own lock; on each other host an engine that does nothing else holds the
lock there. A run has all locks or none, so that two runs never wait for each other.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from trueload.closeable import Closeable
from trueload.engines.engine import Engine, EngineError
from trueload.errors import ExitCode, UserError
from trueload.machine import lock
from trueload.machine.lock import LocalLock
from trueload.places import Place
from trueload.protocol.fleet import AskLock, Lock
from trueload.protocol.plan import Error
from trueload.units import NS_PER_S, format_span

AGAIN_S = 0.2
TELL_S = 1.0
ANSWER_S = 5.0
AT_ONCE_MAX = 32  # hosts on which an engine is started at the same time


class HostLock(Closeable):
    """The lock of another host. Every method raises ``EngineError``."""

    def __init__(self, place: Place, what: str, token: str) -> None:
        self._name, self._what, self._token = place.name, what, token
        self._engine = Engine.start(place)

    def ask(self, hold: bool = True) -> None:
        """Ask for the lock, or release it; ``answer`` follows."""
        self._engine.send(AskLock(token=self._token, what=self._what, hold=hold))

    def answer(self) -> str | None:
        """Return what another run does that has the lock; None if this run has it."""
        message = self._engine.receive(ANSWER_S)
        if isinstance(message, Error):
            raise EngineError("engine", f"{self._name}: {message.message}")
        if not isinstance(message, Lock):
            raise EngineError("silent", f"{self._name} has not answered for {ANSWER_S:g} s")
        return None if message.by is None else f"{message.by} on {self._name}"

    def release(self) -> None:
        self.ask(hold=False)
        self.answer()

    def close(self) -> None:
        self._engine.close()


@contextlib.contextmanager
def hold_locks(
    what: str,
    elsewhere: Sequence[Place],
    wait_ns: int,
    *,
    here: bool,
    announce: Callable[[str], object],
    stopped: Callable[[], bool],
) -> Iterator[None]:
    """Lock these hosts, and this machine if the run measures ``here``.

    Raises ``UserError`` if others measure there for longer than ``wait_ns``. With 0 it measures at
    the same time, and the verdict says so. Raises ``KeyboardInterrupt`` once it is ``stopped``.
    """
    if lock.is_inherited():
        yield
        return
    what = f"trueload {what} (process {os.getpid()})"
    local = LocalLock(what)
    with contextlib.ExitStack() as stack:
        locks: list[LocalLock | HostLock] = [stack.enter_context(local)] if here else []
        try:
            with ThreadPoolExecutor(AT_ONCE_MAX, "lock") as pool:
                locks += pool.map(
                    lambda place: stack.enter_context(HostLock(place, what, local.token)), elsewhere
                )
            others = _take(locks, wait_ns, announce, stopped)
        except EngineError as error:
            raise error.as_user_error("for the lock of its machine") from error
        stack.callback(lock.note_beside, ())
        lock.note_beside(others)
        yield


def _take(
    locks: Sequence[LocalLock | HostLock],
    wait_ns: int,
    announce: Callable[[str], object],
    stopped: Callable[[], bool],
) -> tuple[str, ...]:
    """Take all locks; return what has one that is not waited for."""
    began_s, told, longest = time.monotonic(), False, format_span(wait_ns)
    while True:
        for each in locks:
            each.ask()
        answers = [each.answer() for each in locks]
        others = tuple(dict.fromkeys(by for by in answers if by is not None))
        if not others or not wait_ns:
            return others
        for each in locks:
            each.release()
        waited_s = time.monotonic() - began_s
        if waited_s * NS_PER_S >= wait_ns:
            raise UserError(
                f"{others[0]} has measured for longer than --wait {longest}",
                "wait longer, or measure at the same time: --wait 0",
                ExitCode.NOTHING_MEASURED,
            )
        if not told and waited_s >= TELL_S:
            announce(f"waiting for {others[0]}, at most {longest} (--wait)")
            told = True
        if stopped():
            raise KeyboardInterrupt
        time.sleep(AGAIN_S)
