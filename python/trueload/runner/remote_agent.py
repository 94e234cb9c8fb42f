"""A server's host that is not this machine, as the front sees it: calls to an agent there.

How: the agent is a program at a place, like an engine. Every call is a line with its answer, in
bounded time. An answer repeats the id of its call; an answer to another call is late, and is
dropped. A thread tells the agent twice a second that the front is alive. A missing answer is an
``EngineError``: without its server's host a trial is worth nothing.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from typing import Any

from trueload.closeable import Closeable
from trueload.engines.engine import EngineError, last_words
from trueload.errors import UserError
from trueload.machine.accounting import TreeSample, parse_sample
from trueload.places import ChannelClosedError, Place
from trueload.runner.agent_file import agent_file
from trueload.runner.process import StartError
from trueload.units import counted

LEASE_EVERY_S = 0.5
SEND_S = 2.0
ANSWER_S = 10.0
END_S = 3.0


class RemoteAgent(Closeable):
    """An agent at a place, which is also the ``spec.Tree`` of the processes it watches.

    A context manager that leaves nothing running there.
    """

    def __init__(self, place: Place) -> None:
        """Start the agent. Raises ``UserError``."""
        self.name = place.name
        try:
            self._channel = place.open([str(agent_file())])
        except OSError as error:
            raise UserError(
                f"{place.name} cannot run the server's agent: {error.strerror}",
                "it is a Python program: install python3 there",
            ) from error
        self._lock = threading.Lock()
        self._calls = 0
        self.dropped = 0  # answers to other calls: late, because the host was paused
        self._over = threading.Event()
        try:
            about = self._first_answer()
        except BaseException:
            self._channel.kill()
            raise
        self.cpus = tuple(about["cpus"])
        self.scratch = str(about["scratch"])
        threading.Thread(target=self._keep_alive, name="agent-lease", daemon=True).start()

    def close(self) -> None:
        """End the agent, and with it all that it started."""
        self._over.set()
        self._channel.close_input()
        if self._channel.wait(END_S) is None:
            self._channel.kill()

    def call(self, name: str, wait_s: float = ANSWER_S, **arguments: Any) -> Any:
        """Return the agent's answer. Raises ``StartError`` for a program that cannot be started,
        ``OSError`` for a refused call, and ``EngineError`` if there is no answer."""
        with self._lock:
            self._calls += 1
            asked = {"id": self._calls, "call": name, **arguments}
            try:
                self._channel.send(json.dumps(asked).encode() + b"\n", SEND_S)
                answer = self._answer(self._calls, wait_s)
            except ChannelClosedError as error:
                raise self._lost(str(error)) from error
        if answer.get("start"):
            raise StartError(answer["error"])
        if "error" in answer:
            raise OSError(answer["error"])
        return answer["result"]

    def _answer(self, number: int, wait_s: float) -> dict[str, Any]:
        """Return the answer to a call, and drop those to other calls. Raises ``EngineError``."""
        due_s = time.monotonic() + wait_s
        before = self.dropped
        while (line := self._channel.read_line(max(0.0, due_s - time.monotonic()))) is not None:
            try:
                answer = json.loads(line)
            except ValueError as error:
                raise self._lost("its agent sent a line that is not an answer") from error
            if not isinstance(answer, dict):
                raise self._lost("its agent sent a line that is not an answer")
            if answer.get("id") == number:
                return answer
            self.dropped += 1
            if time.monotonic() > due_s:  # an agent that never stops talking
                break
        count = self.dropped - before
        dropped = counted(count, "answer to another call was", "answers to other calls were")
        other = f"; {dropped} dropped" if count else ""
        raise self._lost(f"no answer for {wait_s:g} s{other}")

    def watch(self, pid: int) -> None:
        """Account for a process there, with its children."""
        self.call("watch", pid=pid)

    def sample(self) -> TreeSample:
        """Return what the watched processes have used up to now, by the clocks of their host.
        Raises ``EngineError``."""
        try:
            return parse_sample(self.call("sample"))
        except (OSError, KeyError, TypeError, ValueError) as error:
            what = f"{self.name} cannot say what its server uses: {error}"
            raise EngineError("junk", what) from error

    def _lost(self, why: str) -> EngineError:
        words = last_words(self._channel.log_tail())
        last_text = f"; its last words: {words}" if words else ""
        return EngineError("lost", f"the server's host {self.name} is lost: {why}{last_text}")

    def _first_answer(self) -> Any:
        try:
            return self.call("about")
        except EngineError as error:
            if self._channel.wait(0) in (126, 127):
                raise UserError(
                    f"{self.name} has no python3, which is needed to measure what its server uses",
                    "install python3 there, 3.10 or newer",
                ) from error
            raise UserError(str(error), "python3 there must be 3.10 or newer") from error

    def _keep_alive(self) -> None:
        while not self._over.wait(LEASE_EVERY_S):
            # The next call to a lost host finds out.
            with contextlib.suppress(EngineError, OSError):
                self.call("lease")
