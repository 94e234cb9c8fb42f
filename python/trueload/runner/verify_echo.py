"""Checks a subject's echo over TCP, over real sockets, before it is measured.

How: a connection with one deadline sends and reads at the same time, so that the sides cannot block
each other. The bytes are random, from a seed, so that lost, doubled or reordered bytes show. The
contract judges.

A peer's fault never raises; it is returned as text.
"""

from __future__ import annotations

import random
import select
import socket
import time

from trueload.closeable import Closing
from trueload.subjects.contracts import Echo, EchoContract, judge_echo

ECHO_TIMEOUT_S = 10.0
SPLIT_PAUSE_S = 0.02  # long enough for the first part to be read by itself
STUCK_S = 0.1  # nothing was taken for this long: the subject waits until its echo is read
PIECE_BYTES = 256 * 1024


def verify_echo(contract: EchoContract, address: tuple[str, int]) -> str | None:
    """Return the first echo that the subject fails, in one line; None if it passes all."""
    for echo in contract.echoes:
        if fault := ask_echo(echo, address):
            return f"{echo.what}: {fault}"
    return None


def ask_echo(echo: Echo, address: tuple[str, int]) -> str | None:
    """Try one echo in its form; return what was wrong, in one line."""
    try:
        with _Connection(address) as connection:
            for seed in range(2 if echo.form == "twice" else 1):
                sent = random.Random(seed).randbytes(echo.size_bytes)
                if fault := _fault(connection, echo, sent):
                    return fault
            return None
    except TimeoutError:
        return f"no connection within {ECHO_TIMEOUT_S:g} s"
    except OSError as error:
        return f"the connection broke: {error.strerror or error}"


def _fault(connection: _Connection, echo: Echo, sent: bytes) -> str | None:
    begun = 0
    if echo.form == "split":
        begun = connection.send(sent[: len(sent) // 2])
        time.sleep(SPLIT_PAUSE_S)
    elif echo.form == "late":
        begun = connection.send(sent)
    back = connection.exchange(sent, begun, end=echo.form == "half-close")
    fault = judge_echo(sent, back)
    if fault is not None and connection.timed_out:
        return f"{fault} within {ECHO_TIMEOUT_S:g} s"
    if fault is None and connection.timed_out:
        return f"it did not end its side within {ECHO_TIMEOUT_S:g} s of the client's end"
    return fault


class _Connection(Closing):
    """A connection with one deadline for everything on it."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.deadline_s = time.monotonic() + ECHO_TIMEOUT_S
        self.socket = socket.create_connection(address, timeout=ECHO_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.timed_out = False

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes) -> int:
        """Send as much as the peer takes before its echo is read; return the number of bytes."""
        sent = 0
        while sent < len(data) and self._wait(False, True, STUCK_S)[1]:
            sent += self.socket.send(data[sent : sent + PIECE_BYTES])
        return sent

    def exchange(self, data: bytes, sent: int, *, end: bool) -> bytes:
        """Send the rest while reading the echo; return what came back.

        It reads as many bytes as were sent or, with ``end``, until the peer ends its side. One byte
        too many is enough to know.
        """
        back = bytearray()
        while len(back) < len(data) or (end and len(back) == len(data)):
            left_s = self.deadline_s - time.monotonic()
            readable, writable = self._wait(True, sent < len(data), max(left_s, 0))
            if not readable and not writable:
                self.timed_out = True
                break
            if writable:
                sent += self.socket.send(data[sent : sent + PIECE_BYTES])
                if end and sent == len(data):
                    self.socket.shutdown(socket.SHUT_WR)
            if readable:
                piece = self.socket.recv(PIECE_BYTES)
                if not piece:
                    break
                back += piece
        return bytes(back)

    def _wait(self, reading: bool, writing: bool, timeout_s: float) -> tuple[bool, bool]:
        wanted = (select.POLLIN if reading else 0) | (select.POLLOUT if writing else 0)
        poll = select.poll()
        poll.register(self.socket, wanted)
        events = sum(event for _, event in poll.poll(timeout_s * 1000))
        # On a broken connection the next send or receive raises the error.
        broken = bool(events & (select.POLLERR | select.POLLHUP))
        ready, room = bool(events & select.POLLIN), bool(events & select.POLLOUT)
        return reading and (ready or broken), writing and (room or broken)
