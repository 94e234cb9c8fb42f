"""The page of ``--web`` in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import test_report_browser
from harness import Server, Trueload, start_server
from page_viewer import Viewer
from test_report_browser import DESK_PX, PHONE_PX, wrong_in
from test_web_cli import printed_url
from trueload.web.server import VIEWERS_MAX

pytestmark = pytest.mark.needs("chromium")
chromium = test_report_browser.chromium  # the fixture


class Watched:
    """A page that is open, with all that the browser says against it or asks of others."""

    def __init__(self, browser: Any, url: str, *, width: int = DESK_PX) -> None:
        self.url = url
        self.context = browser.new_context(viewport={"width": width, "height": 900})
        self.page = self.context.new_page()
        self.did: list[str] = []
        self.page.on("console", lambda message: self.did.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.did.append(f"error: {error}"))
        self.page.on("request", self._note)
        self.page.goto(url)

    def _note(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.did.append(f"request: {request.url}")
        if referer := request.headers.get("referer"):
            self.did.append(f"referer: {referer}")

    def until(self, selector: str, text: str) -> None:
        self.page.wait_for_selector(f"{selector}:has-text('{text}')", timeout=60_000)

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


@pytest.mark.parametrize("width", [PHONE_PX, DESK_PX])
def test_a_run_is_seen_while_it_lasts_and_then_its_report(
    chromium: Any, trueload: Trueload, server: Server, tmp_path: Path, width: int
) -> None:
    process = trueload.start("http", server.url, "-c", "4", "-d", "6s", "--rate", "2k", "--web")
    with Watched(chromium, printed_url(process), width=width) as watched:
        name = "wide" if width == DESK_PX else "narrow"
        watched.until(f"pre.{name}", "last seconds")
        assert watched.page.title() == f"trueload http {server.url}"
        for scheme in ("light", "dark"):
            watched.page.emulate_media(color_scheme=scheme)
            watched.page.screenshot(path=tmp_path / f"live-{width}-{scheme}.png", full_page=True)
            assert wrong_in(watched.page) == [], scheme
        seen = watched.page.evaluate(
            "[...document.querySelectorAll('pre')].filter(e => e.checkVisibility())"
            ".map(e => [e.className, e.scrollWidth <= e.clientWidth])"
        )
        assert seen == [[name, True]], "no row is cut"
        watched.page.wait_for_url("**/report", timeout=60_000)
        watched.until("h1", "http")
        watched.page.screenshot(path=tmp_path / f"report-{width}.png")
        assert watched.did == []
    assert process.wait(timeout=60) in (0, 4)


def test_what_makes_a_result_invalid_is_seen_before_its_end(
    chromium: Any, trueload: Trueload, tmp_path: Path
) -> None:
    failing = start_server(trueload, "--error-share", "50%")
    process = trueload.start("http", failing.url, "-c", "2", "-d", "60s", "--web")
    with Watched(chromium, printed_url(process)) as watched:
        watched.until("pre .bad", "invalid so far: errors:")
        watched.page.screenshot(path=tmp_path / "invalid.png", full_page=True)
        assert wrong_in(watched.page) == []
        process.kill()
        watched.until("#said", "This is the last state")
        watched.until("pre .bad", "invalid so far: errors:")
        assert [each for each in watched.did if not each.startswith("console: ")] == []


def test_a_viewer_too_many_is_told_so_in_a_sentence(
    chromium: Any, trueload: Trueload, server: Server
) -> None:
    process = trueload.start("http", server.url, "-c", "1", "-d", "60s", "--web")
    url = printed_url(process)
    viewers = [Viewer(url) for _ in range(VIEWERS_MAX)]
    with Watched(chromium, url) as watched:
        watched.until("#said", f"{VIEWERS_MAX} viewers are watching")
        viewers.pop().close()
        watched.page.reload()
        watched.until("pre", "window")
    for viewer in viewers:
        viewer.close()
