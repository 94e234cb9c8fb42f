"""The host that a subject runs on: this machine, or another with the same interface.

How: here, the calls go to the kernel; elsewhere (``remote_host``), to the agent.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from trueload.files.catalogue import cache_folder
from trueload.files.private import make_folder
from trueload.runner import cgroup, sockets
from trueload.runner.build import Build
from trueload.runner.cpus import available_cpus
from trueload.runner.environment import subject_environment
from trueload.runner.process import Orders, Processes, StartError

if TYPE_CHECKING:
    from trueload.runner.remote_host import RemoteHost, RemoteProcesses


class LocalHost:
    """This machine.

    ``trueload`` is the command by which a subject starts trueload; None if there is none.
    ``address`` is the address at which the host is reached; None for loopback.
    """

    address = None

    def __init__(self, trueload: tuple[str, ...]) -> None:
        self.trueload: tuple[str, ...] | None = trueload
        self.cpus = tuple(available_cpus())
        """The CPUs that a subject may use."""

    def free_port(self, host: str) -> int:
        """Return a port of that address that nobody uses. Raises ``OSError``."""
        return sockets.free_port(host)

    def taken_by(self, host: str, port: int) -> str | None:
        """Return the program that listens on a port, as a text; None if none does."""
        return sockets.taken_by(host, port, set())

    def folder_of(self, built: Build) -> Path:
        """Return the folder of the built subject. Raises ``OSError``, ``UserError``."""
        return built.folder

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """Return the environment for a program on this host."""
        return subject_environment(extra)

    def scratch(self) -> contextlib.AbstractContextManager[Path]:
        """Return a folder for a subject's files; it is removed afterwards."""
        return scratch_folder()

    def start(self, orders: Orders) -> contextlib.AbstractContextManager[Processes]:
        """Start programs; leaving the context ends them. Raises ``StartError``."""
        return Processes(orders)


SubjectHost: TypeAlias = "LocalHost | RemoteHost"
"""A host that subjects run on."""
Kept: TypeAlias = "Processes | RemoteProcesses"
"""The started programs of a subject."""


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder for the log and a subject's files; it is removed afterwards. Raises
    ``StartError`` if there can be none."""
    home = cache_folder() / "scratch"
    try:
        make_folder(home)
        path = Path(tempfile.mkdtemp(prefix=cgroup.owner_prefix(), dir=home))
    except OSError as error:
        raise StartError(f"no folder can be made for its files: {error}", again=True) from None
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
