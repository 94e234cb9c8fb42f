"""The stamp of a finished build: what the build made, so that what has become of it is noticed.

How: written last and in one step, it names each file with its size and whether it can be run, and
the place of all, which programs that were built there may have in them. A build is whole while each
file is there, no smaller than it was (a program may write more into its own), and can be run if it
could be; what an interpreter keeps of its sources is no part of it, as it comes and goes.

Must not know: how a build is made, locks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trueload.files.private import open_text

STAMP = "stamp.json"
PLACE = "."  # no file has this name
EXECUTABLE = 0o111


@dataclass(frozen=True)
class Stamp:
    """What a build made. ``place`` is the folder that it was made in, None if that is not known;
    files are by their path in it, each with its size and whether it can be run, None likewise."""

    place: str | None
    files: Mapping[str, tuple[int, bool] | None]


def write_stamp(home: Path, tree: Path) -> None:
    """Say that what is in ``tree`` is whole. Raises ``OSError``."""
    noted = {PLACE: os.path.realpath(tree)} | {
        str(path): _look(tree / path) for path in files(tree)
    }
    part = home / f"{STAMP}.part"
    with open_text(part) as file:
        file.write(json.dumps(noted))
    part.replace(home / STAMP)


def read_stamp(home: Path) -> Stamp | None:
    """None if there is none, or it is damaged: the build is none then."""
    try:
        noted = json.loads((home / STAMP).read_bytes())
        if isinstance(noted, list):  # as it was before sizes were noted
            return Stamp(None, {str(name): None for name in noted})
        place = str(noted.pop(PLACE))
        return Stamp(place, {name: (int(size), bool(run)) for name, (size, run) in noted.items()})
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def is_whole(stamp: Stamp, tree: Path) -> bool:
    """Whether a build is still as it was made, and where."""
    if stamp.place not in (None, os.path.realpath(tree)):
        return False
    return all(_is_kept(tree / name, noted) for name, noted in stamp.files.items())


def is_passing(path: Path) -> bool:
    """Whether a file comes and goes as an interpreter likes."""
    return "__pycache__" in path.parts


def files(tree: Path) -> Iterator[Path]:
    """Every file and link, relative to the tree."""
    for folder, _, names in os.walk(tree):
        for name in names:
            yield Path(folder, name).relative_to(tree)


def _is_kept(path: Path, noted: tuple[int, bool] | None) -> bool:
    if is_passing(path):
        return True
    try:
        size_bytes, can_run = _look(path)
    except OSError:
        return False
    return noted is None or (size_bytes >= noted[0] and can_run >= noted[1])


def _look(path: Path) -> tuple[int, bool]:
    # Of a link itself: where it leads is not the build's.
    found = path.lstat()
    return found.st_size, bool(found.st_mode & EXECUTABLE)
