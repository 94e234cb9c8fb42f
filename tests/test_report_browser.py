"""Reports in a real browser: Debian's Chromium, driven by Playwright, without the network.

A page is looked at as a reader would: wide, on a phone, in the dark, on paper. Screenshots are left
in the folder of each test. Where there is no Chromium the tests are skipped, and say so.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_samples import HOSTILE, NAMES, hostile, html, put, read
from trueload.published.tables import broadcast_curves
from trueload.report.html.charts.crowd import AROUND
from trueload.report.html.charts.theme import COLOURS, GRID, INK, PAPER, QUIET, SERIES
from trueload.store.runs import Store

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium here: Debian has it as a package of that name"
)
PHONE_PX, DESK_PX = 390, 1280
# Chromium 156 makes no picture of a page of 74,000 px, and waits for one in vain; all but the one
# with the longest text are below 10,000.
PICTURE_PX_MOST = 12_000
# Web Content Accessibility Guidelines 2.2, 1.4.3: of text.
CONTRAST_MIN = 4.5

LUMINANCE = """
const light = text => {
  const parts = text.match(/[0-9.]+/g).map(Number);
  const [r, g, b] = parts.slice(0, 3).map(v => {
    v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return {value: 0.2126 * r + 0.7152 * g + 0.0722 * b, solid: parts.length < 4 || parts[3] > 0.99};
};
const behind = element => {
  for (let at = element; at; at = at.parentElement) {
    const found = light(getComputedStyle(at).backgroundColor);
    if (found.solid) return found.value;
  }
  return 1;
};
"""
LOWEST_CONTRAST = (
    "() => {"
    + LUMINANCE
    + """
  let least = {ratio: 99};
  const texts = 'h1,h2,h3,p,li,td,th,dt,dd,figcaption,summary,pre,a,.badge,.tiles strong';
  for (const element of document.querySelectorAll(texts + ',svg.chart text')) {
    if (!element.textContent.trim() || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const ink = light(element.closest('svg') ? style.fill : style.color).value;
    const paper = behind(element.closest('svg') ? element.closest('figure') : element);
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (ratio < least.ratio) least = {ratio, tag: element.tagName, text: element.textContent};
  }
  return least;
}"""
)
# Of each drawing: its box, and how many of its shapes have a colour of the data and a size.
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

    # Its own sandbox needs what a container or root does not have.
    flags = ["--no-sandbox"] if os.geteuid() == 0 or os.environ.get("CI") else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


class Looked:
    """A page that was opened, with all that it did: messages, errors, requests, dialogs."""

    def __init__(self, browser: Any, path: Path, *, width: int = DESK_PX, **context: Any) -> None:
        viewport = {"width": width, "height": 900}
        self.context = browser.new_context(viewport=viewport, **context)
        self.page = self.context.new_page()
        self.did: list[str] = []
        self.page.on("console", lambda message: self.did.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.did.append(f"error: {error}"))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", self._note)
        self.own = path.as_uri()
        self.page.goto(self.own)

    def picture(self, path: Path) -> None:
        """Leave a picture of the whole page, or of its beginning where it is very long."""
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


def write(folder: Path, name: str, payload: str | None = None) -> Path:
    """The page of a real run, or of the same with a payload in its texts."""
    with Store.open(folder / "store.sqlite3") as store:
        value = read(name) if payload is None else hostile(read(name), payload)
        text = html(store, put(store, value))
    path = folder / f"{name}.html"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", NAMES)
def test_every_chart_is_drawn_and_nothing_is_asked_of_the_network(
    chromium: Any, tmp_path: Path, name: str
) -> None:
    colours = [light for light, _ in COLOURS if light not in (INK[0], QUIET[0], GRID[0], PAPER[0])]
    with Looked(chromium, write(tmp_path, name)) as looked:
        drawings = looked.page.evaluate(DRAWINGS, colours)
        looked.picture(tmp_path / f"{name}.png")
        assert looked.did == []
    assert drawings
    for drawing in drawings:
        assert drawing["width"] > 200, drawing
        assert drawing["height"] > 40, drawing
        assert drawing["shapes"] >= 1, "there is an axis, but no data"
        assert drawing["texts"] >= 2, drawing


# Of the chart with that heading: how wide each line of a colour is, and the marks at its points.
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
    chromium: Any, tmp_path: Path
) -> None:
    suite = read("broadcasts")
    most = max(int(row["labels"]["load"]) for row in suite["rows"]) * AROUND
    limit_ms = 500 * AROUND
    # A curve is seen of which two points lie where ours do.
    behind = [
        curve.name
        for curve in broadcast_curves()
        if sum(clients <= most and ms <= limit_ms for clients, ms in curve.p95_ms) > 1
    ]
    with Looked(chromium, write(tmp_path, "broadcasts")) as looked:

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


@pytest.mark.parametrize("name", NAMES)
def test_a_phone_shows_it_without_scrolling_sideways(
    chromium: Any, tmp_path: Path, name: str
) -> None:
    path = write(tmp_path, name)
    with Looked(chromium, path, width=PHONE_PX, device_scale_factor=2) as looked:
        looked.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        width = looked.page.evaluate("document.documentElement.scrollWidth")
        sizes = looked.page.evaluate(
            "[...document.querySelectorAll('svg.chart text')].filter(t => t.textContent)"
            ".map(t => t.getBoundingClientRect().height)"
        )
        looked.picture(tmp_path / f"{name}-phone.png")
        assert looked.did == []
    assert width <= PHONE_PX
    assert min(sizes) >= 8, "text in a chart is too small"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [name for name in ("suite", "search") if name in NAMES])
def test_it_can_be_read_in_the_light_and_in_the_dark(
    chromium: Any, tmp_path: Path, name: str, scheme: str
) -> None:
    with Looked(chromium, write(tmp_path, name), color_scheme=scheme) as looked:
        background = looked.page.evaluate("getComputedStyle(document.body).backgroundColor")
        least = looked.page.evaluate(LOWEST_CONTRAST)
        looked.picture(tmp_path / f"{name}-{scheme}.png")
        assert looked.did == []
    brightness = sum(int(part) for part in re.findall(r"\d+", background)[:3])
    assert (brightness < 150) == (scheme == "dark"), background
    assert least["ratio"] >= CONTRAST_MIN, least


def test_on_paper_it_is_light_and_whole(chromium: Any, tmp_path: Path) -> None:
    name = "suite" if "suite" in NAMES else NAMES[0]
    with Looked(chromium, write(tmp_path, name), color_scheme="dark") as looked:
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
    # Once more without the policy: what is not there need not be forbidden.
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
            assert looked.page.evaluate("document.documentElement.scrollWidth") <= PHONE_PX
            assert looked.did == []
            looked.picture(tmp_path / f"{page.stem}.png")
