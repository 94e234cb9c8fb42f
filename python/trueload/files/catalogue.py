"""Where suites, subjects and contracts are found, and where builds are kept.

How: each of the three folders is searched for by itself: in the current folder and its parents,
then in $TRUELOAD_HOME, then in the installed package (or the checkout that an editable install
points at). The first folder that has something of the kind wins as a whole, so a user's own
catalogue is never mixed with another. Its content is run with the user's rights. So a folder that
somebody else can change is skipped, unless the user has named it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import trueload
from trueload.errors import UserError
from trueload.files.ownership import TrustedUsers, also_writers_of, first_fault, steps, trusted_here
from trueload.files.private import user_folder

Kind = Literal["suites", "subjects", "contracts"]

_PACKAGE = Path(trueload.__file__).resolve().parent

# What shows that a folder of that name is one of ours, and not some other project's.
_MARKS: dict[Kind, str] = {
    "suites": "*.toml",
    "subjects": "*/*/subject.toml",
    "contracts": "*.toml",
}


def find_folder(kind: Kind, announce: Callable[[str], None]) -> Path:
    """The catalogue's folder of a kind. ``announce`` gets one line for each folder that exists but
    is not used, because somebody else could change it. Raises ``UserError`` if there is none."""
    found = _first_usable(kind, announce, [*_users_roots(), *_own_roots()])
    if found is None:
        raise UserError(
            (
                f"no usable folder {kind}/ here, in the folders above, in $TRUELOAD_HOME or in"
                " the installed package"
            ),
            "run in a checkout of trueload, or set TRUELOAD_HOME to one",
        )
    return found


def _first_usable(kind: Kind, announce: Callable[[str], None], roots: list[Path]) -> Path | None:
    for root in roots:
        folder = root / kind
        # Unlike Path.is_dir, this is False where we have no permission.
        if not os.path.isdir(folder) or next(folder.glob(_MARKS[kind]), None) is None:
            continue
        why = _why_not(folder, kind)
        if why is None:
            return folder
        home = shlex.quote(str(root))
        announce(f"{folder} is not used: {why}; set TRUELOAD_HOME={home} to use it anyway")
    return None


def trusted_in(folder: Path) -> TrustedUsers | None:
    """Users that may own and write files of a catalogue folder; None for all, if the user named
    it."""
    home = os.environ.get("TRUELOAD_HOME")
    if home and os.path.realpath(home) == os.path.realpath(folder.parent):
        return None
    trusted = trusted_here()
    return also_writers_of(trusted, _PACKAGE) if _is_own(folder) else trusted


def _why_not(folder: Path, kind: Kind) -> str | None:
    trusted = trusted_in(folder)
    if trusted is None:
        return None
    real = Path(os.path.realpath(folder))
    # Our own code comes from there: whoever can change the folders above can change it already.
    way = [folder] if _is_own(folder) else list(steps(folder))
    # Subjects are judged one by one, so that one does not stop the others.
    files = [] if kind == "subjects" else folder.glob(_MARKS[kind])
    return first_fault((*way, real, *files), real, trusted)


def _is_own(folder: Path) -> bool:
    return os.path.realpath(folder.parent) in map(str, _own_roots())


def subjects_home(announce: Callable[[str], None]) -> Path:
    """Where a new subject goes: the user's catalogue if it is writable, else ./subjects.

    trueload's own is used only from within it: an update would overwrite it. ``announce`` is that
    of ``find_folder``.
    """
    found = _first_usable("subjects", announce, list(_users_roots()))
    return found if found and os.access(found, os.W_OK) else Path.cwd() / "subjects"


def cache_folder() -> Path:
    """Where builds are kept: $TRUELOAD_CACHE, else the user's cache folder."""
    named = os.environ.get("TRUELOAD_CACHE")
    return Path(named).absolute() if named else user_folder("cache")


def _users_roots() -> Iterator[Path]:
    try:
        here = Path.cwd()
    except OSError:  # it has been removed
        pass
    else:
        yield here
        yield from here.parents
    if home := os.environ.get("TRUELOAD_HOME"):
        yield Path(home).absolute()


def _own_roots() -> tuple[Path, Path]:
    return _PACKAGE / "catalogue", _PACKAGE.parent.parent
