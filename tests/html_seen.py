"""What a browser would make of HTML: the tags and the text."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any


class Seen(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data
