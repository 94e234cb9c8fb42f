"""One thread reads many pipes: in order, none while it is full, each until its end."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from io import FileIO

import pytest
from trueload.places.reader import Pipe, Reader

WAIT_S = 30.0


@dataclass
class Taker:
    """Takes what a pipe brings, while it has ``room``."""

    room: int = 1_000_000
    taken: bytes = b""
    refuses: bytes = b"refused"
    changed: threading.Condition = field(default_factory=threading.Condition)
    ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        reading, self.writing = os.pipe()
        self.file = FileIO(reading)

    def add(self, chunk: bytes) -> bool:
        with self.changed:
            self.taken += chunk
            self.changed.notify_all()
        return chunk != self.refuses

    def is_full(self) -> bool:
        return len(self.taken) >= self.room

    def pipe(self) -> Pipe:
        return Pipe(self.file, self.add, self.ended.set, self.is_full)

    def await_taken(self, wanted: bytes) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.taken == wanted, WAIT_S), self.taken

    def close(self) -> None:
        os.close(self.writing)
        assert self.ended.wait(WAIT_S)


@pytest.fixture
def reader() -> Reader:
    return Reader()


def test_each_pipe_is_read_in_order_until_its_end(reader: Reader) -> None:
    takers = [Taker() for _ in range(20)]
    for taker in takers:
        reader.watch(taker.pipe())
    for part in (b"one ", b"two ", b"three"):
        for taker in takers:
            os.write(taker.writing, part)
    for taker in takers:
        taker.close()
        assert taker.taken == b"one two three"
        assert taker.file.closed


def test_nothing_is_read_while_it_is_full_and_others_are(reader: Reader) -> None:
    full, other = Taker(room=4), Taker()
    for taker in (full, other):
        reader.watch(taker.pipe())
    os.write(full.writing, b"four")
    full.await_taken(b"four")
    os.write(full.writing, b" more")
    os.close(full.writing)
    for number in range(1, 4):
        os.write(other.writing, b"x")
        other.await_taken(b"x" * number)
    assert full.taken == b"four"
    assert not full.ended.is_set()
    full.room = 1_000
    full.await_taken(b"four more")
    assert full.ended.wait(WAIT_S)
    other.close()


def test_one_that_takes_no_more_is_closed(reader: Reader) -> None:
    taker = Taker()
    reader.watch(taker.pipe())
    os.write(taker.writing, taker.refuses)
    assert taker.ended.wait(WAIT_S)
    assert taker.file.closed
    with pytest.raises(BrokenPipeError):
        os.write(taker.writing, b"more")
    os.close(taker.writing)


def test_an_end_that_takes_its_time_holds_up_nobody(reader: Reader) -> None:
    slow, other = Taker(), Taker()
    held = threading.Event()

    def take_time() -> None:
        held.wait()

    reader.watch(slow.pipe()._replace(end=take_time))
    reader.watch(other.pipe())
    os.close(slow.writing)
    os.write(other.writing, b"on")
    other.await_taken(b"on")
    held.set()
    other.close()


def test_the_thread_ends_with_the_last_pipe_and_begins_with_the_next(reader: Reader) -> None:
    for _ in range(3):
        taker, before = Taker(), set(threading.enumerate())
        reader.watch(taker.pipe())
        (thread,) = set(threading.enumerate()) - before
        taker.close()
        thread.join(WAIT_S)
        assert not thread.is_alive()


def test_a_forked_process_reads_its_own(reader: Reader) -> None:
    kept = Taker()
    reader.watch(kept.pipe())
    child = os.fork()
    if not child:
        reader.forget()
        own = Taker()
        reader.watch(own.pipe())
        os.write(own.writing, b"own")
        own.close()
        os._exit(0 if own.taken == b"own" else 1)
    assert os.waitpid(child, 0)[1] == 0
    kept.close()
