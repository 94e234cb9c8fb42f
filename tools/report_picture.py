#!/usr/bin/env python3
"""Makes docs/images/report.png: the top of a report, as a browser shows it.

It opens the report of a stored run, the last one by default, in Debian's Chromium:

    .venv/bin/trueload suite run quick
    .venv/bin/python tools/report_picture.py [RUN]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "report.png"
WIDTH, HEIGHT = 1280, 1120


def take_picture(page_file: Path, picture: Path) -> None:
    """Save what a window of that size shows of the page, in its light colours."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("error: there is no chromium\nhint: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        size = {"width": WIDTH, "height": HEIGHT}
        page = browser.new_page(viewport=size, color_scheme="light")  # type: ignore[arg-type]
        page.goto(page_file.as_uri())
        page.screenshot(path=picture)
        browser.close()


def main(run: str = "last") -> None:
    """Write the report of a stored run, and take its picture."""
    with tempfile.TemporaryDirectory() as folder:
        page_file = Path(folder) / "report.html"
        words = [sys.executable, "-m", "trueload", "report", run, "--output", str(page_file)]
        subprocess.run(words, check=True, cwd=ROOT)
        take_picture(page_file, PICTURE)
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:2])
