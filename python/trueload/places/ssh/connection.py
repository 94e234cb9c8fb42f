"""One connection to a host by the user's own ssh, which every command there shares.

How: the first ssh is the master: it logs in, asks the host what it is, and stays. Its socket is in
a folder that nobody else can enter, and further commands go through that socket. The master ends
when its input ends, so it never outlives the front. If the master has gone, no command connects by
itself: a lost connection stays lost.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import IO

from trueload.deadline import seconds_left
from trueload.errors import HostError, UserError
from trueload.places import ChannelClosedError
from trueload.places.copying import LOOK_S
from trueload.places.host_facts import Host, ScriptResult, parse_host
from trueload.places.local import LocalChannel
from trueload.places.ssh import refusals, scripts

OPTIONS = (
    *("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"),
    *("-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=3"),
)
NO_SSH_HINT = "install it: Debian's package is openssh-client"
LOG_IN_S = 20.0  # 5 s to connect; the rest is for keys and the host's shell
END_S = 1.0
FOLDER_PREFIX = "trueload-ssh-"
LEFT_BEHIND_S = 60.0
SOCKET_BYTES_MAX = 107 - 18  # sun_path of unix(7), less what ssh appends while creating it


class DroppedError(HostError):
    """The ssh server, or one on the way, dropped a log-in, perhaps because it had too many."""


class Connection:
    """An ssh master and its socket; ``close`` and ``cut`` end both."""

    def __init__(
        self,
        destination: str,
        kept_name: str,
        loader: str | None,
        *,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        """Log in; meanwhile ``look`` is called often, and ends it by raising. Raises ``UserError``,
        ``DroppedError`` if it may go better the next time."""
        if shutil.which("ssh") is None:
            raise UserError("ssh is not installed", NO_SSH_HINT)
        self.destination = destination
        self._look = look
        self._folder = private_folder()
        control = f"ControlPath={self._folder}/s"
        self._options = [*OPTIONS, "-o", control]
        probe = scripts.command(scripts.PROBE, kept_name, loader or "")
        mastering = ["-o", "ControlMaster=yes", "-o", "ControlPersist=no"]
        try:
            self._master = LocalChannel(
                ["ssh", *self._options, *mastering, "--", destination, probe]
            )
            try:
                self.host = self._receive_host()
            except BaseException:
                self._master.kill()
                raise
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def argv(self, script: str, *arguments: str) -> list[str]:
        """The local command line that runs a script on the host."""
        # Without a proxy command that fails, ssh would connect again if the master has gone.
        shared = ["-o", "ControlMaster=no", "-o", "ProxyCommand=false"]
        command = scripts.command(script, *arguments)
        return ["ssh", *self._options, *shared, "--", self.destination, command]

    def run(
        self, script: str, *arguments: str, stdin: IO[bytes] | None = None, timeout_s: float
    ) -> ScriptResult:
        """Run a script to its end."""
        try:
            done = subprocess.run(
                self.argv(script, *arguments),
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                capture_output=True,
                timeout=timeout_s,
                check=False,
                process_group=0,
            )
        except subprocess.TimeoutExpired:
            return ScriptResult(None, "", "")
        output = (done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
        return ScriptResult(done.returncode, *output)

    def ask(self, kept_name: str, loader: str | None) -> Host:
        """Ask the host once more, about another program. Raises ``UserError``."""
        ended = self.run(scripts.PROBE, kept_name, loader or "", timeout_s=LOG_IN_S)
        found = scripts.marked(ended.out)
        if found is None:
            raise refusals.explain(self.destination, ended.err, "it does not answer any more")
        return _read_host(self.destination, found)

    @cached_property
    def way(self) -> str | None:
        """The jump host or command through which the user's ssh config reaches the host."""
        with contextlib.suppress(UserError):
            if jump := _configured(self.destination, "proxyjump"):
                return f"the jump host {jump}"
            if command := _configured(self.destination, "proxycommand"):
                return f"the ProxyCommand `{scripts.plain([command])}`"
        return None

    def lost(self, wait_s: float = 0.0) -> str | None:
        """Why the connection was lost, in one line; None if it still exists after ``wait_s``."""
        if self._master.wait(wait_s) is None:
            return None
        return refusals.last_line(self._master.log_tail()) or "the connection has ended"

    def close(self) -> None:
        """Log out; what still runs there loses its input."""
        self._master.close_input()
        self._master.wait(END_S)
        self.cut()

    def cut(self) -> None:
        """End at once. A farewell would have to wait for what is under way on a slow link."""
        self._master.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _receive_host(self) -> Host:
        """Wait for our first line; a shell's greetings before it are ignored."""
        noise: list[str] = []
        try:
            text = scripts.receive_mark(self._read_line, LOG_IN_S, noise)
        except ChannelClosedError:
            raise self._refusal(noise) from None
        if text is not None:
            return _read_host(self.destination, text)
        if noise:
            raise UserError(
                f"the shell on {self.destination} does not run commands: it says"
                f" '{scripts.plain(noise[:3])}'",
                "its start-up files must print nothing, ask nothing and end (.bashrc and the like)",
            )
        if (self._folder / "s").exists():  # ssh makes its socket once it has logged in
            raise HostError(
                f"logged in to {self.destination}, but its shell does not start: nothing came of it"
                f" for {LOG_IN_S:g} s",
                f"`ssh {self.destination} true` shows it; look at its start-up files (.bashrc and"
                " the like)",
            )
        raise HostError(
            f"{self.destination} has let no one log in for {LOG_IN_S:g} s",
            f"`ssh {self.destination} true` must work without asking anything",
        )

    def _read_line(self, timeout_s: float) -> bytes | None:
        deadline_s = time.monotonic() + timeout_s
        while True:
            self._look()
            left_s = seconds_left(deadline_s)
            line = self._master.read_line(min(LOOK_S, left_s))
            if line is not None or left_s <= LOOK_S:
                return line

    def _refusal(self, noise: list[str]) -> UserError:
        code = self._master.wait(END_S)
        log = self._master.log_tail()
        if refusals.is_dropped(log):
            why = refusals.explain(self.destination, log, "")
            return DroppedError(why.message, why.hint)
        if code == 255 or not noise:
            return refusals.explain(self.destination, log, f"ssh ended with {code}")
        return UserError(
            f"the shell on {self.destination} runs no commands: it says '{scripts.plain(noise)}'",
            "the user there needs a shell",
        )


def _read_host(destination: str, line: str) -> Host:
    host = parse_host(line)
    if host is None:
        raise UserError(
            f"what {destination} says about itself cannot be read: '{scripts.plain([line])}'",
            f"`ssh {destination} uname -sm` must print a system and a machine",
        )
    return host


def private_folder() -> Path:
    """Create a private folder, with a path short and plain enough for ssh's socket."""
    for home in (tempfile.gettempdir(), "/tmp"):
        with contextlib.suppress(OSError):
            sweep(Path(home))
            folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=home)
            fits = len(folder.encode()) + len("/s") <= SOCKET_BYTES_MAX
            if fits and re.fullmatch(r"[A-Za-z0-9/._-]+", folder):
                return Path(folder)
            shutil.rmtree(folder, ignore_errors=True)
    raise UserError("there is no folder for ssh's socket", "make /tmp writable, or set TMPDIR")


def sweep(home: Path) -> None:
    """Remove folders that killed fronts have left behind. ssh removes its socket when it ends, and
    a folder that has had none for ``LEFT_BEHIND_S`` will never get one."""
    for folder in home.glob(f"{FOLDER_PREFIX}*"):
        with contextlib.suppress(OSError):
            about = folder.stat()
            old = time.time() - about.st_mtime > LEFT_BEHIND_S
            if old and about.st_uid == os.getuid() and not (folder / "s").exists():
                folder.rmdir()


def host_name(destination: str) -> str:
    """A host's name or network address according to the user's ssh config. Raises ``UserError``."""
    return _configured(destination, "hostname") or destination


def _configured(destination: str, key: str) -> str | None:
    """A setting of the user's ssh config for a host. Raises ``UserError``."""
    try:
        done = subprocess.run(
            ["ssh", "-G", "--", destination],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LOG_IN_S,
            check=False,
        )
    except OSError as error:
        raise UserError("ssh is not installed", NO_SSH_HINT) from error
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"ssh has not read its config for {destination} within {LOG_IN_S:g} s",
            f"`ssh -G {destination}` must end: a `Match exec` in your ssh config may not",
        ) from error
    if done.returncode != 0:
        raise refusals.explain(destination, done.stderr, f"ssh -G ended with {done.returncode}")
    found = re.search(rf"^{key} (.+)$", done.stdout, re.MULTILINE)
    return None if found is None else found[1]
