"""What some tests need besides the tools that the README names, and where to get it.

    tools/needs.py install             installs the missing Debian packages, if that is permitted
    tools/needs.py run NEED COMMAND    runs a check, or skips it if what it needs is missing
    tools/needs.py report              prints how many tests were skipped, and what they need

``make test`` begins with the first and ends with the last; in between, the tests skip by the same
table (``tests/needing.py``). As it runs before the set-up, it uses only the standard library.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

# Ordinary users of Debian do not have the folders of system programs on their PATH.
SEARCHED = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
# What must not be skipped; `.ci/run` sets it to `all`.
STRICT = os.environ.get("TEST_NEEDS") == "all"
ANSWER_S = 60.0
VERSION_TIMEOUT_S = 20.0

# No service that a package brings is started: the tests start what they need. If one package cannot
# be had, the others still are.
INSTALL = r"""
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt() { apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20 "$@" >/dev/null; }
apt update
apt install --yes --no-install-recommends "$@" && exit
for package; do apt install --yes --no-install-recommends "$package"; done
"""


@dataclass(frozen=True)
class Need:
    """Something that tests need: commands (``go>=1.25``) and headers (``ev.h``)."""

    name: str
    parts: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """Debian's packages that bring it."""
    otherwise: str = ""
    """Where to get it if Debian has no package, or too old a one."""

    @property
    def cure(self) -> str:
        """What the user can do to get it."""
        return self.otherwise or f"apt-get install {' '.join(self.packages)}"

    def is_met(self) -> bool:
        """Whether it is here."""
        if self.name == "root":
            return os.geteuid() == 0
        if self.name == "namespaces":
            return unshare("--net") is not None
        return all(map(_is_here, self.parts))


NEEDS = {
    need.name: need
    for need in (
        Need("chromium", ("chromium",), ("chromium",)),
        Need("git", ("git",), ("git",)),
        Need("go", ("go>=1.24",), otherwise="Go 1.24 or newer from https://go.dev/dl"),
        Need("iproute2", ("ip", "ss"), ("iproute2",)),
        Need("ldc", ("ldc2",), ("ldc",)),
        Need(
            "libcurl",
            ("curl-config", "curl/curl.h", "jansson.h"),
            ("libcurl4-openssl-dev", "libjansson-dev"),
        ),
        Need("libev", ("ev.h",), ("libev-dev",)),
        Need("liburing", ("liburing.h",), ("liburing-dev",)),
        Need("namespaces", otherwise="run as root, where the kernel allows namespaces"),
        Need("node", ("node>=18", "npm"), ("nodejs", "npm")),
        Need("root", otherwise="run as root"),
        Need("ssh", ("ssh", "sshd"), ("openssh-client", "openssh-server")),
        Need("util-linux", ("nsenter", "prlimit", "unshare"), ("util-linux",)),
    )
}


def _is_here(part: str) -> bool:
    if part.endswith(".h"):
        return any(any(Path("/usr/include").glob(at)) for at in (part, f"*/{part}"))
    name, _, wanted = part.partition(">=")
    return shutil.which(name, path=SEARCHED) is not None and _version(name) >= _numbers(wanted)


def _version(name: str) -> list[int]:
    command = [name, "version" if name == "go" else "--version"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return _numbers(done.stdout)


def _numbers(text: str) -> list[int]:
    found = re.search(r"\d+(\.\d+)*", text)
    return [int(number) for number in found[0].split(".")] if found else []


def unshare(*kinds: str) -> tuple[str, ...] | None:
    """Return the command that runs another in new namespaces; None if that is not permitted."""
    own = () if os.geteuid() == 0 else ("--map-root-user",)
    command = ("unshare", *own, *kinds)
    try:
        tried = subprocess.run([*command, "true"], capture_output=True, check=False)
    except OSError:
        return None
    return command if tried.returncode == 0 else None


# --- before the tests


def install() -> int:
    """Install the missing packages if that is permitted; return the exit code."""
    wanted = [package for need in _missing() for package in need.packages]
    if wanted and (how := _permitted(wanted)) is not None:
        print(f"installing for the tests, in some minutes: {' '.join(wanted)}", flush=True)
        subprocess.run([*how, "sh", "-c", INSTALL, "sh", *wanted], check=False)
    missing = _missing()
    if missing:
        names = ", ".join(need.name for need in missing)
        print(f"tests that need these are skipped: {names}", flush=True)
    return 1 if STRICT and missing else 0


def _missing() -> list[Need]:
    return [need for need in NEEDS.values() if not need.is_met()]


def _permitted(packages: Sequence[str]) -> tuple[str, ...] | None:
    """Return what a command is prefixed with to install packages; None if it must not be."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return ()
    if shutil.which("sudo") is None:
        return None
    if os.environ.get("CI") == "true" or not (sys.stdin.isatty() and sys.stdout.isatty()):
        quietly = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False)
        return ("sudo", "-n") if quietly.returncode == 0 else None
    print(f"Some tests need Debian packages that are missing: {' '.join(packages)}")
    print(
        "Install them with sudo? Without them these tests are skipped. [Y/n] ", end="", flush=True
    )
    answered, _, _ = select.select([sys.stdin], [], [], ANSWER_S)
    answer = sys.stdin.readline() if answered else ""
    return ("sudo",) if answer.strip().lower() in ("y", "yes") or answer == "\n" else None


# --- while tests run, and after them


def note(name: str, tests: Iterable[str]) -> None:
    """Add tests that were skipped to the list of `make test`, if it runs."""
    if path := os.environ.get("SKIPPED_TESTS"):
        with Path(path).open("a") as listed:
            listed.writelines(f"{name} {test}\n" for test in tests)


def run(name: str, command: Sequence[str]) -> int:
    """Run a check if what it needs is here; return the exit code."""
    if NEEDS[name].is_met():
        return subprocess.run(command, check=False).returncode
    print(f"skipped: {command[-1]} needs {name} ({NEEDS[name].cure})")
    note(name, command[-1:])
    return 1 if STRICT else 0


def summary(skipped: Iterable[tuple[str, str]]) -> str:
    """Return how many tests were skipped for what, from pairs of a need's name and a test."""
    counts = Counter(name for name, _ in sorted(set(skipped)))
    if not counts:
        return "skipped, as a package or a tool is missing: no tests"
    lines = (f"{count:6} for {name}: {NEEDS[name].cure}" for name, count in counts.items())
    return "\n".join(["skipped, as a package or a tool is missing:", *lines])


def report() -> int:
    """Print the summary of the tests on the list; return the exit code."""
    path = Path(os.environ["SKIPPED_TESTS"])
    lines = path.read_text().splitlines() if path.exists() else []
    print(summary((name, test) for name, _, test in (line.partition(" ") for line in lines)))
    return 0


def main(verb: str, *words: str) -> int:
    """Do what the Makefile asks for."""
    if verb == "run":
        return run(words[0], words[1:])
    return {"install": install, "report": report}[verb]()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C at the question: make says enough
    sys.exit(main(*sys.argv[1:]))
