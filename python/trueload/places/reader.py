"""Reads the output of all programs that this machine runs for the front, in one thread.

How: a thread for each pipe would be woken for each line of each host, and all of them would wait
for one lock of the interpreter. The thread begins with the first pipe, and ends with the last.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections.abc import Callable
from typing import IO, NamedTuple

READ_BYTES = 2**16
FULL_S = 0.02  # until one that takes nothing more is asked again


class Pipe(NamedTuple):
    """A file, and who takes what it brings; ``add`` returns False to take no more of it, and
    nothing is read while ``is_full``. After the last bytes the file is closed, and ``end`` called,
    in a thread of its own: it may look for the reason."""

    file: IO[bytes] | socket.socket
    add: Callable[[bytes], bool]
    end: Callable[[], None]
    is_full: Callable[[], bool] = lambda: False


class Reader:
    """Reads many pipes. None of its callbacks but ``end`` may wait for anything."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin again, as a forked process has to: the thread is in the one before it."""
        self._pipes: dict[int, Pipe] = {}
        self._full: set[int] = set()
        self._epoll: select.epoll | None = None
        self._changing = threading.Lock()

    def watch(self, pipe: Pipe) -> None:
        """Read a pipe until its end."""
        with self._changing:
            if self._epoll is None:
                self._epoll = select.epoll()
                threading.Thread(
                    target=self._go_on, args=(self._epoll,), name="reader", daemon=True
                ).start()
            self._pipes[pipe.file.fileno()] = pipe
            self._epoll.register(pipe.file.fileno(), select.EPOLLIN)

    def _go_on(self, epoll: select.epoll) -> None:
        while True:
            for descriptor, _ in epoll.poll(FULL_S if self._full else None):
                self._read(epoll, descriptor)
            for descriptor in [each for each in self._full if not self._pipes[each].is_full()]:
                self._full.remove(descriptor)
                epoll.register(descriptor, select.EPOLLIN)
            with self._changing:
                if not self._pipes:
                    self._epoll = None
                    epoll.close()
                    return

    def _read(self, epoll: select.epoll, descriptor: int) -> None:
        pipe = self._pipes[descriptor]
        if pipe.is_full():
            self._full.add(descriptor)
            epoll.unregister(descriptor)
            return
        chunk = b""
        with contextlib.suppress(OSError):
            chunk = os.read(descriptor, READ_BYTES)
        if chunk and pipe.add(chunk):
            return
        epoll.unregister(descriptor)
        with self._changing:
            del self._pipes[descriptor]
            pipe.file.close()
        threading.Thread(target=pipe.end, name="reader-end", daemon=True).start()


_reader = Reader()
watch = _reader.watch
os.register_at_fork(after_in_child=_reader.forget)
