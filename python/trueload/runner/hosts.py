"""Where a subject runs: on this machine, or another. What a trial asks of that host, as one
interface.

How: here, the questions go to the kernel; elsewhere, to the agent. Must not know contracts, loads
or what is measured.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trueload.files.catalogue import cache_folder
from trueload.files.private import make_folder
from trueload.runner import cgroup, sockets
from trueload.runner.build import Build
from trueload.runner.cpus import available_cpus
from trueload.runner.inherited import subject_environment
from trueload.runner.process import Exit, Orders, Processes, StartError
from trueload.trial.spec import Tree


@dataclass(frozen=True)
class Look:
    """How a subject that has been started is: whether it lives, on how many sockets it listens on
    its port, and who else does."""

    alive: bool
    sockets: int
    taken_by: str | None


class Kept(Protocol):
    """A subject's programs, started, with all that comes of them."""

    @property
    def started(self) -> tuple[int, ...]: ...

    @property
    def exits(self) -> Sequence[Exit]:
        """How those ended that have, as far as was heard."""
        ...

    @property
    def tree(self) -> Tree:
        """For accounting."""
        ...

    def alive(self) -> bool:
        """Whether any process is left, a daemonised one included."""
        ...

    def poll(self, timeout_s: float) -> None:
        """Wait for news, at most so long."""
        ...

    def end(self, grace_s: float) -> None:
        """SIGTERM, SIGKILL after the grace, until nothing is left. Twice is once."""
        ...

    def log_tail(self) -> str:
        """The end of what the programs printed."""
        ...


class SubjectHost(Protocol):
    """A host that subjects run on."""

    @property
    def address(self) -> str | None:
        """Where it is reached; None for this machine, which is by loopback."""
        ...

    @property
    def cpus(self) -> tuple[int, ...]:
        """Those that a subject may use there."""
        ...

    @property
    def trueload(self) -> tuple[str, ...] | None:
        """The command that is trueload there; None if there is none."""
        ...

    def free_port(self, host: str) -> int:
        """A port of that address that nobody has. Raises ``OSError``."""
        ...

    def taken_by(self, host: str, port: int) -> str | None:
        """Who listens there, for people; None if nobody does."""
        ...

    def folder_of(self, built: Build) -> Path:
        """Where the built subject is there. Raises ``OSError``, ``UserError``."""
        ...

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """For a program there."""
        ...

    def scratch(self) -> contextlib.AbstractContextManager[Path]:
        """A folder there for what a subject leaves about; gone afterwards."""
        ...

    def start(self, orders: Orders) -> contextlib.AbstractContextManager[Kept]:
        """Start programs; leaving the context ends them. Raises ``StartError``."""
        ...

    def look(self, kept: Kept, host: str, port: int) -> Look:
        """How they are."""
        ...

    def listens_on(self, kept: Kept) -> list[str]:
        """Where they listen at all."""
        ...


class LocalHost:
    """This machine. ``trueload`` is the command that a subject starts us by."""

    address = None

    def __init__(self, trueload: tuple[str, ...]) -> None:
        self.trueload: tuple[str, ...] | None = trueload
        self.cpus = tuple(available_cpus())

    def free_port(self, host: str) -> int:
        return sockets.free_port(host)

    def taken_by(self, host: str, port: int) -> str | None:
        return sockets.taken_by(host, port, set())

    def folder_of(self, built: Build) -> Path:
        return built.folder

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        return subject_environment(extra)

    def scratch(self) -> contextlib.AbstractContextManager[Path]:
        return scratch_folder()

    def start(self, orders: Orders) -> contextlib.AbstractContextManager[Processes]:
        return Processes(orders)

    def look(self, kept: Kept, host: str, port: int) -> Look:
        assert isinstance(kept, Processes)
        if not kept.alive():
            return Look(False, 0, None)
        count = sockets.count_sockets(host, port)
        return Look(True, count, sockets.taken_by(host, port, kept.pids()) if count else None)

    def listens_on(self, kept: Kept) -> list[str]:
        assert isinstance(kept, Processes)
        return sockets.listens_on(kept.pids())


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for the log and for what a subject leaves about; gone afterwards. Raises
    ``StartError`` if there can be none."""
    home = cache_folder() / "scratch"
    try:
        make_folder(home)
        path = Path(tempfile.mkdtemp(prefix=cgroup.owner_prefix(), dir=home))
    except OSError as error:
        raise StartError(
            f"there is no folder for what it leaves about: {error}", again=True
        ) from None
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
