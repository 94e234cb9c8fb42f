"""The stamp of a finished build: a list of what was built, so that later changes are noticed.

How: it is written last and in one step. It lists each file with its size and whether it is
executable, and the folder of the build, as programs built there may contain its path. A build is
whole while each file is there, is no smaller than before (a program may write more into its own
files), and is still executable if it was. Caches that an interpreter keeps of its sources do not
count, as they come and go.
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
    """The contents of a build.

    ``place`` is the folder that it was made in, None if unknown. ``files`` has the size and the
    executable bit of each file by its relative path, or None if unknown.
    """

    place: str | None
    files: Mapping[str, tuple[int, bool] | None]


def write_stamp(home: Path, tree: Path) -> None:
    """Record that the contents of ``tree`` are complete. Raises ``OSError``."""
    noted = {PLACE: os.path.realpath(tree)} | {
        str(path): _look(tree / path) for path in files(tree)
    }
    part = home / f"{STAMP}.part"
    with open_text(part) as file:
        file.write(json.dumps(noted))
    part.replace(home / STAMP)


def read_stamp(home: Path) -> Stamp | None:
    """Read the stamp; None if there is none or it is damaged, and the build does not count."""
    try:
        noted = json.loads((home / STAMP).read_bytes())
        if isinstance(noted, list):  # the format before sizes were recorded
            return Stamp(None, {str(name): None for name in noted})
        place = str(noted.pop(PLACE))
        return Stamp(place, {name: (int(size), bool(run)) for name, (size, run) in noted.items()})
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def is_whole(stamp: Stamp, tree: Path) -> bool:
    """Whether a build is unchanged, and in the folder where it was made."""
    if stamp.place not in (None, os.path.realpath(tree)):
        return False
    return all(_is_kept(tree / name, noted) for name, noted in stamp.files.items())


def is_passing(path: Path) -> bool:
    """Whether a file is an interpreter's cache, which comes and goes."""
    return "__pycache__" in path.parts


def files(tree: Path) -> Iterator[Path]:
    """Yield every file and link, relative to the tree."""
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
    # lstat: the target of a link is not part of the build.
    found = path.lstat()
    return found.st_size, bool(found.st_mode & EXECUTABLE)
