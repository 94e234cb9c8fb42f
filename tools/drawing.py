"""A picture of a page, and how it gets there."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Picture:
    """A drawing as SVG, and its words for readers who cannot see it."""

    svg: str
    words: str


def reworded(page: str, address: str, words: str) -> str:
    """Return the page with these words in place of those of the picture at an address."""
    pattern = re.compile(rf"!\[[^\]]*\]\({re.escape(address)}\)")
    return pattern.sub(lambda _: f"![{words}]({address})", page)
