"""Reports in a real browser: Debian's Chromium, driven by Playwright, without the network.

A page is viewed as readers do: wide, on a phone, in dark mode, on paper. Screenshots are left in
the folder of each test.
"""

from __future__ import annotations

import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from report_layout import COLLISIONS, LOWEST_CONTRAST, OVERFLOWS, SMALLEST_PX
from report_samples import HOSTILE, NAMES, hostile, html, put, read
from trueload.published.tables import broadcast_curves
from trueload.report.html.charts.crowd import AROUND
from trueload.report.html.charts.theme import COLOURS, GRID, INK, PAPER, QUIET, SERIES
from trueload.store.runs import Store

pytestmark = pytest.mark.needs("chromium")
PHONE_PX, TABLET_PX, DESK_PX = 390, 768, 1280
HEIGHT_PX = 900
LEAST_GLYPHS = 400  # about 80 words
PAPER_PX = 688  # A4 without its margins, at 96 to the inch
CHART_TEXT_PX_MIN = 12
# Chromium 156 makes no picture of a page of 74,000 px, but hangs. All pages but the one with the
# longest text are below 10,000 px.
PICTURE_PX_MOST = 12_000
# Web Content Accessibility Guidelines 2.2, 1.4.3: minimum contrast of text.
CONTRAST_MIN = 4.5

# For each drawing: its box, and how many of its shapes have a size and a colour of the data.
DRAWINGS = """colours => [...document.querySelectorAll('svg.chart')].map(svg => {
  const box = svg.getBoundingClientRect();
  const shapes = [...svg.querySelectorAll('path,rect,line,circle')].filter(shape => {
    const size = shape.getBBox();
    const colour = [shape.getAttribute('fill'), shape.getAttribute('stroke')];
    const data = colour.some(each => colours.includes(each) || /^rgb/.test(each || ''));
    return data && (size.width > 0 || size.height > 0);
  });
  return {width: box.width, height: box.height, shapes: shapes.length,
          texts: svg.querySelectorAll('text').length};
})"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    # Chromium's own sandbox needs privileges that containers lack, and refuses root.
    flags = ["--no-sandbox"]
    path = shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()


class Looked:
    """An open page, with all that it did: messages, errors, requests, dialogs."""

    def __init__(self, browser: Any, path: Path, *, width: int = DESK_PX, **context: Any) -> None:
        viewport = {"width": width, "height": HEIGHT_PX}
        self.context = browser.new_context(viewport=viewport, **context)
        self.page = self.context.new_page()
        self.did: list[str] = []
        self.page.on("console", lambda message: self.did.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.did.append(f"error: {error}"))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", self._note)
        self.own = path.as_uri()
        self.page.goto(self.own)

    def widen(self, width: int) -> None:
        """Change the width of the window."""
        self.page.set_viewport_size({"width": width, "height": HEIGHT_PX})

    def picture(self, path: Path) -> None:
        """Save a picture of the whole page, or of its beginning if it is very long."""
        height = self.page.evaluate("document.documentElement.scrollHeight")
        self.page.screenshot(path=path, full_page=height <= PICTURE_PX_MOST)

    def _dismiss(self, dialog: Any) -> None:
        self.did.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note(self, request: Any) -> None:
        if request.url != self.own:
            self.did.append(f"request: {request.url}")

    def __enter__(self) -> Looked:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


Write = Callable[[str], Path]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Write:
    """Return a function that writes the page of a real run, once for all tests."""
    folder = tmp_path_factory.mktemp("written")
    return cache(lambda name: write(folder, name))


def write(folder: Path, name: str, payload: str | None = None) -> Path:
    """Write the page of a real run, with a payload in its texts if one is given."""
    with Store.open(folder / f"{name}.sqlite3") as store:
        value = read(name) if payload is None else hostile(read(name), payload)
        text = html(store, put(store, value))
    path = folder / f"{name}.html"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", NAMES)
def test_every_chart_is_drawn_and_nothing_is_asked_of_the_network(
    chromium: Any, written: Write, tmp_path: Path, name: str
) -> None:
    colours = [light for light, _ in COLOURS if light not in (INK[0], QUIET[0], GRID[0], PAPER[0])]
    with Looked(chromium, written(name)) as looked:
        drawings = looked.page.evaluate(DRAWINGS, colours)
        looked.picture(tmp_path / f"{name}.png")
        assert looked.did == []
    assert drawings
    for drawing in drawings:
        assert drawing["width"] > 200, drawing
        assert drawing["height"] > 40, drawing
        assert drawing["shapes"] >= 1, "there is an axis, but no data"
        assert drawing["texts"] >= 2, drawing


# For the chart with that heading: the width of each line of a colour, and of its points.
LINES = """([heading, colour]) => {
  const figure = [...document.querySelectorAll('figure')].find(
    each => each.querySelector('h3')?.textContent === heading);
  return [...figure.querySelectorAll('svg.chart path')]
    .filter(path => path.getAttribute('stroke') === colour && path.getBBox().height > 0)
    .map(path => path.getBBox().width);
}"""


LEGEND = """heading => {
  const figure = [...document.querySelectorAll('figure')].find(
    each => each.querySelector('h3')?.textContent === heading);
  return [...figure.querySelectorAll('svg.chart text')].map(each => each.textContent)
    .filter(text => text.includes('/'));
}"""


def test_the_published_curves_lie_behind_those_of_a_suite_of_broadcasts(
    chromium: Any, written: Write
) -> None:
    suite = read("broadcasts")
    most = max(int(row["labels"]["load"]) for row in suite["rows"]) * AROUND
    limit_ms = 500 * AROUND
    # A curve is visible if two of its points lie within the range of ours.
    behind = [
        curve.name
        for curve in broadcast_curves()
        if sum(clients <= most and ms <= limit_ms for clients, ms in curve.p95_ms) > 1
    ]
    with Looked(chromium, written("broadcasts")) as looked:

        def widths(colour: str) -> list[float]:
            heading = "Clients against the p95 of the receipt"
            found: list[float] = looked.page.evaluate(LINES, [heading, colour])
            return [width for width in found if width > 20]

        grey = widths(QUIET[0])
        legend = looked.page.evaluate(LEGEND, "Clients against the p95 of the receipt")
        own = [widths(light) for light, _ in SERIES[: len(suite["plan"]["subjects"])]]
        assert looked.did == []
    assert sorted(legend) == sorted(each["name"] for each in suite["plan"]["subjects"])
    assert len(behind) > 20
    assert len(grey) == len(behind)
    assert [len(each) for each in own] == [1, 1, 1], "a line for each subject"
    assert min(each[0] for each in own) > 150


# Runs whose page has a chart, table and verdict of every kind, and an invalid one.
MANY = ("http", "http", "ab", "search", "broadcasts", "clients", "traps")
PAGES = {"many": MANY, "alone": ("targets",)}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for title, names in PAGES.items():
        found[title] = folder / f"{title}.html"
        with Store.open(folder / f"{title}.sqlite3") as store:
            text = html(store, *(put(store, read(name)) for name in names))
        found[title].write_text(text, encoding="utf-8")
    return found


def wrong_in(page: Any) -> list[str]:
    """What is wrong with the layout and the colours of a page in its present state."""
    lie_on = [f"lies on another: {both}" for both in page.evaluate(COLLISIONS)]
    return [*page.evaluate(OVERFLOWS), *lie_on, *faint_in(page)]


def faint_in(page: Any) -> list[str]:
    """The text with the lowest contrast, if that is too low."""
    least = page.evaluate(LOWEST_CONTRAST)
    return [f"too faint: {least}"] if least["ratio"] < CONTRAST_MIN else []


@pytest.mark.parametrize("title", PAGES)
@pytest.mark.parametrize("width", [PHONE_PX, TABLET_PX, DESK_PX, PAPER_PX])
def test_nothing_leaves_its_place_or_is_too_small_or_faint(
    chromium: Any, pages: dict[str, Path], tmp_path: Path, title: str, width: int
) -> None:
    media = "print" if width == PAPER_PX else "screen"
    with Looked(chromium, pages[title], width=width) as looked:
        looked.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        for scheme in ("light", "dark"):
            looked.page.emulate_media(media=media, color_scheme=scheme)
            background = looked.page.evaluate("getComputedStyle(document.body).backgroundColor")
            brightness = sum(int(part) for part in re.findall(r"\d+", background)[:3])
            assert (brightness < 150) == ((media, scheme) == ("screen", "dark")), background
            looked.picture(tmp_path / f"{title}-{width}-{scheme}.png")
            # In dark mode only the colours differ.
            wrong = wrong_in if scheme == "light" else faint_in
            assert wrong(looked.page) == [], scheme
        if width == PHONE_PX:
            assert looked.page.evaluate(SMALLEST_PX) >= CHART_TEXT_PX_MIN
        assert looked.did == []


# For each table of programs: how far its verdicts are cut off by what it scrolls in.
CUT = """() => [...document.querySelectorAll('.wide td.mark')].filter(
  cell => cell.checkVisibility() && cell.closest('table').querySelector('td.name .dot')
).map(cell => {
  const box = cell.getBoundingClientRect(), wide = cell.closest('.wide').getBoundingClientRect();
  return Math.max(0, box.right - wide.right);
})"""


@pytest.mark.parametrize("name", ["suite", "clients", "traps", "c10k"])
def test_no_verdict_is_cut_off(chromium: Any, written: Write, name: str) -> None:
    with Looked(chromium, written(name)) as looked:
        for width in (DESK_PX, PHONE_PX):
            looked.widen(width)
            cut = looked.page.evaluate(CUT)
            assert cut, width
            assert max(cut) <= 1, width


# The tiles of the last row, where there are several rows, and the part of the width they take.
LAST_TILES = """() => {
  const tiles = [...document.querySelectorAll('.tiles li')].map(e => e.getBoundingClientRect());
  const last = tiles.filter(tile => Math.abs(tile.top - tiles.at(-1).top) < 2);
  const width = last.at(-1).right - last[0].left;
  const rows = new Set(tiles.map(tile => Math.round(tile.top))).size;
  return {rows, count: last.length,
          part: width / document.querySelector('.tiles').getBoundingClientRect().width};
}"""


@pytest.mark.parametrize("name", ["http", "tcp", "c10k", "ab"])
def test_no_tile_is_alone_and_no_figure_is_broken(chromium: Any, written: Write, name: str) -> None:
    with Looked(chromium, written(name)) as looked:
        for width in (PHONE_PX, TABLET_PX, DESK_PX):
            looked.widen(width)
            last = looked.page.evaluate(LAST_TILES)
            lines = looked.page.evaluate(
                "[...document.querySelectorAll('.tiles strong')].map(e =>"
                " Math.round(e.getBoundingClientRect().height / parseFloat(getComputedStyle(e)"
                ".lineHeight)))"
            )
            assert last["rows"] == 1 or last["count"] > 1 or last["part"] > 0.99, (width, last)
            assert max(lines) == 1, width


# The text that the topmost element shows under the pointer, at the middle of each such element.
POINTED = """() => [...document.querySelectorAll('svg.chart title')].slice(0, 40).map(title => {
  title.parentElement.scrollIntoView({block: 'center', behavior: 'instant'});
  const box = title.parentElement.getBoundingClientRect();
  const at = document.elementFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
  return at?.querySelector('title')?.textContent ?? '';
})"""


def test_the_pointer_finds_the_values_of_a_curve(chromium: Any, written: Write) -> None:
    with Looked(chromium, written("http")) as looked:
        pointed = looked.page.evaluate(POINTED)
    assert len(pointed) == 40
    assert all(re.search(r": p[\d.]+ [\d.]+ [mu]?s$", text) for text in pointed), pointed


def glyphs_by_page(paper: bytes) -> list[int]:
    """Count the glyphs on each page of a PDF of Chromium's."""
    objects = dict(re.findall(rb"(\d+) 0 obj\n(.*?)\nendobj", paper, re.DOTALL))
    pages = [body for body in objects.values() if re.search(rb"/Type /Page\b(?!s)", body)]
    counts = []
    for body in pages:
        [number] = re.findall(rb"/Contents (\d+) 0 R", body)
        stream = objects[number].partition(b"stream\n")[2].rpartition(b"\nendstream")[0]
        shown = re.findall(rb"<([0-9A-Fa-f]+)>", zlib.decompress(stream))
        counts.append(sum(len(text) // 4 for text in shown))
    return counts


@pytest.mark.parametrize("name", NAMES)
def test_the_last_sheet_of_paper_is_not_nearly_empty(
    chromium: Any, written: Write, tmp_path: Path, name: str
) -> None:
    with Looked(chromium, written(name)) as looked:
        paper = looked.page.pdf(path=tmp_path / f"{name}.pdf", format="A4")
    counts = glyphs_by_page(paper)
    assert sum(counts) > 500
    assert len(counts) == 1 or counts[-1] >= LEAST_GLYPHS, counts


def test_on_paper_it_is_light_and_whole(chromium: Any, written: Write, tmp_path: Path) -> None:
    name = "suite" if "suite" in NAMES else NAMES[0]
    with Looked(chromium, written(name), color_scheme="dark") as looked:
        looked.page.emulate_media(media="print", color_scheme="dark")
        colours = looked.page.evaluate(
            "[document.body, document.querySelector('nav')].map(e => [getComputedStyle(e)"
            ".backgroundColor, getComputedStyle(e).display])"
        )
        least = looked.page.evaluate(LOWEST_CONTRAST)
        paper = looked.page.pdf(path=tmp_path / f"{name}.pdf", format="A4")
        looked.picture(tmp_path / f"{name}-paper.png")
        assert looked.did == []
    assert colours[0][0] == "rgb(255, 255, 255)"
    assert colours[1][1] == "none", "what is clicked at is not printed"
    assert least["ratio"] >= CONTRAST_MIN, least
    assert paper.startswith(b"%PDF")
    assert paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page ") >= 1


@pytest.mark.parametrize("payload", HOSTILE, ids=map(str, range(len(HOSTILE))))
def test_hostile_text_is_only_ever_shown(chromium: Any, tmp_path: Path, payload: str) -> None:
    name = "suite" if "suite" in NAMES else NAMES[0]
    path = write(tmp_path, name, payload)
    # Test it without the security policy, too: then nothing may be there for the policy to block.
    bare = tmp_path / "bare.html"
    text = path.read_text(encoding="utf-8")
    bare.write_text(re.sub(r"<meta http-equiv=[^>]*>", "", text), encoding="utf-8")
    for page in (path, bare):
        with Looked(chromium, page, width=PHONE_PX) as looked:
            looked.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            for target in looked.page.query_selector_all("a, summary"):
                target.dispatch_event("click")
            assert looked.page.evaluate("window.hacked") is None
            assert looked.page.evaluate("document.scripts.length") == 0
            # Both pages have the same layout, which takes longer to examine than all the rest.
            if page == path:
                assert wrong_in(looked.page) == []
                looked.picture(tmp_path / f"{page.stem}.png")
            assert looked.did == []
