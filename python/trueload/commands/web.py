"""``--web``: the page on which a run can be watched. What serves it is imported only then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trueload.commands.measure_options import LiveOptions
from trueload.interrupt import Interrupt
from trueload.protocol.option import flag_of, refuse_beside

if TYPE_CHECKING:
    from trueload.web.page import WebPage

ShowReport = Callable[[str | None], object]
"""Shows those who watch the page the report of a run, by its id; None if it was not saved."""
WITHOUT = {"quiet": "the URL of the page has to be printed", "dry_run": "there is nothing to watch"}


def check_web(given: LiveOptions) -> None:
    """Refuse options that leave the page without a run, or its user without the URL."""
    for field, why in WITHOUT.items():
        is_given = given.web is not None and given.given.get(field)
        refuse_beside("--web", {flag_of(field): is_given}, why=why)


@contextmanager
def web_page(
    port: int | None, interrupt: Interrupt, announce: Callable[[str], object]
) -> Iterator[tuple[WebPage | None, ShowReport]]:
    """Serve the page until the block ends, if it is asked for. Raises ``UserError``."""
    if port is None:
        yield None, lambda run_id: None
        return
    from trueload.web.page import WebPage

    with WebPage(port) as page:
        announce(f"page at {page.url}")

        def show_report(run_id: str | None) -> None:
            before = interrupt.requested
            page.finish(run_id, lambda: interrupt.requested and not before)

        yield page, show_report
