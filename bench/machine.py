"""The machine and the versions behind a set of numbers, so that nobody compares across machines."""

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

# How each program says its version; several do so with an exit code of their own. hey has no
# word for it: its Debian package says it.
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
# What must be on the PATH for it, where that is called otherwise.
PROGRAMS = {"c/epoll": "cc"}


@dataclass(frozen=True)
class Machine:
    """What the numbers were measured on."""

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
        return f"{cpus}, Linux {self.kernel}, {tcp}, {self.date}.\n{versions}."


def describe(more: Mapping[str, tuple[str, ...]] | None = None) -> Machine:
    """This machine; `more` are further programs, with the commands that say their versions."""
    commands = {**VERSION_COMMANDS, **(more or {})}
    # What tells a version may be there without the program itself: dpkg-query for hey.
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
    """What is not installed, each with the reason to tell."""
    return {
        name: f"not installed (Debian: {package})"
        for name, package in DEBIAN_PACKAGES.items()
        if not _found(PROGRAMS.get(name, name))
    }


def _found(program: str) -> bool:
    return shutil.which(program, path=_PATH) is not None


# Where Debian has nginx, whether root asks or not.
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
