#!/usr/bin/env python3
"""Makes the pictures of reports in docs/images, as a browser shows them.

It opens the reports of stored runs in Debian's Chromium:

    .venv/bin/python tools/report_picture.py
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
# For each picture: the run, the first part of its page that it shows, and its height.
PICTURES = {
    "report": ("tests/golden_report/suite.json", "header.top", 900),
    "report-compared": ("tests/golden_report/ab.json", "#compared", 640),
    "report-charts": ("tests/golden_report/stages.json", "#load-1", 800),
}
WIDTH = 1180
# A picture with more colours is twice as large, and looks the same.
COLOURS, APART = 256, 150


def take_picture(page_file: Path, first: str, height: int, picture: Path) -> None:
    """Save a part of the page, in its light colours."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("error: there is no chromium\nhint: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        size = {"width": WIDTH, "height": height}
        page = browser.new_page(viewport=size, color_scheme="light")  # type: ignore[arg-type]
        page.goto(page_file.as_uri())
        top = page.evaluate(f"document.querySelector('{first}').getBoundingClientRect().top")
        clip = {"x": 0, "y": max(top - 16, 0), "width": WIDTH, "height": height}
        shot = page.screenshot(full_page=True, clip=clip)  # type: ignore[arg-type]
        browser.close()
    picture.write_bytes(with_few_colours(shot))


def with_few_colours(png: bytes) -> bytes:
    """Return a PNG of three bytes a pixel as one with a palette."""
    width, rows = pixel_rows(png)
    pixels = [[bytes(row[at : at + 3]) for at in range(0, 3 * width, 3)] for row in rows]
    counts = Counter(pixel for row in pixels for pixel in row)
    palette: list[bytes] = []
    for colour, _ in counts.most_common():
        if len(palette) < COLOURS and min(distances(colour, palette), default=APART) >= APART:
            palette.append(colour)
    places = {}
    for colour in counts:
        far = distances(colour, palette)
        places[colour] = far.index(min(far))
    data = b"".join(b"\0" + bytes(map(places.__getitem__, row)) for row in pixels)
    head = struct.pack(">IIBBBBB", width, len(rows), 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(data, 9)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in (*chunks, (b"IEND", b"")))


def distances(colour: bytes, palette: list[bytes]) -> list[int]:
    """Return how far a colour is from each of a palette."""
    return [sum((a - b) ** 2 for a, b in zip(colour, of, strict=True)) for of in palette]


def chunk(name: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def pixel_rows(png: bytes) -> tuple[int, list[bytearray]]:
    """Return the width of a PNG of three bytes a pixel, and its rows (PNG specification, 9.2)."""
    at, data, width = 8, b"", 0
    while at < len(png):
        size, name = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + size]
        if name == b"IHDR":
            width = struct.unpack(">I", body[:4])[0]
            assert body[8:10] == b"\x08\x02", "three bytes a pixel"
        data += body if name == b"IDAT" else b""
        at += 12 + size
    raw, stride = zlib.decompress(data), 3 * width
    rows, above = [], bytearray(stride)
    for start in range(0, len(raw), stride + 1):
        row = bytearray(raw[start + 1 : start + 1 + stride])
        unfilter(raw[start], row, above)
        rows.append(row)
        above = row
    return width, rows


def unfilter(kind: int, row: bytearray, above: bytearray) -> None:
    """Undo the filter of a row."""
    for at in range(len(row)):
        left = row[at - 3] if at >= 3 else 0
        corner = above[at - 3] if at >= 3 else 0
        row[at] = (row[at] + predicted(kind, left, above[at], corner)) & 255


def predicted(kind: int, left: int, up: int, corner: int) -> int:
    """Return what a filter predicts of a byte."""
    if kind < 4:
        return (0, left, up, (left + up) // 2)[kind]
    far = [abs(left + up - corner - each) for each in (left, up, corner)]
    return (left, up, corner)[far.index(min(far))]


def main() -> None:
    """Write the reports, and take their pictures."""
    for name, (run, first, height) in PICTURES.items():
        picture = ROOT / "docs" / "images" / f"{name}.png"
        with tempfile.TemporaryDirectory() as folder:
            page_file = Path(folder) / "report.html"
            command = [sys.executable, "-m", "trueload", "report", run]
            subprocess.run([*command, "--output", str(page_file)], check=True, cwd=ROOT)
            take_picture(page_file, first, height, picture)
        print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
