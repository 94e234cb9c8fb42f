"""A host on which a command runs what is appended to it: ``kubectl exec -i POD --`` and the like.

How: the command is started with a small script for the host's shell behind it. One asks the host
what it is, one keeps the program there by its SHA-256, one runs it; its input and output are the
channel. Each is a local process of its own. If the front ends in any way, the program's input ends,
and an engine ends with it.
"""

from __future__ import annotations

import contextlib
import shlex
import threading
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trueload.closeable import Closeable
from trueload.errors import HostError, UserError
from trueload.places import ChannelClosedError, CutOffError
from trueload.places.copying import Copying, run_fed
from trueload.places.host_facts import Host, ScriptResult, check_host, parse_host
from trueload.places.program import Program, fitting, read_program
from trueload.places.ssh import refusals, scripts
from trueload.places.ssh.channel import RemoteChannel
from trueload.text import signal_text

PROBE_S = 20.0  # a cluster's API may be slow
COPY_S = 300.0
KILL_S = 2.0
ONCE_CHARS = 8
HINT = "install it, or correct the command behind exec:"
NOT_FOUND = (126, 127)  # exit codes of a shell for what it cannot run

# Arguments: the kept name, and the loader or nothing. Reads one line, and prints whether that came
# and what the host is.
PROBE = (
    f'IFS= read -r l; [ "$l" = {scripts.MARK} ] && printf "\\n{scripts.MARK}-input\\n";'
    f" {scripts.PROBE}"
)


class CommandPlace(Closeable):
    """A host behind a command. ``name`` is the place's name in the record. A context manager.

    Unless it is to ``keep`` programs for later, it removes them at its end.
    """

    def __init__(self, name: str, argv: Sequence[str], *, keep: bool = True) -> None:
        self.name = name
        self._once = "" if keep else uuid.uuid4().hex[:ONCE_CHARS]
        self._copies: set[str] = set()
        self._argv = tuple(argv)
        self._there: set[str] = set()
        self._machine: str | None = None
        self._lock = threading.Lock()

    def prepare(self, program: Path, copying: Copying | None = None) -> None:
        """Make sure that the program is there, and can run. Raises ``UserError``."""
        self._ready(self._read(program), copying or Copying())

    def open(self, argv: Sequence[str]) -> CommandChannel:
        """Start a copy of the program ``argv[0]``. Raises ``UserError``, ``OSError``."""
        program = self._ready(self._read(Path(argv[0])), Copying())
        return CommandChannel(self, program.kept_name, argv[1:])

    @property
    def command(self) -> str:
        """The command's first word."""
        return self._argv[0]

    def script(self, script: str, *arguments: str) -> list[str]:
        """The local command line that runs a script on the host."""
        return [*self._argv, "sh", "-c", script, "sh", *arguments]

    def close(self) -> None:
        """Remove the programs that are not to be kept."""
        copies, self._copies = self._copies, set()
        self._there.clear()
        for name in copies if self._once else ():
            self._attempt(scripts.DROP, name)

    def kill(self, kept_name: str, pid: str) -> None:
        """Kill a process of the program there."""
        self._attempt(scripts.KILL, kept_name, pid)

    def _read(self, path: Path) -> Program:
        return replace(read_program(path), once=self._once)

    def _attempt(self, script: str, *arguments: str) -> None:
        argv = self.script(script, *arguments)
        with contextlib.suppress(UserError):
            run_fed(argv, b"", Copying(), timeout_s=KILL_S)

    def _run(
        self, script: str, *arguments: str, data: bytes, copying: Copying, timeout_s: float
    ) -> ScriptResult:
        """Run a script to its end, with ``data`` as its input. Raises ``UserError``."""
        argv = self.script(script, *arguments)
        return run_fed(argv, data, copying, timeout_s=timeout_s, hint=HINT)

    def refusal(self, what: str, output: str = "") -> UserError:
        """The error for a host that cannot be used now, with the last line of the output."""
        last = refusals.last_line(output)
        words = shlex.join(self._argv)
        return HostError(
            f"{self.name} {what}{f': {last}' if last else ''}",
            f"`{words} echo ok` must print ok, and pass on its input",
        )

    def _ready(self, program: Program, copying: Copying) -> Program:
        """Make sure that the program for this kind of machine is there, and return it."""
        with self._lock:
            if self._machine is not None:
                program = fitting(program, self._machine)
            if program.sha256 in self._there:
                return program
            host = self._probe(program, copying)
            self._machine = host.machine
            other = fitting(program, host.machine)
            if other is not program:
                program, host = other, self._probe(other, copying)
            check_host(self.name, host, program)
            if not host.has_program:
                self._copy(program, copying)
            self._there.add(program.sha256)
            return program

    def _probe(self, program: Program, copying: Copying) -> Host:
        asked = (program.kept_name, program.loader or "")
        line = f"{scripts.MARK}\n".encode()
        ended = self._run(PROBE, *asked, data=line, copying=copying, timeout_s=PROBE_S)
        if ended.code is None:
            raise self.refusal(f"has not answered within {PROBE_S:g} s")
        host = parse_host(scripts.marked(ended.out) or "")
        if host is None:
            without = " (it needs a shell, sh)" if ended.code in NOT_FOUND else ""
            raise self.refusal(f"runs no commands{without}", ended.err)
        if f"{scripts.MARK}-input" not in ended.out.splitlines():
            raise UserError(
                f"{self.name} does not pass on its input",
                "docker exec and kubectl exec need -i",
            )
        return host

    def _copy(self, program: Program, copying: Copying) -> None:
        copying.begin(len(program.data))
        self._copies.add(program.kept_name)
        asked = (scripts.KEEP, program.kept_name)
        ended = self._run(*asked, data=program.data, copying=copying, timeout_s=COPY_S)
        if ended.code == 0:
            return
        how = f"took more than {COPY_S:g} s" if ended.code is None else f"ended with {ended.code}"
        if ended.code == scripts.KEEP_DAMAGED and not ended.err:
            how = "was damaged on its way"
        last = refusals.last_line(ended.err) or how
        raise UserError(f"the engine cannot be copied to {self.name}: {last}", self._folder_hint())

    def _folder_hint(self) -> str:
        """How to name another folder for programs there."""
        words = shlex.join(self._argv)
        return f"name a folder there that is writable: exec:'{words} env TRUELOAD_CACHE=/FOLDER'"


class CommandChannel(RemoteChannel):
    """A program on the host, connected through the local process of the command."""

    def __init__(self, place: CommandPlace, kept_name: str, arguments: Sequence[str]) -> None:
        self._place = place
        self._kept_name = kept_name
        super().__init__(place.script(scripts.RUN_AND_TELL, kept_name, *arguments))

    def wait(self, timeout_s: float) -> int | None:
        code = super().wait(timeout_s)
        return scripts.SIGNALLED - code if code is not None and code > scripts.SIGNALLED else code

    def kill(self) -> None:
        """Kill the program there, and the command here."""
        running = super().wait(0) is None
        super().kill()
        if running:
            pid = str(self._pid)
            self._place.kill(self._kept_name, pid)

    def log_tail(self) -> str:
        """The last part of what it wrote to stderr, without our own line."""
        return super().log_tail().replace(f"{scripts.ENDED}\n", "")

    def _closed(self, error: ChannelClosedError) -> ChannelClosedError:
        """The error for the end: the command's own, unless the program has ended."""
        code, log = super().wait(KILL_S), super().log_tail()
        if code is None:
            how = f"runs on, but: {error}"
        elif code < 0:
            how = f"was killed: {signal_text(-code)}"
        elif code > scripts.SIGNALLED or scripts.ENDED in log:
            return error
        else:
            last = refusals.last_line(log)
            how = f"ended with exit code {code}{f': {last}' if last else ''}"
        return CutOffError(f"the command here, `{self._place.command} …`, {how}")

    def _not_started(self, *, has_ended: bool) -> UserError:
        if has_ended:
            ended = f"has not started the engine: the command ended with {super().wait(KILL_S)}"
            return self._place.refusal(ended, self.log_tail())
        return self._place.refusal(f"has not started the engine within {scripts.START_S:g} s")
