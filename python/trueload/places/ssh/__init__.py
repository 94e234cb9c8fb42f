"""A host reached by ssh, as a place. It uses the user's own ``ssh``; nothing of ours listens there.

How: there is one connection per host. The program is copied there once, identified by its SHA-256,
and started through that connection; its input and output are the channel. If the front ends in any
way, the program's input ends, and an engine ends with it.
"""

from __future__ import annotations

import shlex
import threading
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trueload.closeable import Closing
from trueload.errors import UserError
from trueload.places.copying import CalledOffError, Copying, run_fed
from trueload.places.host_facts import Ended, check_host
from trueload.places.program import Program, fitting, read_program
from trueload.places.ssh import refusals, scripts
from trueload.places.ssh.channel import SshChannel
from trueload.places.ssh.connection import Connection
from trueload.places.ssh.logins import log_in
from trueload.places.ssh.packing import Packing

DROP_S = 2.0
ONCE_CHARS = 8
COPY_S = 300.0  # for 20 MB over a slow link
# Parts of a build that only its compiler needs.
NOT_COPIED = tuple(f"--exclude=target/*/{each}" for each in ("deps", "build", "incremental"))
__all__ = ["SshChannel", "SshPlace"]


class SshPlace(Closing):
    """A host as named in the user's ssh config: ``host``, or ``user@host``. A context manager.

    Unless it is to ``keep`` programs for later, it removes them at its end.
    """

    def __init__(self, destination: str, *, keep: bool = True) -> None:
        self._destination = destination
        self._once = "" if keep else uuid.uuid4().hex[:ONCE_CHARS]
        self._copies: set[str] = set()
        self._connection: Connection | None = None
        self._there: set[str] = set()
        self._started = False
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The place's name in the record."""
        return f"ssh:{self._destination}"

    @property
    def connection(self) -> Connection:
        """The connection, once the place has been prepared."""
        assert self._connection is not None, "it has not been prepared"
        return self._connection

    def prepare(self, program: Path, copying: Copying | None = None) -> None:
        """Log in, and make sure that the program is there. Raises ``UserError``."""
        self._ready(self._read(program), copying or Copying())

    def open(self, argv: Sequence[str]) -> SshChannel:
        """Start a copy of the program ``argv[0]``. Raises ``UserError``, ``OSError``."""
        connection, program = self._ready(self._read(Path(argv[0])), Copying())
        self._started = True
        return SshChannel(connection, program.kept_name, argv[1:])

    def put_folder(self, folder: Path, key: str) -> Path:
        """Copy a folder to the host once, identified by its key (hex, of its content). Return its
        path there. Raises ``UserError``. The place must have been prepared."""
        connection = self.connection
        copy = uuid.uuid4().hex
        with Packing(folder, NOT_COPIED) as packing:
            ended = connection.run(
                scripts.COPY_FOLDER, key, copy, stdin=packing.stdout, timeout_s=COPY_S
            )
            kept = self._where(folder, ended)
            if not kept and (why := packing.fault()) is not None:
                connection.run(scripts.DROP_FOLDER, key, copy, timeout_s=COPY_S)
                raise UserError(
                    f"{folder} cannot be packed for {self._destination}: {why}",
                    f"`tar -cf /dev/null -C {shlex.quote(str(folder))} .` must work",
                )
        if not kept:
            ended = connection.run(scripts.KEEP_FOLDER, key, copy, timeout_s=COPY_S)
            kept = self._where(folder, ended)
        return Path(kept)

    def _where(self, folder: Path, ended: Ended) -> str:
        """The folder's path as a script printed it; empty if the folder is not kept yet."""
        found = scripts.marked(ended.out)
        if ended.code == 0 and found is not None:
            return found
        raise self._refusal(str(folder), ended)

    def close(self) -> None:
        """Log out; what still runs there ends."""
        connection, self._connection = self._connection, None
        self._there.clear()
        if connection is None:
            return
        if not self._started and not self._once:
            connection.cut()  # nothing runs there that should end by itself
            return
        if self._once and connection.lost() is None:
            for name in self._copies:
                connection.run(scripts.DROP, name, timeout_s=DROP_S)
        connection.close()

    def _read(self, path: Path) -> Program:
        return replace(read_program(path), once=self._once)

    def _ready(self, program: Program, copying: Copying) -> tuple[Connection, Program]:
        """Make sure that the program for this kind of machine is there, and return it."""
        with self._lock:
            # A lost host may be back: what was under way there has ended by then.
            if self._connection is not None and self._connection.lost() is not None:
                self.close()
            if self._connection is None:
                self._connection = log_in(self._destination, program, copying)
                if self._connection.host.has_program:
                    self._there.add(program.sha256)
            connection, host = self._connection, self._connection.host
            fit = fitting(program, host.machine)
            if fit.sha256 not in self._there:
                if fit is not program:
                    host = connection.ask(fit.kept_name, fit.loader)
                check_host(self._destination, host, fit)
                if fit is program or not host.has_program:
                    self._copy(connection, fit, copying)
                self._there.add(fit.sha256)
            return connection, fit

    def _copy(self, connection: Connection, program: Program, copying: Copying) -> None:
        copying.begin(len(program.data))
        self._copies.add(program.kept_name)
        argv = connection.argv(scripts.KEEP, program.kept_name)
        try:
            ended = run_fed(argv, program.data, copying, timeout_s=COPY_S)
        except CalledOffError:
            connection.cut()
            raise
        if ended.code != 0:
            raise self._refusal("the engine", ended)

    def _refusal(self, what: str, ended: Ended) -> UserError:
        how = f"took more than {COPY_S:g} s" if ended.code is None else f"ended with {ended.code}"
        if ended.code == scripts.KEEP_DAMAGED and not ended.err:
            how = "was damaged on its way"
        return refusals.explain_keep(self._destination, ended.err, f"the copy of {what} {how}")
