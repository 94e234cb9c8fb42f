#!/usr/bin/env python3
"""Puts real output into README.md and docs/: runs the commands they show and keeps what is printed.

A page marks a place with `<!-- output: NAME -->` and `<!-- end of output -->`, and ``SHOWS`` says
how each is made. Pages may share a name, and then show the same output. Of a command that measures
only stdout is kept, as progress goes to stderr; of a command that fails, what it says on stderr.
Run it on a quiet machine, from the virtual environment of the checkout:

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


def shown(*words: str) -> str:
    """A command, as typed into a shell, and what it writes to stdout."""
    return f"$ trueload {join(words)}\n{output_of(*words)}"


def refused(*words: str, folder: str = ".") -> str:
    """A command that measures nothing, and what it writes to stderr."""
    ended = subprocess.run(
        [TRUELOAD, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    if ended.returncode not in (2, 3):
        sys.exit(f"refresh_readme: trueload {' '.join(words)} ended with {ended.returncode}")
    return f"$ trueload {join(words)}\n{ended.stderr.strip()}"


@contextmanager
def reference_server(protocol: str = "http", *flags: str, port: int = 8080) -> Iterator[str]:
    """The reference server, on CPU 0."""
    words = [TRUELOAD, "serve", protocol, "--listen", f"127.0.0.1:{port}", "--cpus", "0", *flags]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert server.stdout is not None
    scheme = server.stdout.readline().split()[-1].partition(":")[0]  # it says where it listens
    try:
        yield f"{scheme}://127.0.0.1:{port}/"
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
        return shown("http", url, "-d", "5s")


def show_search() -> str:
    """The largest rate of a good server."""
    with reference_server() as url:
        return shown("http", url, "--limit", "p99<10ms", "--cpus", "1")


def show_broadcast() -> str:
    """How many clients of a broadcast a good server carries."""
    with reference_server("ws") as url:
        words = ("--mode", "broadcast", "--step", "2000", "--limit", "p95<50ms", "--cpus", "1")
        return shown("ws", f"{url}ws", *words)


def show_ab() -> str:
    """Two paths of a good server, in pairs."""
    with reference_server() as url:
        return shown("ab", url, f"{url}perf", "-d", "2s")


def show_http2() -> str:
    """The lines of HTTP/2, of a server with few streams that never answers some requests."""
    flags = ("--http", "2", "--max-streams", "10", "--stall-share", "0.001%")
    names = ("streams", "waits", "headers", "ended")
    with reference_server("http", *flags) as url:
        words = ["http", url, "--http", "2", "-c", "2", "--streams", "20", "--timeout", "500ms"]
        words += ["-d", "2s"]
        lines = [line for line in output_of(*words).splitlines() if line.startswith(names)]
    served = f"$ trueload serve http {join(flags)} --cpus 0 &"
    asked = f"$ trueload {join(words)} | grep -E '^({'|'.join(names)})'"
    return "\n".join([served, asked, *lines])


def show_not_http2() -> str:
    """A server that speaks HTTP/1.1 alone, asked for HTTP/2."""
    with reference_server() as url:
        return refused("http", url, "--http", "2", "--quiet")


def show_untrusted() -> str:
    """A server whose certificate nobody has signed."""
    with reference_server("http", "--tls", port=8443) as url:
        return refused("http", url, "--quiet")


def show_export_lost() -> str:
    """The warning of a run whose metrics nobody takes."""
    with reference_server() as url:
        words = ("http", url, "-d", "2s", "--otlp", "http://127.0.0.1:4318")
        ended = subprocess.run([TRUELOAD, *words], capture_output=True, text=True, check=False)
    warnings = [line for line in ended.stderr.splitlines() if line.startswith("warning: ")]
    return "\n".join([f"$ trueload {join(words)}", *warnings])


def show_mistake() -> str:
    """A suite that lacks a key."""
    with tempfile.TemporaryDirectory() as folder:
        words = [TRUELOAD, "suite", "new", "my-api"]
        subprocess.run(words, cwd=folder, capture_output=True, check=True)
        path = Path(folder) / "suites" / "my-api.toml"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith("about")))
        return refused("suite", "run", "my-api", folder=folder).replace(folder, "…")


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
    "too few streams": show_http2,
    "not HTTP/2": show_not_http2,
    "untrusted certificate": show_untrusted,
    "lost metrics": show_export_lost,
    "mistake in a suite": show_mistake,
}


def replace(page: str, name: str, output: str) -> str:
    """The page with the output in its place."""
    begin, end = f"<!-- output: {name} -->", "<!-- end of output -->"
    pattern = re.compile(re.escape(begin) + r".*?" + re.escape(end), re.DOTALL)
    block = "\n".join(line.rstrip() for line in output.splitlines())
    return pattern.sub(lambda _: f"{begin}\n```\n{block}\n```\n{end}", page, count=1)


def pages_of(name: str) -> list[Path]:
    """The pages that show an output."""
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
    return [page for page in pages if f"<!-- output: {name} -->" in page.read_text()]


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRUELOAD_STORE"] = str(Path(folder) / "store.sqlite")
        for name in names or list(SHOWS):
            output = SHOWS[name]()
            for page in pages_of(name):
                page.write_text(replace(page.read_text(), name, output))


if __name__ == "__main__":
    main(sys.argv[1:])
