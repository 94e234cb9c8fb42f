#!/usr/bin/env python3
"""Puts real output and pictures into README.md and docs/, by running the commands that they show.

A page marks a place with `<!-- output: NAME -->` and `<!-- end of output -->`, and ``SHOWS`` says
how each is made. Pages may share a name, and then show the same output. Of a command that measures
only stdout is kept, as progress goes to stderr; of a command that fails, what it says on stderr.
Run it on a quiet machine, from the virtual environment of the checkout:

    .venv/bin/python tools/refresh_readme.py [NAME…]
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from shlex import join

sys.path.append(str(Path(__file__).resolve().parent.parent))
from tools import peers_picture, twice_picture
from tools.drawing import Picture, reworded
from tools.example_servers import TRUELOAD, reference_server

ROOT = Path(__file__).resolve().parent.parent


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


def show_first() -> str:
    """The first measurement that a reader of the README makes."""
    with reference_server("http", "--work", "100us") as url:
        return shown("http", url, "-d", "5s")


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
        return shown("compare", url, f"{url}perf", "-d", "2s")


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


SHOWS: dict[str, Callable[[], str]] = {
    "first run": show_first,
    "trueload http": show_http,
    "trueload http --limit": show_search,
    "trueload ws --mode broadcast": show_broadcast,
    "trueload compare": show_ab,
    "too few streams": show_http2,
    "not HTTP/2": show_not_http2,
    "untrusted certificate": show_untrusted,
    "lost metrics": show_export_lost,
    "mistake in a suite": show_mistake,
}
PICTURES: dict[str, Callable[[], Picture]] = {
    "answers-twice": twice_picture.picture,
    "cpu-per-request": peers_picture.picture,
}
"""What draws each `docs/images/NAME.svg` of the README."""


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


def draw(name: str) -> None:
    """Draw a picture of the README, and put its figures into the words beside it."""
    address, readme, picture = f"docs/images/{name}.svg", ROOT / "README.md", PICTURES[name]()
    (ROOT / address).write_text(picture.svg)
    readme.write_text(reworded(readme.read_text(), address, picture.words))


def show(name: str) -> None:
    """Put an output into each page that shows it."""
    output = SHOWS[name]()
    for page in pages_of(name):
        page.write_text(replace(page.read_text(), name, output))


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRUELOAD_STORE"] = str(Path(folder) / "store.sqlite")
        for name in names or [*SHOWS, *PICTURES]:
            (draw if name in PICTURES else show)(name)


if __name__ == "__main__":
    main(sys.argv[1:])
