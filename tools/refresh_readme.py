#!/usr/bin/env python3
"""Puts real output into README.md and docs/: runs the commands they show and keeps what is printed.

A page marks a place with `<!-- output: NAME -->` and `<!-- end of output -->`, and ``SHOWS`` says
how each is made. Only stdout is kept: progress goes to stderr. Run it on a quiet
machine, from the virtual environment of the checkout:

    .venv/bin/python tools/refresh_readme.py [NAME…]
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import join

ROOT = Path(__file__).resolve().parent.parent
TRUELOAD = str(Path(sys.executable).parent / "trueload")
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!"


def output_of(*words: str) -> str:
    """What a command of trueload writes to stdout, whatever it ends with."""
    ended = subprocess.run([TRUELOAD, *words], stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode not in (0, 4):
        sys.exit(f"refresh_readme: trueload {' '.join(words)} ended with {ended.returncode}")
    return ended.stdout.strip("\n")


@contextmanager
def reference_server(protocol: str = "http") -> Iterator[str]:
    """The reference server, on CPU 0."""
    words = [TRUELOAD, "serve", protocol, "--listen", "127.0.0.1:8080", "--cpus", "0"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert server.stdout is not None
    server.stdout.readline()  # it says where it listens
    try:
        yield f"{protocol}://127.0.0.1:8080/"
    finally:
        server.terminate()
        server.wait()


@contextmanager
def double_server() -> Iterator[str]:
    """A server that answers each read of requests with two answers."""

    def answer(connection: socket.socket) -> None:
        with connection:
            try:
                while connection.recv(4096):
                    connection.sendall(ANSWER * 2)
            except OSError:
                return

    def accept(listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 8081)) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        yield "http://127.0.0.1:8081/"
        listener.shutdown(socket.SHUT_RDWR)


def show_http() -> str:
    """A measurement of a good server."""
    with reference_server() as url:
        return f"$ trueload http {url} -d 5s\n" + output_of("http", url, "-d", "5s")


def show_search() -> str:
    """The largest rate of a good server."""
    with reference_server() as url:
        words = ("--limit", "p99<10ms", "--cpus", "1")
        return f"$ trueload http {url} --limit 'p99<10ms' --cpus 1\n" + output_of(
            "http", url, *words
        )


def show_broadcast() -> str:
    """How many clients of a broadcast a good server carries."""
    with reference_server("ws") as url:
        words = ["ws", f"{url}ws", "--mode", "broadcast", "--step", "2000", "--limit", "p95<50ms"]
        words += ["--cpus", "1"]
        return f"$ trueload {join(words)}\n{output_of(*words)}"


def show_ab() -> str:
    """Two paths of a good server, in pairs."""
    with reference_server() as url:
        return f"$ trueload ab {url} {url}perf -d 2s\n" + output_of(
            "ab", url, f"{url}perf", "-d", "2s"
        )


def show_twice() -> str:
    """A measurement of a server that answers twice."""
    with double_server() as url:
        shown = output_of("http", url, "-c", "8", "-d", "2s")
    return f"$ trueload http {url} -c 8 -d 2s; echo $?\n{shown}\n4"


def show_demo() -> str:
    """The suite of `make demo`."""
    return "$ make demo\n" + output_of("suite", "run", "quick")


SHOWS: dict[str, Callable[[], str]] = {
    "make demo": show_demo,
    "trueload http": show_http,
    "trueload http --limit": show_search,
    "trueload ws --mode broadcast": show_broadcast,
    "trueload ab": show_ab,
    "twice": show_twice,
}


def replace(page: str, name: str, output: str) -> str:
    """The page with the output in its place."""
    begin, end = f"<!-- output: {name} -->", "<!-- end of output -->"
    pattern = re.compile(re.escape(begin) + r".*?" + re.escape(end), re.DOTALL)
    block = "\n".join(line.rstrip() for line in output.splitlines())
    return pattern.sub(lambda _: f"{begin}\n```\n{block}\n```\n{end}", page, count=1)


def page_of(name: str) -> Path:
    """The page that shows an output."""
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
    return next(page for page in pages if f"<!-- output: {name} -->" in page.read_text())


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRUELOAD_STORE"] = str(Path(folder) / "store.sqlite")
        for name in names or list(SHOWS):
            output = SHOWS[name]()
            page = page_of(name)
            page.write_text(replace(page.read_text(), name, output))


if __name__ == "__main__":
    main(sys.argv[1:])
