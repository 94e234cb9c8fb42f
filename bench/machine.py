"""The machine and the versions behind a set of numbers, so that nobody compares across machines."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

# How each program says its version; several do so with an exit code of their own.
VERSION_COMMANDS = {
    "wrk": ("wrk", "-v"),
    "ab": ("ab", "-V"),
    "h2load": ("h2load", "--version"),
    "nginx": ("nginx", "-v"),
}
DEBIAN_PACKAGES = {
    "wrk": "wrk",
    "ab": "apache2-utils",
    "h2load": "nghttp2-client",
    "nginx": "nginx-light",
}


@dataclass(frozen=True)
class Machine:
    """What the numbers were measured on."""

    cpu_model: str
    cpu_count: int
    kernel: str
    versions: dict[str, str]

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return f"{self.cpu_model}, {self.cpu_count} CPUs, Linux {self.kernel}\n{versions}"


def describe() -> Machine:
    """This machine."""
    return Machine(
        cpu_model=_cpu_model(),
        cpu_count=os.cpu_count() or 1,
        kernel=platform.release(),
        versions={name: _version(command) for name, command in VERSION_COMMANDS.items()},
    )


def missing_programs() -> list[str]:
    """Programs that are not installed, each with the Debian package that has it."""
    path = os.environ.get("PATH", "") + ":/usr/sbin"
    return [
        f"{name} (Debian: {package})"
        for name, package in DEBIAN_PACKAGES.items()
        if shutil.which(name, path=path) is None
    ]


def _cpu_model() -> str:
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return found[1].strip() if found else platform.machine()


def _version(command: tuple[str, ...]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.\d+(\.\d+)?", ran.stdout + ran.stderr)
    return found[0] if found else "unknown"
