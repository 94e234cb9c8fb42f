"""The servers that we wrote on bare system calls: their answers to every kind of client.

How: each is built as the runner builds it, and started once. The cases are a table; each is sent
whole, byte by byte and in random pieces. After all of them the server must have as many open
descriptors as before.
"""

from __future__ import annotations

import os
import random
import re
import resource
import select
import signal
import socket
import struct
import subprocess
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness import ROOT, find_free_port, kill_group
from trueload.runner import needs
from trueload.runner.build import build
from trueload.runner.process import substitute
from trueload.subjects.manifest import load_subject
from trueload.subjects.selection import parse_selects, select_subjects
from waiting import wait_until

# Leaves out variants that only start more processes of the same program.
# Each with what it is built with.
RAW = {
    "c/epoll:": (),
    "c/epoll:edge": (),
    "c/io-uring:": ("liburing",),
    "d/epoll:": ("ldc",),
    "d/epoll:edge": ("ldc",),
    "d/io-uring:": ("ldc", "liburing"),
}
RAW_ECHO = {"c/epoll-echo:": (), "c/libev:": ("libev",)}
TIMEOUT_S = 10.0
RLIMIT_HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
OPEN_FILES = 4096 if RLIMIT_HARD == resource.RLIM_INFINITY else min(RLIMIT_HARD, 4096)


@dataclass(frozen=True)
class Running:
    """A running subject, and its process."""

    name: str
    address: tuple[str, int]
    pid: int

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def rss_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * 4096

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=TIMEOUT_S)


def params(table: Mapping[str, tuple[str, ...]]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.needs(*needs)) for name, needs in table.items()]


@pytest.fixture(scope="module", params=params(RAW))
def subject(request: pytest.FixtureRequest) -> Iterator[Running]:
    """One of the HTTP servers."""
    with running(request.param) as started:
        yield started


@pytest.fixture(scope="module", params=params(RAW_ECHO))
def echo_subject(request: pytest.FixtureRequest) -> Iterator[Running]:
    """One of the echo servers."""
    with running(request.param) as started:
        yield started


@contextmanager
def running(name: str) -> Iterator[Running]:
    """Start a server; skip where the kernel does not allow it."""
    [chosen] = select_subjects(ROOT / "subjects", parse_selects([name]))
    assert needs.missing(chosen) is None
    built = build(chosen, trueload_command=("trueload",))
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, RLIMIT_HARD))
    port = find_free_port()
    words = substitute(chosen.manifest.run, {"host": "127.0.0.1", "port": str(port)}, ())
    process = subprocess.Popen(
        words, cwd=built.folder, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield Running(chosen.name, wait_until_it_listens(process, port), process.pid)
        process.terminate()
        assert process.wait(5) == 0, "SIGTERM ends it in order"
    finally:
        kill_group(process)


def wait_until_it_listens(process: subprocess.Popen[str], port: int) -> tuple[str, int]:
    def listens() -> bool:
        if process.poll() is not None:
            output = process.stderr.read() if process.stderr else ""
            if "io_uring" in output:
                pytest.skip(f"no io_uring here: {output.strip()}")
            raise AssertionError(f"ended with {process.returncode}: {output}")
        with socket.socket() as caller:
            return caller.connect_ex(("127.0.0.1", port)) == 0

    wait_until(listens, "it listens")
    return ("127.0.0.1", port)


def read_replies(peer: socket.socket, count: int) -> list[tuple[int, bytes]]:
    """Return status and body of `count` replies.

    Raises an AssertionError if there are fewer, or further bytes.
    """
    data = b""
    found: list[tuple[int, bytes]] = []
    while len(found) < count:
        head, blank, rest = data.partition(b"\r\n\r\n")
        length = re.search(rb"\r\nContent-Length: (\d+)", head)
        if blank and length and len(rest) >= int(length[1]):
            size = int(length[1])
            found.append((int(head.split()[1]), rest[:size]))
            data = rest[size:]
            continue
        part = peer.recv(65536)
        assert part, f"closed after {len(found)} of {count} replies and {data!r}"
        data += part
    assert not data, f"more than {count} replies: {data[:80]!r}"
    return found


GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def with_header(line: bytes) -> bytes:
    return b"GET / HTTP/1.1\r\nHost: a\r\n" + line + b"\r\n\r\n"


# (the test's name, what is sent, the statuses of the replies, whether the connection stays)
CASES: list[tuple[str, bytes, list[int], bool]] = [
    ("one request", GET, [200], True),
    ("three at once", GET * 3, [200] * 3, True),
    (
        "other things",
        GET.replace(b"/ ", b"/perf ", 1) + GET.replace(b"/", b"/x", 1),
        [200, 404],
        True,
    ),
    ("lines that end in LF alone", GET.replace(b"\r", b""), [200], True),
    ("an empty line before a request", b"\r\n" + GET + b"\r\n" + GET, [200] * 2, True),
    ("HTTP/1.0", GET.replace(b"1.1", b"1.0"), [200], False),
    (
        "HTTP/1.0 that stays",
        with_header(b"connection: Keep-Alive").replace(b"1.1", b"1.0"),
        [200],
        True,
    ),
    ("the client's close", with_header(b"CONNECTION:close"), [200], False),
    ("a close in a list", with_header(b"Connection: x ,\tclose ") + GET, [200], False),
    ("no close in a name", with_header(b"Connection: disclose"), [200], True),
    ("what follows a close", GET + with_header(b"Connection: close") + GET, [200] * 2, False),
    ("a body", with_header(b"Content-Length: 5") + b"hello" + GET, [200] * 2, True),
    (
        "a body like a request",
        with_header(b"content-length: %d" % len(GET)) + GET * 2,
        [200] * 2,
        True,
    ),
    ("another method", b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi" + GET, [405, 200], True),
    ("HEAD", b"HEAD / HTTP/1.1\r\n\r\n" + GET, [405, 200], True),
    ("chunks", with_header(b"Transfer-Encoding: chunked") + b"0\r\n\r\n", [501], False),
    ("both lengths", with_header(b"Content-Length: 3\r\nTransfer-Encoding: chunked"), [501], False),
    ("two lengths", with_header(b"Content-Length: 3\r\nContent-Length: 4"), [400], False),
    *(
        (f"a length of {value!r}", with_header(b"Content-Length: " + value), [400], False)
        for value in (b"", b"-1", b"+1", b"0x10", b"1e3", b"1 2", b"9" * 19, b"9" * 40)
    ),
    ("garbage", b"\x00\xff\x16\x03\x01 what\r\n\r\n", [400], False),
    ("the wrong protocol", GET.replace(b"HTTP/1.1", b"HTTP/2.0"), [400], False),
    ("no version", b"GET /\r\n\r\n", [400], False),
    ("garbage after a request", GET + b"???\r\n\r\n" + GET, [200, 400], False),
    ("an endless line", b"GET /" + b"a" * 20_000, [431], False),
    ("endless headers", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 4_000, [431], False),
    ("a header of 8 KB", with_header(b"a: " + b"b" * 8_000), [200], True),
    (
        "a body of 100 KB",
        with_header(b"Content-Length: 100000") + b"x" * 100_000 + GET,
        [200] * 2,
        True,
    ),
]


def pieces_of(sent: bytes, how: str, seed: int) -> Sequence[bytes]:
    if how == "whole":
        return [sent]
    chance = random.Random(seed)
    cuts = sorted(chance.sample(range(1, len(sent)), min(7, len(sent) - 1)))
    if how == "bytes" and len(sent) < 500:
        cuts = list(range(1, len(sent)))
    return [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True)]


@pytest.mark.parametrize("how", ["whole", "bytes", "pieces"])
def test_every_kind_of_request_is_answered_right_however_it_is_split(
    subject: Running, how: str
) -> None:
    for seed, (what, sent, statuses, stays) in enumerate(CASES):
        with subject.connect() as peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in pieces_of(sent, how, seed):
                peer.sendall(piece)
            replies = read_replies(peer, len(statuses))
            assert [status for status, _ in replies] == statuses, f"{what}, {how}"
            if stays:
                peer.sendall(GET)
                assert read_replies(peer, 1) == [(200, b"Hello, World!")], f"{what}, {how}: next"
            else:
                assert peer.recv(1) == b"", f"{what}, {how}: the connection is closed in order"


def test_a_client_that_reads_late_gets_every_answer_in_order_and_costs_little(
    subject: Running,
) -> None:
    perf = GET.replace(b"/ ", b"/perf ", 1)
    answers = b"".join(answer_to(subject, request) for request in (GET, perf))
    before_bytes = subject.rss_bytes()
    with subject.connect() as peer:
        sent = send_until_stuck(peer, GET + perf)
        assert subject.rss_bytes() - before_bytes < 8 << 20, f"after {sent} bytes unread"
        # The last request may be incomplete.
        whole = sent // len(GET + perf)
        peer.settimeout(TIMEOUT_S)
        with peer.makefile("rb") as stream:
            for number in range(whole):
                assert stream.read(len(answers)) == answers, f"pair {number}"


def answer_to(subject: Running, request: bytes) -> bytes:
    with subject.connect() as peer:
        peer.sendall(request)
        return peer.recv(65536)


def send_until_stuck(peer: socket.socket, pattern: bytes) -> int:
    """Send the pattern over and over without reading, until the server takes no more for a while.

    Returns the number of bytes taken.
    """
    peer.setblocking(False)
    sent = 0
    while select.select([], [peer], [], 0.3)[1]:
        sent += peer.send((pattern * 1000)[sent % len(pattern) :])
    return sent


def test_a_client_that_ends_its_side_still_gets_its_answers(subject: Running) -> None:
    with subject.connect() as peer:
        peer.sendall(GET * 20 + b"GET / HT")
        peer.shutdown(socket.SHUT_WR)
        assert len(read_replies(peer, 20)) == 20
        assert peer.recv(1) == b""


def test_clients_that_go_in_any_way_leave_nothing_behind(subject: Running) -> None:
    with subject.connect() as peer:
        peer.sendall(GET)
        read_replies(peer, 1)
    before = settled(subject)
    # One answer; more answers than it may send; and much that it has not read when the reset comes.
    come_and_go(subject, [GET, GET * 3000, with_header(b"a: " + b"b" * 8_000)[:7_000] * 50])
    assert_comes_down(subject, before)


def test_clients_of_an_echo_that_go_in_any_way_leave_nothing_behind(echo_subject: Running) -> None:
    with echo_subject.connect() as peer:
        peer.sendall(GET)
        assert peer.recv(len(GET)) == GET
    before = settled(echo_subject)
    come_and_go(echo_subject, [b"x", b"y" * 300_000])
    assert_comes_down(echo_subject, before)


def come_and_go(subject: Running, payloads: Sequence[bytes]) -> None:
    """Connect clients that send some of the payloads or none, read nothing, and close.

    Half of them close by a reset instead of in order.
    """
    for number in range(600):
        peer = subject.connect()
        peer.setblocking(False)
        try:
            for _ in range(number % 5):
                peer.send(payloads[number % len(payloads)])
        except BlockingIOError:
            pass
        if number % 2:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()


def settled(subject: Running) -> int:
    """Return its number of open descriptors, once 50 looks in a row agree."""
    looks = deque([-1], maxlen=50)

    def agree() -> bool:
        looks.append(subject.descriptors())
        return len(looks) == looks.count(looks[-1]) == looks.maxlen

    wait_until(agree, lambda: f"the number of open descriptors settles: {looks}")
    return looks[-1]


def assert_comes_down(subject: Running, before: int) -> None:
    """Wait until it has no more open descriptors than before."""
    wait_until(
        lambda: subject.descriptors() <= before,
        lambda: f"{before} open descriptors as before, of {subject.descriptors()}",
    )


def test_more_clients_at_once_than_it_has_room_for_are_all_served(subject: Running) -> None:
    # More than the buffers that the io_uring loops share: a receive that finds none must be
    # repeated.
    count = min(2000, OPEN_FILES - 200)
    os.kill(subject.pid, signal.SIGSTOP)
    try:
        peers = [subject.connect() for _ in range(count)]
        for peer in peers:
            peer.sendall(GET)
    finally:
        os.kill(subject.pid, signal.SIGCONT)
    for peer in peers:
        assert read_replies(peer, 1) == [(200, b"Hello, World!")]
        peer.sendall(GET[:9])
    for peer in peers:
        peer.sendall(GET[9:])
    for peer in peers:
        with peer:
            assert read_replies(peer, 1) == [(200, b"Hello, World!")]


def test_every_variant_listed_here_exists() -> None:
    for name in (*RAW, *RAW_ECHO):
        folder, _, variant = name.partition(":")
        assert variant in {subject.variant for subject in load_subject(ROOT / "subjects" / folder)}
