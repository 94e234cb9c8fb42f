"""Where suites, subjects and contracts are found, and where builds are kept.

How: each of the three folders is looked for by itself: in the current folder and its
parents, then in $TRUELOAD_HOME, then in the installed package (or the checkout that an
editable install points at). The first folder that holds something of the kind wins as a
whole, so that one's own catalogue is never mixed with another.

Must not know: what is in the files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import platformdirs

import trueload
from trueload.errors import UserError

Kind = Literal["suites", "subjects", "contracts"]

# What makes a folder of that name one of ours, and not some other project's.
_MARKS: dict[Kind, str] = {
    "suites": "*.toml",
    "subjects": "*/*/subject.toml",
    "contracts": "*.toml",
}


def find_folder(kind: Kind) -> Path:
    """The folder of the catalogue; raises ``UserError`` if there is none."""
    for root in _roots():
        folder = root / kind
        # Unlike Path.is_dir, also where we may not look.
        if os.path.isdir(folder) and next(folder.glob(_MARKS[kind]), None) is not None:
            return folder
    raise UserError(
        f"no {kind}/ here, in the folders above, in $TRUELOAD_HOME or the installed package",
        "run in a checkout of trueload, or set TRUELOAD_HOME to one",
    )


def subjects_home() -> Path:
    """Where a new subject goes: the catalogue if it may be written, else ./subjects."""
    try:
        folder = find_folder("subjects")
    except UserError:
        return Path.cwd() / "subjects"
    return folder if os.access(folder, os.W_OK) else Path.cwd() / "subjects"


def cache_folder() -> Path:
    """Where builds are kept: $TRUELOAD_CACHE, else the user's cache folder."""
    named = os.environ.get("TRUELOAD_CACHE")
    return Path(named).absolute() if named else platformdirs.user_cache_path("trueload")


def _roots() -> Iterator[Path]:
    try:
        here = Path.cwd()
    except OSError:  # it has been removed
        pass
    else:
        yield here
        yield from here.parents
    if home := os.environ.get("TRUELOAD_HOME"):
        yield Path(home).absolute()
    package = Path(trueload.__file__).parent
    yield package / "catalogue"
    yield package.parent.parent
