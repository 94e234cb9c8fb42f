#!/usr/bin/env python3
"""Makes docs/images/live-http.svg: the live view of a real run, in a terminal of 100x30.

How: it loads `trueload serve http` and renders the last view before the window's end as the live
view does. The picture loads nothing: its font is the reader's own monospaced one. Run it on a quiet
machine, from the virtual environment of the checkout:

    .venv/bin/python tools/live_picture.py
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from trueload.protocol.plan import Duration
from trueload.report.course import Course
from trueload.report.draw import frame, inside
from trueload.report.heading import Heading
from trueload.report.panel import load_rows
from trueload.report.rows import Row
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.trial.run import run_trial
from trueload.trial.spec import Load, Progress, TrialSpec

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "live-http.svg"
WIDTH, HEIGHT = 100, 30
WINDOW_S, SHOWN_S = 20, 17
AUTHORITY = "127.0.0.1:8080"
FONTS = re.compile(r"\s*@font-face \{\{.*?\n    \}\}", re.DOTALL)
COMMENTS = re.compile(r"\s*<!--.*?-->", re.DOTALL)


def svg_format() -> str:
    """Return rich's template of a picture, without comments and fonts that it would load."""
    plain = COMMENTS.sub("", FONTS.sub("", CONSOLE_SVG_FORMAT))
    return plain.replace("Fira Code, monospace", "monospace")


def last_rows(spec: TrialSpec) -> list[Row]:
    """Run a trial; return what the live view shows shortly before its end."""
    course, heading = Course(), Heading(f"trueload http {spec.url}")
    rows: list[Row] = []

    def receive(progress: Progress) -> None:
        if progress.record is not None:
            return
        course.receive(progress, is_open=spec.load.is_open)
        if progress.phase == "window" and progress.elapsed_ns <= SHOWN_S * 10**9:
            room = inside(WIDTH, HEIGHT, alone=True)
            rows[:] = load_rows(spec, progress, course, heading, room)

    run_trial(spec, on_progress=receive)
    return rows


def picture() -> str:
    """Return the picture of a run against the reference server, which fails some requests."""
    words = [sys.executable, "-m", "trueload", "serve", "http", "--listen", AUTHORITY]
    words += ["--cpus", "0", "--error-share", "0.05%"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert server.stdout is not None
        server.stdout.readline()  # it prints its address
        spec = TrialSpec(
            url=f"http://{AUTHORITY}/",
            addresses=(AUTHORITY,),
            traffic=Traffic(request=Request(host=AUTHORITY)),
            load=Load(stop=Duration(ns=WINDOW_S * 10**9)),
        )
        rows = last_rows(spec)
    finally:
        server.terminate()
        server.wait()
    console = Console(record=True, file=io.StringIO(), width=WIDTH, color_system="standard")
    console.print(frame(rows, f"trueload http {spec.url}", WIDTH))
    title = f"trueload http {spec.url} -d {WINDOW_S}s"
    text = console.export_svg(title=title, code_format=svg_format(), unique_id="live")
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture())
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} bytes")
