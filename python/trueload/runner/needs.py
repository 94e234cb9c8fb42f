"""What a subject needs of the machine, and whether it is there.

How: each tool's own version command runs once, in bounded time, in a neutral folder. A missing need
is a reason to skip, in one line with the next step. A program that a command names and the machine
does not have counts as a need, whether it is stated or not.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

from trueload.runner.environment import build_environment
from trueload.subjects.manifest import TOOL_PATTERN, Subject
from trueload.text import without_escapes

# A Java virtual machine that starts cold on a busy machine takes seconds.
VERSION_TIMEOUT_S = 20.0
# Tools whose version option is not --version.
_VERSION_ARGUMENTS = {
    "go": ("version",),
    "java": ("-version",),
    "javac": ("-version",),
    "apache2": ("-v",),
    "caddy": ("version",),
    "haproxy": ("-v",),
    "nginx": ("-v",),
    "zig": ("version",),
    "kotlinc": ("-version",),
    "erl": ("-version",),
    "lua": ("-v",),
}


# The command that makes the certificate of a subject that answers over TLS, beside its files. It is
# self-signed, as the measuring client does not check the issuer.
CERTIFICATE = (
    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
    *("-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "36500", "-subj", "/CN=subject"),
)


def missing(subject: Subject) -> str | None:
    """Return why the subject cannot be built or run here, in one line; None if it can."""
    manifest = subject.manifest
    # Packages first: they bring the tools, and the user can install them.
    if absent := missing_packages(subject):
        packages = " ".join(absent)
        return (
            f"needs the Debian package{'s' if len(absent) > 1 else ''} {packages}: "
            f"`sudo apt-get install {packages}`"
        )
    for need in manifest.needs.tools:
        if reason := _tool_missing(need):
            return reason
    made = (CERTIFICATE,) if manifest.shows_certificate else ()
    for argv in (*made, *manifest.fetch, *manifest.build, manifest.run):
        program = argv[0]
        if "/" not in program and "{" not in program and find_program(program) is None:
            return f"{program} is not installed"
    return None


def missing_packages(subject: Subject) -> list[str]:
    """Return the Debian packages that the subject names and the machine lacks.

    If the tools are there, from whatever source, only libraries are checked: the other packages
    bring the tools.
    """
    named = subject.manifest.needs
    tools_are_there = bool(named.tools) and not any(map(_tool_missing, named.tools))
    return [
        package
        for package in named.debian
        if (_is_library(package) or not tools_are_there) and not _installed(package)
    ]


def _is_library(package: str) -> bool:
    """Whether a package is a library by its name (Debian Policy Manual, chapter 8)."""
    return package.startswith("lib") or package.endswith("-dev")


def tool_versions(subject: Subject) -> dict[str, str]:
    """Return the versions of its tools, by tool, without tools that do not tell theirs."""
    manifest = subject.manifest
    versions = {}
    for need in manifest.needs.tools:
        if match := TOOL_PATTERN.fullmatch(need):
            versions[match[1]] = tool_version(match[1]) or ""
    if manifest.version and "/" not in manifest.version[0] and "{" not in manifest.version[0]:
        versions[manifest.version[0]] = first_line(manifest.version) or ""
    return {tool: version for tool, version in versions.items() if version}


def find_program(name: str) -> str | None:
    """Return the path of a program, found as a subject would find it."""
    return shutil.which(name, path=build_environment({})["PATH"])


@functools.cache
def tool_version(tool: str) -> str | None:
    """Return the first line of the tool's version output; None if the tool is not there."""
    return first_line((tool, *_VERSION_ARGUMENTS.get(tool, ("--version",))))


@functools.cache
def first_line(argv: tuple[str, ...], folder: Path = Path("/")) -> str | None:
    """Return the first line that a short command prints, on either output; None if it fails."""
    program = str(folder / argv[0]) if "/" in argv[0] else find_program(argv[0])
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=VERSION_TIMEOUT_S,
            env=build_environment({}),
            cwd=folder,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Some tools print colours even into a pipe: their digits are no version.
    text = without_escapes(done.stdout.decode(errors="replace"))
    lines = ["".join(filter(str.isprintable, line)).strip() for line in text.splitlines()]
    # A Java virtual machine first announces options from the environment.
    printed = [line for line in lines if line and not line.startswith("Picked up ")]
    return printed[0][:200] if done.returncode == 0 and printed else None


def version_satisfies(version: str, operator: str, wanted: str) -> bool:
    """Whether a version line meets a need such as >= 1.22; only the parts named count."""
    found = re.search(r"\d+(?:\.\d+)*", version)
    if found is None:
        return False
    parts = [int(part) for part in wanted.split(".")]
    have = [int(part) for part in found[0].split(".")][: len(parts)]
    have += [0] * (len(parts) - len(have))
    return {">=": have >= parts, "==": have == parts, "<": have < parts}[operator]


def _tool_missing(need: str) -> str | None:
    match = TOOL_PATTERN.fullmatch(need)
    if match is None:
        return f"{need!r} is not a tool"
    tool, operator, wanted = match.groups()
    if find_program(tool) is None:
        return f"{tool} is not installed"
    if operator is None:
        return None
    version = tool_version(tool)
    if version is None:
        return f"{tool} does not say its version; {need} is needed"
    # The tool's name may contain digits.
    if not version_satisfies(version.removeprefix(tool), operator, wanted):
        return f"{need} is needed, and there is {version}"
    return None


@functools.cache
def _installed(package: str) -> bool:
    query = shutil.which("dpkg-query")
    if query is None:
        return True  # not Debian: if the package is missing, the build shows it
    done = subprocess.run(
        [query, "-W", "-f=${db:Status-Status}", package],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=VERSION_TIMEOUT_S,
        check=False,
    )
    return done.stdout.strip() == b"installed"
