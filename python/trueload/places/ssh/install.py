"""Installs a folder of Python packages on a host, as a command with an environment of its own.

How: a virtual environment is made by a Python of the host, without pip, and the folder is unpacked
into it. It gets its name only after the sender has said that all was whole. Each installation has a
folder of its own, so a program that runs from an older one goes on; one that none runs from is
removed. Must not know what is installed.
"""

from __future__ import annotations

import re
import shlex
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trueload.errors import UserError
from trueload.places.remote import Ended
from trueload.places.ssh import refusals, scripts
from trueload.places.ssh.connection import Connection
from trueload.places.ssh.packing import Packing

ASK_S = 20.0
COPY_S = 300.0  # for 20 MB over a slow link
LATEST = 30  # python3.30 will do for some years
COMPRESSED = ("-z",)
# What a host's Python says of itself. It cannot make environments without its module venv.
ABOUT_PYTHON = (
    "import sys, sysconfig, venv;"
    f' print("{scripts.MARK}", sysconfig.get_config_var("SOABI"),'
    ' "%d.%d" % sys.version_info[:2], sys.executable)'
)


@dataclass(frozen=True)
class Python:
    """A Python. ``abi`` names the compiled modules that it can load (``SOABI`` of sysconfig), like
    cpython-311-x86_64-linux-gnu."""

    path: str
    abi: str
    version: tuple[int, int]


def find_python(connection: Connection, least: tuple[int, int], abi: str) -> Python:
    """Find a Python of the host, one with this ABI if there is. Raises ``UserError``."""
    names = ("python3", *(f"python3.{minor}" for minor in range(least[1], LATEST)))
    ended = connection.run(scripts.FIND_PYTHON, ABOUT_PYTHON, *names, timeout_s=ASK_S)
    found = list(_pythons(ended.out))
    chosen = choose_python(found, least, abi)
    if chosen is not None:
        return chosen
    least_text = ".".join(map(str, least))
    newest = max((python.version for python in found), default=None)
    has = f", only {newest[0]}.{newest[1]}" if newest else ""
    raise UserError(
        f"{connection.destination} has no Python {least_text} or newer{has}",
        f"install one there: `ssh {connection.destination} python3 --version` must show it",
    )


def choose_python(found: Iterable[Python], least: tuple[int, int], abi: str) -> Python | None:
    """The Python to install for: one with this ABI, else the first that is new enough. Pure."""
    fit = [each for each in found if each.version >= least and each.abi.startswith("cpython-")]
    return next((each for each in fit if each.abi == abi), fit[0] if fit else None)


def put(connection: Connection, python: Python, folder: Path, name: str, command: str) -> str:
    """Install a folder under a name of its own; its ``bin/command`` is the command. Return the
    command's path there. Raises ``UserError``."""
    name = f"{name}-{uuid.uuid4().hex[:8]}"
    with Packing(folder, COMPRESSED) as packing:
        asked = (command, name, python.path)
        ended = connection.run(scripts.INSTALL, *asked, stdin=packing.stdout, timeout_s=COPY_S)
        why = packing.fault() if ended.code == 0 else None
    if ended.code == 0 and why is None:
        ended = connection.run(scripts.KEEP_INSTALLED, command, name, timeout_s=COPY_S)
        found = scripts.marked(ended.out)
        if ended.code == 0 and found is not None:
            return found
    connection.run(scripts.DROP_INSTALLED, command, name, timeout_s=COPY_S)
    if why is None:
        raise _refusal(connection.destination, command, ended)
    raise UserError(
        f"{folder} cannot be packed for {connection.destination}: {why}",
        f"`tar -czf /dev/null -C {shlex.quote(str(folder))} .` must work",
    )


def _refusal(destination: str, command: str, ended: Ended) -> UserError:
    how = f"took more than {COPY_S:g} s" if ended.code is None else f"ended with {ended.code}"
    why = refusals.last_line(ended.err) or f"it {how}"
    return UserError(
        f"{command} cannot be installed on {destination}: {why}",
        "the user there needs a home folder that can be written, with 60 MB of space",
    )


def _pythons(output: str) -> Iterable[Python]:
    for line in output.splitlines():
        found = re.fullmatch(rf"{scripts.MARK} (\S+) (\d+)\.(\d+) (/.*)", line)
        if found is not None:
            yield Python(found[4], found[1], (int(found[2]), int(found[3])))
