#!/usr/bin/env python3
"""h2spec against our HTTP/2 reference server: a part of `make conformance`.

How: the suite is a Go program, built from the versions in ``h2spec/go.sum`` into ``target/``. All
its cases, including the strict ones, run against `trueload serve http --http 2` on each driver, in
plain text and over TLS. Its reports are read as data: every case has to pass. If ``$HPACK_STORIES``
names a folder of http2jp's hpack-test-case, those run, too, in both directions.

Exit: 0 all passed, 1 a case failed, 77 the suite cannot be had (nothing was tested).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import urlsplit

# The script may be run from any folder, so it finds `tools` by its own path.
sys.path.append(str(Path(__file__).resolve().parent.parent))
from tools.conformance_server import ROOT, serving

MODULE = ROOT / "tools" / "h2spec"
FOLDER = ROOT / "target" / "conformance"

# The number of cases in version 2.2.1; a suite that ran fewer has shown nothing.
CASES = 146
DRIVERS = ("io_uring", "epoll")
NOT_THERE = 77
BUILD_S = 600.0
SUITE_S = 300.0


def build() -> Path | None:
    """Build the suite; None if there is no Go, or if its modules cannot be fetched."""
    if shutil.which("go") is None:
        return None
    suite = FOLDER / "h2spec"
    command = ["go", "build", "-mod=readonly", "-o", str(suite)]
    built = subprocess.run(
        [*command, "github.com/summerwind/h2spec/cmd/h2spec"],
        cwd=MODULE,
        env=os.environ | {"CGO_ENABLED": "0", "GOFLAGS": ""},
        stderr=subprocess.PIPE,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    sys.stderr.write(built.stderr if built.returncode else "")
    return None if built.returncode else suite


def run(suite: Path, name: str, *flags: str) -> list[str]:
    """Run all cases against a server with these flags; return a line for each one not passed."""
    report = FOLDER / f"h2spec-{name}.xml"
    report.unlink(missing_ok=True)
    tls = ["--tls", "--insecure"] if "--tls" in flags else []
    with (
        serving("http", "--http", "2", *flags) as url,
        (FOLDER / f"h2spec-{name}.log").open("wb") as log,
    ):
        port = str(urlsplit(url).port)
        subprocess.run(
            [str(suite), "--strict", "--port", port, "--junit-report", str(report), *tls],
            stdout=log,
            stderr=log,
            timeout=SUITE_S,
            check=False,
        )
    if not report.exists():
        return [f"the suite wrote no report: see {log.name}"]
    return findings(report.read_text(encoding="utf-8"))


def findings(report: str) -> list[str]:
    """Return a line for each case of a report that did not pass; none if all did."""
    cases = list(ET.fromstring(report).iter("testcase"))
    lines = [
        f"{case.get('package')} {case.get('classname')}: {outcome.tag}"
        for case in cases
        for outcome in case
        if outcome.tag in ("failure", "error", "skipped")
    ]
    if len(cases) != CASES:
        lines.append(f"{len(cases)} cases were run, not {CASES}")
    return lines


def play_stories(folder: str) -> bool:
    """Run the header-compression stories of a folder; tell whether all of them round-trip."""
    command = ["cargo", "run", "--locked", "--quiet", "-p", "trueload-wire"]
    played = subprocess.run(
        [*command, "--example", "hpack_stories", "--", folder], cwd=ROOT, check=False
    )
    return played.returncode == 0


def main() -> int:
    """Build, run, and judge."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    status = 0
    if stories := os.environ.get("HPACK_STORIES"):
        status = 0 if play_stories(stories) else 1
    suite = build()
    if suite is None:
        print("skipped: h2spec needs Go, and a way to the modules in tools/h2spec/go.mod")
        return status or NOT_THERE
    for driver in DRIVERS:
        for name, flags in (("plain", ()), ("tls", ("--tls",))):
            wrong = run(suite, f"{driver}-{name}", "--driver", driver, *flags)
            how = "over TLS" if flags else "in plain text"
            what = "passed" if not wrong else "FAILED"
            print(f"h2spec against our server {how}, {driver}: {CASES} cases, {what}", flush=True)
            print("".join(f"  {line}\n" for line in wrong), end="")
            status = 1 if wrong else status
    return status


if __name__ == "__main__":
    sys.exit(main())
