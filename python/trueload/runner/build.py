"""Builds a subject once for each content of its folder, in the user's cache.

How: a key is made of the sources, the commands and the tools' versions. Its folder holds a copy of
the sources in which the commands run, so that the checkout stays clean. Fetch commands run first,
and their failure is no fault of the subject; build commands follow.

A folder is complete when its stamp is there, which is written last and in one step. A build that
was cut short has no stamp and is started again, and so is one with missing files. A lock per key
lets two concurrent runs share one build. A running subject holds the lock shared. Files that it
leaves behind are removed after it, if nobody else is using the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import trueload
from trueload.deadline import looks
from trueload.errors import UserError
from trueload.files.catalogue import cache_folder
from trueload.files.private import make_folder, open_descriptor
from trueload.runner.environment import build_environment
from trueload.runner.needs import CERTIFICATE, tool_versions
from trueload.runner.process import Orders, Processes, Program, StartError, substitute
from trueload.runner.stamp import STAMP, files, is_passing, is_whole, read_stamp, write_stamp
from trueload.subjects.manifest import Subject, contents
from trueload.text import without_escapes

UNUSED_S_MAX = 30 * 24 * 3600.0
LOCK_POLL_S = 0.05
LOG_LINE_MAX = 200  # characters of a line that is quoted


class BuildError(Exception):
    """A build failed: the reason in one line, and the tail of its log.

    `outcome` is the subject's outcome that follows.
    """

    outcome: Literal["failed", "skipped"] = "failed"

    def __init__(self, reason: str, log_tail: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.log_tail = log_tail


class FetchError(BuildError):
    """A fetch command failed on this machine; the reason ends with its last line of output."""

    outcome = "skipped"


@dataclass(frozen=True)
class Build:
    """A finished build. `folder` is where the subject runs, `{build}` in its commands."""

    key: str
    folder: Path
    from_cache: bool


def content_key(subject: Subject) -> str:
    """Return a hash of what a build depends on: sources, commands, environment, tools. Raises
    ``UserError`` for a link that leads out of the folder, and for an unreadable file."""
    manifest = subject.manifest
    try:
        digest = _sources_hash(subject)
    except OSError as error:
        raise UserError(
            f"{error.filename}: cannot be read: {error.strerror}", "check its rights"
        ) from None
    facts = {
        "build": manifest.build,
        "env": manifest.env,
        "tools": tool_versions(subject),
        "trueload": trueload.__version__,
    }
    if manifest.shows_certificate:
        facts["tls"] = CERTIFICATE
    if manifest.fetch:  # left out if there are none, so that older keys stay the same
        facts["fetch"] = manifest.fetch
    digest.update(json.dumps(facts, sort_keys=True).encode())
    return digest.hexdigest()[:24]


def _sources_hash(subject: Subject) -> hashlib._Hash:
    digest = hashlib.sha256()
    for relative, path in contents(subject).items():
        if relative == Path("subject.toml"):
            continue  # the facts below have what matters of it; a change of wording builds nothing
        mode = "x" if os.access(path, os.X_OK) else "-"
        digest.update(os.fsencode(f"{relative}\0{mode}\0{_content_hash(path)}\0"))
    return digest


def _content_hash(path: Path) -> str:
    if path.is_symlink():
        return f"link to {os.readlink(path)}"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def manifest_digest(subject: Subject) -> str:
    """Return a hash of all that a measurement depends on: the content and the whole manifest."""
    text = subject.manifest.model_dump_json()
    return hashlib.sha256(f"{content_key(subject)}{text}".encode()).hexdigest()[:24]


def build(
    subject: Subject,
    *,
    trueload_command: tuple[str, ...],
    stopped: Callable[[], bool] = lambda: False,
    announce: Callable[[str], None] = lambda line: None,
) -> Build:
    """Return the build of the subject, from the cache if it is there.

    `announce` gets a line if a build starts. Raises ``BuildError`` if a command fails or takes
    longer than `build_s`, or if the cache cannot be written. Raises ``FetchError`` if a fetch
    command fails, and ``UserError`` as ``content_key`` does.
    """
    key = content_key(subject)
    home = cache_folder() / "builds" / f"{subject.language}-{subject.framework}-{key}"
    deadline_s = time.monotonic() + subject.manifest.build_s
    try:
        make_folder(home)
        return _built(_Work(subject, home, trueload_command, deadline_s, stopped), key, announce)
    except OSError as error:
        raise BuildError(f"it cannot be built: {error}", "") from None


def _built(work: _Work, key: str, announce: Callable[[str], None]) -> Build:
    subject, home = work.subject, work.home
    with _lock(home, fcntl.LOCK_EX, work.deadline_s, work.stopped):
        tree, stamp = home / "tree", read_stamp(home)
        if stamp is not None and is_whole(stamp, tree):
            with contextlib.suppress(OSError):
                os.utime(home / STAMP)
            return Build(key, tree, True)
        if stamp is not None:
            announce(f"{subject.name}: its build has changed, and is built again")
        elif subject.manifest.fetch or subject.manifest.build:
            announce(f"{subject.name}: building")
        # Remove the stamp first: a build that is cut short now must not look complete.
        (home / STAMP).unlink(missing_ok=True)
        _copy(subject, tree)
        _run_commands(work)
        write_stamp(home, tree)
    _prune(home)
    return Build(key, tree, False)


@contextlib.contextmanager
def in_use(built: Build) -> Iterator[None]:
    """Hold a build while a subject runs in it, and remove what the subject left behind afterwards.
    Raises ``StartError`` if the build cannot be held."""
    home = built.folder.parent
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(_lock(home, fcntl.LOCK_SH, time.monotonic() + 60))
        except OSError as error:
            raise StartError(f"its build cannot be used: {error}", again=True) from None
        yield
    with (
        contextlib.suppress(OSError, BuildError),
        _lock(home, fcntl.LOCK_EX, time.monotonic()),
    ):
        _remove_strays(home)


def _copy(subject: Subject, tree: Path) -> None:
    shutil.rmtree(tree, ignore_errors=True)
    if tree.is_file():
        tree.unlink()
    tree.mkdir(parents=True)
    for relative, path in contents(subject).items():
        target = tree / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)


@dataclass(frozen=True)
class _Work:
    """A build in progress."""

    subject: Subject
    home: Path
    trueload_command: tuple[str, ...]
    deadline_s: float
    stopped: Callable[[], bool]


def _run_commands(work: _Work) -> None:
    (work.home / "build.log").unlink(missing_ok=True)
    for argv in work.subject.manifest.fetch:
        try:
            _run_command(work, "fetch", argv)
        except BuildError as error:
            if work.stopped():
                raise
            last_line = _last_line(error.log_tail)
            reason = f"{error.reason}: {last_line}" if last_line else error.reason
            raise FetchError(reason, error.log_tail) from None
    if work.subject.manifest.shows_certificate:
        _run_command(work, "certificate", CERTIFICATE)
    for argv in work.subject.manifest.build:
        _run_command(work, "build", argv)


def _run_command(work: _Work, what: str, argv: tuple[str, ...]) -> None:
    tree, manifest = work.home / "tree", work.subject.manifest
    orders = Orders(
        programs=(Program(tuple(substitute(argv, {"build": str(tree)}, work.trueload_command))),),
        cwd=tree,
        env=build_environment(manifest.env),
        log=work.home / "build.log",
    )
    shown = " ".join(argv)
    try:
        with Processes(orders) as processes:
            ended = _wait(processes, work.deadline_s, work.stopped)
            processes.end(0)
            tail = processes.log_tail()
    except StartError as error:
        raise BuildError(f"the {what} cannot be run: {error}", "") from None
    if work.stopped():
        raise BuildError(f"the {what} was interrupted", tail)
    if not ended:
        limit = f"{manifest.build_s:g} s"
        raise BuildError(f"the {what} took longer than {limit} (build_s): {shown}", tail)
    failed = [end for end in processes.exits if end.code != 0]
    if failed:
        raise BuildError(f"the {what} failed with {failed[0]}: {shown}", tail)


def _last_line(text: str) -> str:
    """Return the last non-empty line without colours; "" if there is none."""
    lines = [line.strip() for line in without_escapes(text).splitlines()]
    printed = [line for line in lines if line]
    return printed[-1][:LOG_LINE_MAX] if printed else ""


def _wait(processes: Processes, deadline_s: float, stopped: Callable[[], bool]) -> bool:
    for left_s in looks(deadline_s):
        if stopped():
            break
        if processes.wait(time.monotonic() + min(left_s, 0.1)):
            return True
    return False


def _remove_strays(home: Path) -> None:
    tree, stamp = home / "tree", read_stamp(home)
    if stamp is None:
        return
    for path in files(tree):
        if str(path) not in stamp.files and not is_passing(path):
            with contextlib.suppress(OSError):
                (tree / path).unlink()


@contextlib.contextmanager
def _lock(
    home: Path, kind: int, deadline_s: float, stopped: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Hold a lock on a build; the kernel frees it if we die. Raises ``BuildError`` when late."""
    descriptor = open_descriptor(home / "lock", os.O_RDWR)
    try:
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if stopped() or time.monotonic() >= deadline_s:
                    raise BuildError("another run holds this subject's build folder", "") from None
            time.sleep(LOCK_POLL_S)
        yield
    finally:
        os.close(descriptor)


def _prune(home: Path) -> None:
    """Remove builds of the same subject that were not used for a month, complete or not."""
    subject_name = home.name.rpartition("-")[0]
    for other in home.parent.glob(f"{subject_name}-*"):
        try:
            if other == home or time.time() - _last_used_s(other) < UNUSED_S_MAX:
                continue
            with _lock(other, fcntl.LOCK_EX, time.monotonic()):
                (other / STAMP).unlink(missing_ok=True)
                shutil.rmtree(other / "tree", ignore_errors=True)
        except (OSError, BuildError):
            continue


def _last_used_s(home: Path) -> float:
    """Return the file time at which a build was last used, or started if it was cut short. Raises
    ``OSError`` if there is no build."""
    try:
        return (home / STAMP).stat().st_mtime
    except FileNotFoundError:
        return (home / "tree").stat().st_mtime
