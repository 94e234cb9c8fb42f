"""The calls that carry the lines of programs on a cluster: when one is made, and what its answer
means. The actor is a stand-in, and time is virtual; what a real actor answers is tested as well.
"""

from __future__ import annotations

import asyncio
import queue
import shutil
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from trueload.places import ChannelClosedError, HostGoneError
from trueload.places.lines import Lines
from trueload.places.ray import host, talks
from trueload.places.ray.actor import Actor
from trueload.places.ray.outbox import Outbox
from trueload.places.ray.talks import HOLD_S, LOOK_EVERY_S, PAUSE_S, SILENT_S, Talk
from trueload.places.ray.way import Way

BOUND_S = 30.0
SH = shutil.which("sh") or "/bin/sh"


class Clock:
    """Stands in for the module ``time``."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


class Reference:
    """A call of a stand-in for Ray; ``_id_future`` is what Ray's client names it."""

    def __init__(self, arguments: tuple[Any, ...], number: Future[bytes] | None = None) -> None:
        self.arguments = arguments
        self.answer: Future[Any] = Future()
        self._id_future = number

    def future(self) -> Future[Any]:
        if self._id_future is not None:
            assert self._id_future.done(), "it would wait for the head"
            self._id_future.result()
        return self.answer


class Handle:
    """Stands in for an actor: every method notes its call."""

    def __init__(self) -> None:
        self.calls: list[Reference] = []
        self.numbered = True

    def __getattr__(self, name: str) -> Any:
        def remote(*arguments: Any) -> Reference:
            number: Future[bytes] | None = None if self.numbered else Future()
            self.calls.append(Reference(arguments, number))
            return self.calls[-1]

        return type("Method", (), {"remote": staticmethod(remote)})


class Setting:
    """A talk with a stand-in, and what it has read and is to write."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.handle = clock, Handle()
        self.way = Way("the Ray cluster")
        self.actor = Actor(None, self.handle, "a", self.way)
        self.lines, self.outbox = Lines(), Outbox()
        self.talk = Talk(self.actor, 1, self.lines, self.outbox)
        self.done: queue.SimpleQueue[talks.Event] = queue.SimpleQueue()

    def call(self) -> list[tuple[bytes, bool]]:
        """Make the call that is due, if one is; return what each new one brings."""
        before = len(self.handle.calls)
        self.talk.call(self.done)
        return [each.arguments[1:3] for each in self.handle.calls[before:]]

    def answer(self, number: int, *answer: Any) -> None:
        """Answer a call, in the words of ``host.Answer``."""
        self.handle.calls[number].answer.set_result(answer)
        self.take()

    def take(self) -> None:
        talk, answer = self.done.get_nowait()
        assert answer is not None
        talk.take(answer)

    def after(self, seconds: float) -> None:
        self.clock.now_s += seconds

    def put(self, line: bytes) -> None:
        self.outbox.put(line, 0.0, 0.0)

    def read(self) -> list[bytes]:
        """All lines that have come."""
        return list(iter(lambda: self.lines.read(0.0), None))


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Setting:
    clock = Clock()
    monkeypatch.setattr(talks, "time", clock)
    monkeypatch.setattr("trueload.places.ray.way.time", clock)
    return Setting(clock)


READ = (b"", False)


def test_a_program_that_says_nothing_has_one_call_held(there: Setting) -> None:
    assert there.call() == [READ]
    assert there.call() == [], "the actor holds it until there is output"
    there.answer(0, 1, b"", 0, None, False)
    assert there.call() == [READ]


def test_one_call_brings_what_is_said_until_the_next_question(there: Setting) -> None:
    assert there.call() == [READ]
    there.answer(0, 1, b"tick\n", 0, None, False)
    assert there.call() == [], "it says more than it is asked"
    there.put(b"question\n")
    assert there.call() == [(b"question\n", False)]
    there.answer(1, 2, b"tick\ntick\nanswer\n", 9, None, False)
    there.after(PAUSE_S / 2)
    assert there.call() == []
    there.after(PAUSE_S)
    assert there.call() == [READ]
    assert there.read() == [b"tick", b"tick", b"tick", b"answer"]


def test_what_is_to_be_sent_waits_for_no_output_but_for_what_was_sent_before(
    there: Setting,
) -> None:
    assert there.call() == [READ]
    there.put(b"first\n")
    assert there.call() == [(b"first\n", False)]
    there.put(b"second\n")
    assert there.call() == []
    there.answer(1, 2, b"", 2, None, False)
    assert there.call() == [(b"rst\nsecond\n", False)], "what it has not taken is offered again"
    there.outbox.close()
    there.answer(2, 3, b"", 11, None, False)
    assert there.call() == [(b"", True)]
    there.answer(3, 4, b"", 0, None, False)
    there.after(PAUSE_S)
    assert there.call() == [], "the first call is still held"


def test_lines_keep_their_order_whichever_answer_comes_first(there: Setting) -> None:
    there.call()
    there.put(b"x\n")
    there.call()
    there.answer(1, 2, b"d\ne\n", 2, None, True)
    assert there.read() == []
    there.answer(0, 1, b"first\nsecon", 0, None, False)
    with pytest.raises(ChannelClosedError, match="it has closed its output"):
        there.read()
    assert there.talk.is_over


def test_the_last_lines_come_before_the_end(there: Setting) -> None:
    there.call()
    there.answer(0, 1, b"last\n", 0, None, True)
    assert there.lines.read(0.0) == b"last"
    with pytest.raises(ChannelClosedError, match="it has closed its output"):
        there.lines.read(0.0)
    assert there.call() == []


def test_a_program_that_takes_no_input_can_still_be_heard(there: Setting) -> None:
    there.put(b"x\n")
    there.call()
    there.answer(0, 1, b"", 0, "it has closed its input", False)
    with pytest.raises(ChannelClosedError, match="it has closed its input"):
        there.put(b"y\n")
    assert there.call() == [READ]
    there.answer(1, 2, b"still here\n", 0, None, False)
    assert there.read() == [b"still here"]


def test_a_reader_that_lags_stops_the_calls(
    there: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trueload.places.lines.LINES_MAX", 2)
    there.call()
    there.answer(0, 1, b"a\nb\nc\n", 0, None, False)
    there.after(PAUSE_S)
    assert there.call() == []
    there.talk.look(0.0)
    assert not there.talk.is_over, "it was asked nothing, so it is not silent"
    assert there.read() == [b"a", b"b", b"c"]
    assert there.call() == [READ]


def test_a_host_that_does_not_answer_is_lost_but_not_if_the_front_stood_still(
    there: Setting,
) -> None:
    there.call()
    there.after(SILENT_S)
    there.talk.look(0.0)
    assert (there.talk.is_over, there.talk.is_unanswered) == (False, True)
    there.after(5.0)
    assert not there.talk.is_unanswered, "nobody waits for a thread that is held up"
    there.talk.look(5.0)
    assert not there.talk.is_over
    there.after(LOOK_EVERY_S)
    there.talk.look(LOOK_EVERY_S)
    there.talk.look(0.0)
    there.after(LOOK_EVERY_S)
    there.talk.look(0.0)
    assert there.talk.is_over
    for use in (lambda: there.lines.read(0.0), lambda: there.put(b"x\n")):
        with pytest.raises(HostGoneError, match=r"host a is lost: it has not answered for 1\.5 s"):
            use()


def test_a_call_that_fails_loses_the_host_and_ends_what_waits_for_it(there: Setting) -> None:
    there.call()
    waits = there.actor.ask("log", 1)
    there.handle.calls[0].answer.set_exception(RuntimeError("the worker process has died"))
    there.take()
    words = "host a is lost: the process of its actor has died"
    with pytest.raises(HostGoneError, match=words):
        there.read()
    assert str(waits.exception(0.0)) == words
    assert str(there.actor.ask("log", 1).exception(0.0)) == words


def test_what_comes_after_a_kill_is_dropped(there: Setting) -> None:
    there.call()
    there.lines.stop()
    there.talk.end(ChannelClosedError("it has been killed"))
    there.answer(0, 1, b"more\n", 0, None, False)
    assert there.call() == []
    with pytest.raises(ChannelClosedError, match="it has been killed"):
        there.put(b"x\n")


def test_a_head_that_gives_no_number_to_a_call_holds_nobody_up(there: Setting) -> None:
    there.handle.numbered = False
    answers = [there.actor.ask("log", 1) for _ in range(3)]
    first, second, _ = there.handle.calls
    second._id_future.set_result(b"2")  # type: ignore[union-attr]
    second.answer.set_result(b"words")
    first._id_future.set_exception(ConnectionError("the connection broke"))  # type: ignore[union-attr]
    assert isinstance(answers[0].exception(0.0), ConnectionError)
    assert answers[1].result(0.0) == b"words"
    assert not answers[2].done()


# --- the actor


def exchanges(script: str, talk: Callable[[host.Process], Awaitable[Any]]) -> Any:
    """Run a shell as an actor does, and talk with it."""

    async def run() -> Any:
        program = host.Program(host.in_memory(Path(SH).read_bytes()), is_script=False)
        process = host.Process(program, [SH, "-c", script])
        try:
            return await asyncio.wait_for(talk(process), BOUND_S)
        finally:
            process.kill()
            process.close()

    return asyncio.run(run())


def test_an_exchange_brings_the_reply_to_what_it_writes() -> None:
    async def talk(process: host.Process) -> list[host.Answer]:
        ready = await process.exchange(b"", False, BOUND_S)
        return [ready, await process.exchange(b"ping\n", False, BOUND_S)]

    found = exchanges("echo ready; read word; echo got $word; read more", talk)
    assert found == [(1, b"ready\n", 0, None, False), (2, b"got ping\n", 5, None, False)]


def test_a_held_exchange_gives_way_to_the_next() -> None:
    async def talk(process: host.Process) -> list[host.Answer]:
        held = asyncio.create_task(process.exchange(b"", False, BOUND_S))
        await asyncio.sleep(0)
        return [await process.exchange(b"ping\n", False, BOUND_S), await held]

    written, held = exchanges("read word; echo got $word; read more", talk)
    assert held == (1, b"", 0, None, False)
    assert written == (2, b"got ping\n", 5, None, False)


def test_nothing_is_lost_of_a_program_that_ends() -> None:
    async def talk(process: host.Process) -> list[host.Answer]:
        found = [await process.exchange(b"", True, BOUND_S)]
        while not found[-1][4]:
            found.append(await process.exchange(b"", False, BOUND_S))
        return found

    found = exchanges("cat; i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done", talk)
    assert b"".join(each[1] for each in found) == b"".join(b"%d\n" % i for i in range(20000))
    assert [each[0] for each in found] == list(range(1, len(found) + 1))


def test_a_program_that_reads_nothing_takes_what_its_pipe_holds() -> None:
    piece = bytes(64 * 2**10)

    async def talk(process: host.Process) -> list[int]:
        taken = [len(piece)]
        while taken[-1] == len(piece):
            answer = await process.exchange(piece, False, HOLD_S)
            taken.append(answer[2])
        return taken

    assert sum(exchanges("sleep 60", talk)) <= host.PIPE_BYTES + len(piece)


def test_a_program_that_has_closed_its_input_says_so() -> None:
    async def talk(process: host.Process) -> host.Answer:
        await process.exchange(b"", False, BOUND_S)
        return await process.exchange(b"x\n", False, BOUND_S)

    assert exchanges("exec 0<&-; echo closed; sleep 60", talk)[2:4] == (
        0,
        "it has closed its input",
    )
