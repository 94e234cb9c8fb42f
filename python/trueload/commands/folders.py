"""The catalogue's folders, for commands. A folder that is not used is noted on stderr, once."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from trueload.files import catalogue
from trueload.text import plain


def find_folder(kind: catalogue.Kind) -> Path:
    """Return the folder of a kind, as ``catalogue.find_folder`` does."""
    return catalogue.find_folder(kind, _announce)


def subjects_home() -> Path:
    """Return the folder of subjects, as ``catalogue.subjects_home`` does."""
    return catalogue.subjects_home(_announce)


@functools.cache
def _announce(line: str) -> None:
    sys.stderr.write(f"note: {plain(line)}\n")
