"""The catalogue's folders, for commands. What is not used is told on stderr, once."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from trueload.files import catalogue
from trueload.text import plain


def find_folder(kind: catalogue.Kind) -> Path:
    """As of ``catalogue``."""
    return catalogue.find_folder(kind, _tell)


def subjects_home() -> Path:
    """As of ``catalogue``."""
    return catalogue.subjects_home(_tell)


@functools.cache
def _tell(line: str) -> None:
    sys.stderr.write(f"note: {plain(line)}\n")
