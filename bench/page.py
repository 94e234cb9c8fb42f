"""Writes measured results into the pages of docs/, each report into its own section.

A section lies between two comments that name it; everything outside is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from setting import ROOT

PERFORMANCE = ROOT / "docs" / "performance.md"
ACCURACY = ROOT / "docs" / "accuracy.md"
HOSTS = ROOT / "docs" / "hosts.md"
BROADCAST = ROOT / "docs" / "broadcast.md"
PUBLISHED = ROOT / "docs" / "published.md"
COMPARISON = ROOT / "docs" / "comparison.md"
THROUGHPUT = ROOT / "docs" / "throughput.md"
RELIABILITY = ROOT / "docs" / "reliability.md"


def replaced(text: str, name: str, lines: Sequence[str], by: str = "make bench") -> str:
    """Return the page with the section replaced; `ValueError` if it has no such section. Pure."""
    begin, end = f"<!-- {name}: written by {by} -->", f"<!-- end of {name} -->"
    pattern = re.compile(f"({re.escape(begin)}\\n).*?({re.escape(end)})", re.DOTALL)
    body = "\n".join(lines).strip("\n")
    written, count = pattern.subn(lambda found: f"{found[1]}\n{body}\n\n{found[2]}", text)
    if count != 1:
        raise ValueError(f"the page has {count} sections called {name}")
    return written


def write_section(page: Path, name: str, lines: Sequence[str], by: str = "make bench") -> None:
    """Write one section; the others stay as they are."""
    page.write_text(replaced(page.read_text(), name, lines, by))
