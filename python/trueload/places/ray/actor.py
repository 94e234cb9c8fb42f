"""The actor on one host, as the front calls it.

How: a call returns a future, so none needs a thread. Whatever Ray raises (dead actor, dead node,
lost connection) means the same here: the host, or the way to it, is lost for good, and every call
that still waits ends at once.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any

from trueload.deadline import LAST_LOOK_S, LATE_S, within
from trueload.places import HostGoneError, WayGoneError
from trueload.places.ray.host import NODE_DIED
from trueload.places.ray.link import Way, first_line

END_S = 0.5  # to send the message that ends an actor
LOST = (HostGoneError, WayGoneError)


class Actor:
    """The actor on one host."""

    def __init__(self, ray: Any, handle: Any, name: str, way: Way) -> None:
        self._ray = ray
        self._handle = handle
        self.name = name
        self.way = way
        self._lost: HostGoneError | WayGoneError | None = None
        self._waiting: set[Future[Any]] = set()

    def ask(self, method: str, *arguments: Any) -> Future[Any]:
        """Call a method. The future ends with its result, or with what Ray raises."""
        answer: Future[Any] = Future()

        def settle(theirs: Future[Any]) -> None:
            self._waiting.discard(answer)
            with contextlib.suppress(InvalidStateError):  # the host was lost before
                if (error := theirs.exception()) is not None:
                    answer.set_exception(error)
                else:
                    answer.set_result(theirs.result())

        def follow(reference: Any) -> None:
            try:
                reference.future().add_done_callback(settle)
            except Exception as error:
                fail(error)

        def fail(error: Exception) -> None:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            settle(failed)

        self._waiting.add(answer)
        try:
            self._check()
            reference = getattr(self._handle, method).remote(*arguments)
        except Exception as error:
            fail(error)
        else:
            once_numbered(reference, follow)
        return answer

    def call(self, method: str, *arguments: Any, timeout_s: float) -> Any:
        """Call a method and return its result. Raises one of ``LOST`` if none comes in time."""
        answer = self.ask(method, *arguments)
        due_s = time.monotonic() + timeout_s
        try:
            try:
                return answer.result(timeout_s)
            except TimeoutError:
                if time.monotonic() < due_s + LATE_S:
                    raise
                return answer.result(LAST_LOOK_S)  # we were held up, and the answer may be as well
        except Exception as error:  # Ray raises its own kinds, and those of its transport
            raise self.lose(error, timeout_s) from error

    def lose(self, error: Exception, timeout_s: float) -> HostGoneError | WayGoneError:
        """Note that a call failed, and return how the host was lost: the first error names the
        cause, what fails after it says less."""
        if self._lost is None:
            timed_out = isinstance(error, TimeoutError)
            how = f"it has not answered for {timeout_s:g} s" if timed_out else cause_of_death(error)
            self._lose(self.way.blame(self.name, error, how))
        assert self._lost is not None
        return type(self._lost)(str(self._lost))

    def end(self) -> None:
        """End the actor, and thereby whatever it has started. Does not wait for that."""
        self._lose(HostGoneError(f"the actor on {self.name} has been ended"))
        if self.way.lost is None:
            with contextlib.suppress(Exception):
                within(END_S, self._end)

    def _check(self) -> None:
        if self._lost is not None:
            raise type(self._lost)(str(self._lost))

    def _lose(self, lost: HostGoneError | WayGoneError) -> None:
        self._lost = self._lost or lost
        for answer in self._waiting.copy():
            with contextlib.suppress(InvalidStateError):
                answer.set_exception(self._lost)

    def _end(self) -> None:
        # The first call needs the actor to answer, the second the head of the cluster. Nothing is
        # returned: through ray:// even discarding an answer can take a minute.
        self._handle.leave.remote()
        self._ray.kill(self._handle, no_restart=True)


def once_numbered(reference: Any, follow: Callable[[Any], None]) -> None:
    """Hand a reference on once Ray's client has the number of its call from the head. ``future``
    would wait for that, and for ever if the head is lost. There is no public way to be told."""
    number: Future[Any] | None = getattr(reference, "_id_future", None)
    if number is None:
        follow(reference)
    else:
        number.add_done_callback(lambda _: follow(reference))


def cause_of_death(error: Exception) -> str:
    """The cause of an actor's death in a long text of Ray's; if none is known, its first line."""
    for words, meaning in (
        (NODE_DIED, NODE_DIED),
        ("node has died", NODE_DIED),
        ("killed by `ray.kill`", "its actor has been killed with ray.kill"),
        ("NODE_OUT_OF_MEMORY", "its actor was killed because the host has too little memory"),
        ("worker process has died", "the process of its actor has died"),
        ("broke the connection", "the connection to the cluster has been lost"),
    ):
        if words in str(error):
            return meaning
    return first_line(error)
