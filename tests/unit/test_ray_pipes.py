"""The calls that carry the lines of programs on a cluster: when one is made, and what its answer
means. The actor is a stand-in, and time is virtual; what a real actor answers is tested as well.
"""

from __future__ import annotations

import asyncio
import queue
import shutil
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trueload.places import ChannelClosedError, HostGoneError
from trueload.places.lines import Lines
from trueload.places.ray import host, pipes
from trueload.places.ray.actor import Actor
from trueload.places.ray.link import Way
from trueload.places.ray.outbox import PIECE_BYTES, Outbox
from trueload.places.ray.pipes import HOLD_S, LOOK_EVERY_S, PAUSE_S, SILENT_S, Talk

BOUND_S = 30.0
SH = shutil.which("sh") or "/bin/sh"


class Setting:
    """A talk with a stand-in, and what it has read and is to write. It also stands in for an actor,
    whose methods note their calls, and for the module ``time``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pipes, "time", self)
        monkeypatch.setattr("trueload.places.ray.link.time", self)
        self.now_s = 1000.0
        self.calls: list[SimpleNamespace] = []
        self.is_numbered = True
        self.done: queue.SimpleQueue[pipes.Event] = queue.SimpleQueue()
        self.lines, self.outbox = Lines(), Outbox()
        self.exchange = self.log = SimpleNamespace(remote=self.remote)
        self.actor = Actor(None, self, "a", Way("the Ray cluster"))
        self.talk = Talk(self.actor, 1, self.lines, self.outbox)

    def monotonic(self) -> float:
        return self.now_s

    def remote(self, *arguments: Any) -> SimpleNamespace:
        """Make a call; ``_id_future`` is what Ray's client names its number."""
        answer: Future[Any] = Future()
        number: Future[bytes] = Future()

        def future() -> Future[Any]:
            assert number.done(), "it would wait for the head"
            return answer if number.result() else number

        if self.is_numbered:
            number.set_result(b"1")
        call = SimpleNamespace(arguments=arguments, answer=answer, future=future, _id_future=number)
        self.calls.append(call)
        return call

    def call(self) -> list[tuple[bytes, bool]]:
        """Make the call that is due, if one is; return what each new one brings."""
        before = len(self.calls)
        self.talk.call(self.done)
        return [each.arguments[1:3] for each in self.calls[before:]]

    def answer(self, number: int, *answer: Any) -> None:
        """Answer a call, in the words of ``host.Answer``."""
        self.calls[number].answer.set_result(answer)
        self.take()

    def take(self) -> None:
        talk, answer = self.done.get_nowait()
        assert answer is not None
        talk.take(answer)

    def after(self, seconds: float) -> None:
        self.now_s += seconds

    def put(self, line: bytes) -> None:
        self.outbox.put(line, 0.0, 0.0)

    def read(self) -> list[bytes]:
        """All lines that have come."""
        return list(iter(lambda: self.lines.read(0.0), None))


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Setting:
    return Setting(monkeypatch)


READ = (b"", False)


def test_one_call_brings_what_is_said_until_the_next_question(there: Setting) -> None:
    assert there.call() == [READ]
    assert there.call() == [], "the actor holds it until there is output"
    there.answer(0, 1, b"", 0, None, False)
    assert there.call() == [READ]
    there.answer(1, 2, b"tick\n", 0, None, False)
    assert there.call() == [], "it says more than it is asked"
    there.put(b"question\n")
    assert there.call() == [(b"question\n", False)]
    there.answer(2, 3, b"tick\ntick\nanswer\n", 9, None, False)
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
    there.put(bytes(PIECE_BYTES + 1))
    there.outbox.close()
    with pytest.raises(ChannelClosedError, match="its input is closed"):
        there.put(b"late\n")
    there.answer(2, 3, b"", len(b"rst\nsecond\n"), None, False)
    assert there.call() == [(bytes(PIECE_BYTES), False)], "one byte is left"
    there.answer(3, 4, b"", PIECE_BYTES, None, False)
    assert there.call() == [(b"\0", True)]
    there.answer(4, 5, b"", 1, None, False)
    there.after(PAUSE_S)
    assert there.call() == [], "the first call is still held"


def test_lines_keep_their_order_whichever_answer_comes_first(there: Setting) -> None:
    there.call()
    there.put(b"x\n")
    there.call()
    there.answer(1, 2, b"d\ne\n", 2, None, True)
    assert there.read() == []
    there.answer(0, 1, b"first\nsecon", 0, None, False)
    assert [there.lines.read(0.0) for _ in range(3)] == [b"first", b"second", b"e"]
    with pytest.raises(ChannelClosedError, match="it has closed its output"):
        there.read()
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
        with pytest.raises(HostGoneError, match=r"host a is lost: it has not answered for 1\.8 s"):
            use()


STEP_S, STEPS = 0.05, 100
ASKED_EVERY = 10  # steps, as a fleet does
SENT_AGAIN = (0, 6, 12, 24, 48)  # steps after a call, by TCP while it is not confirmed


@pytest.mark.parametrize("break_at", range(40, 40 + ASKED_EVERY))
@pytest.mark.parametrize(("steps", "survives"), [(14, True), (20, True), (40, False)])
def test_only_a_break_that_lasts_loses_a_host(
    there: Setting, break_at: int, steps: int, survives: bool
) -> None:
    answers: list[int] = []
    """For each call, when its answer comes."""
    lost_at: list[int] = []
    for now in range(STEPS):
        if now % ASKED_EVERY == 0 and not lost_at:
            there.put(b"question\n")
        for number, at in enumerate(answers):
            if at == now:
                taken = len(there.calls[number].arguments[1])
                there.answer(number, number + 1, b"tick\nanswer\n", taken, None, False)
        if there.call():
            tries = [now + each for each in SENT_AGAIN]
            answers.append(1 + next(each for each in tries if each - break_at not in range(steps)))
        there.talk.look(0.0)
        if there.talk.is_over:
            lost_at.append(now - break_at)
        there.after(STEP_S)
    assert not lost_at if survives else 1.2 < lost_at[0] * STEP_S < 2.0


def test_a_call_that_fails_loses_the_host_and_ends_what_waits_for_it(there: Setting) -> None:
    there.call()
    waits = there.actor.ask("log", 1)
    there.calls[0].answer.set_exception(RuntimeError("the worker process has died"))
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
    there.is_numbered = False
    answers = [there.actor.ask("log", 1) for _ in range(3)]
    first, second, _ = there.calls
    second._id_future.set_result(b"2")
    second.answer.set_result(b"words")
    first._id_future.set_exception(ConnectionError("the connection broke"))
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


def test_a_held_exchange_gives_way_to_the_next() -> None:
    async def talk(process: host.Process) -> list[host.Answer]:
        held = asyncio.create_task(process.exchange(b"", False, BOUND_S))
        await asyncio.sleep(0)
        return [await process.exchange(b"ping\n", False, BOUND_S), await held]

    written, held = exchanges("read word; echo got $word; read more", talk)
    assert held == (1, b"", 0, None, False)
    assert written == (2, b"got ping\n", 5, None, False)


def test_a_program_that_reads_nothing_takes_what_its_pipe_holds() -> None:
    piece = bytes(64 * 2**10)

    async def talk(process: host.Process) -> list[int]:
        taken = [len(piece)]
        while taken[-1] == len(piece):
            answer = await process.exchange(piece, False, HOLD_S)
            taken.append(answer[2])
        return taken

    assert sum(exchanges("sleep 60", talk)) <= host.PIPE_BYTES + len(piece)


@pytest.mark.parametrize(
    ("script", "reply"),
    [
        ("echo there; read word; echo got $word; read more", (b"got ping\n", 5, None, False)),
        ("exec 0<&-; echo there; sleep 60", (b"", 0, "it has closed its input", False)),
    ],
)
def test_an_exchange_brings_the_reply_to_what_it_writes(
    script: str, reply: tuple[Any, ...]
) -> None:
    async def talk(process: host.Process) -> list[host.Answer]:
        return [await process.exchange(data, False, BOUND_S) for data in (b"", b"ping\n")]

    assert exchanges(script, talk) == [(1, b"there\n", 0, None, False), (2, *reply)]


def test_an_actor_that_is_called_no_more_sends_something(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(nodes=asked.set))
    monkeypatch.setattr(host, "lift_niceness", lambda: None)

    async def talk(process: host.Process) -> tuple[bool, bool]:
        actor = host.Host()
        actor._processes[1] = process
        await actor.exchange(1, b"", False, 0.0)
        monkeypatch.setattr(host, "QUIET_S", 0.0)
        was_asked = asked.is_set()
        await actor.exchange(1, b"", False, 0.0)
        return was_asked, await asyncio.to_thread(asked.wait, BOUND_S)

    assert exchanges("sleep 60", talk) == (False, True)
