"""The machine and the program versions behind a set of numbers.

Reports show them so that nobody compares numbers of different machines.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

# The command that prints each program's version; some exit with a code other than 0. hey has no
# version flag: its version is the Debian package's.
VERSION_COMMANDS = {
    "wrk": ("wrk", "-v"),
    "h2load": ("h2load", "--version"),
    "ab": ("ab", "-V"),
    "hey": ("dpkg-query", "-W", "-f", "${Version}", "hey"),
    "nginx": ("nginx", "-v"),
}
DEBIAN_PACKAGES = {
    "wrk": "wrk",
    "h2load": "nghttp2-client",
    "ab": "apache2-utils",
    "hey": "hey",
    "nginx": "nginx-light",
    "c/epoll": "gcc",
}
# The program to look for on the PATH, where its name differs.
PROGRAMS = {"c/epoll": "cc"}


@dataclass(frozen=True)
class Machine:
    """The machine that the numbers were measured on."""

    cpu_model: str
    cpu_count: int
    kernel: str
    congestion_control: str
    """Some kinds pace each connection, which costs both ends time."""
    date: str
    versions: Mapping[str, str]

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        cpus = f"{self.cpu_model}, {self.cpu_count} CPUs"
        tcp = f"TCP congestion control {self.congestion_control}"
        tools = f"\n{versions}." if versions else ""
        return f"{cpus}, Linux {self.kernel}, {tcp}, {self.date}.{tools}"


def describe(more: Mapping[str, tuple[str, ...]] | None = None) -> Machine:
    """Describe this machine; `more` adds programs, each with the command that says its version."""
    commands = {**VERSION_COMMANDS, **(more or {})}
    # The command may exist without the program itself: dpkg-query does for hey.
    absent = absent_programs()
    return Machine(
        cpu_model=_cpu_model(),
        cpu_count=os.cpu_count() or 1,
        kernel=platform.release(),
        congestion_control=_congestion_control(),
        date=date.today().isoformat(),
        versions={
            name: _version(command)
            for name, command in commands.items()
            if name not in absent and _found(command[0])
        },
    )


def absent_programs() -> dict[str, str]:
    """The programs that are not installed, each with the reason to print."""
    return {
        name: f"not installed (Debian: {package})"
        for name, package in DEBIAN_PACKAGES.items()
        if not _found(PROGRAMS.get(name, name))
    }


def _found(program: str) -> bool:
    return shutil.which(program, path=_PATH) is not None


# Debian has nginx in /usr/sbin, which only root's PATH includes.
_PATH = os.environ.get("PATH", "") + ":/usr/sbin"


def _cpu_model() -> str:
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return found[1].strip() if found else platform.machine()


def _congestion_control() -> str:
    try:
        return Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    except OSError:
        return "unknown"


def _version(command: tuple[str, ...]) -> str:
    environment = {**os.environ, "PATH": _PATH}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    found = re.search(r"\d+\.\d+(\.\d+)?", ran.stdout + ran.stderr)
    return found[0] if found else "unknown"
