"""Installs trueload on a host that is reached by ssh: what is installed here, as it is here.

How: the package, its catalogue, the packages that it needs and the engine for that host are laid
out in a folder, which is copied there. If compiled packages of here cannot run there, pip fetches
the same versions for that host. Nothing is built, and the host needs no pip and no network.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns
from typing import get_args

import trueload
from trueload.engines.engine import BINARY, find_engine
from trueload.errors import UserError
from trueload.files.catalogue import Kind, find_own
from trueload.places.program import fitting, read_program
from trueload.places.ssh import SshPlace
from trueload.places.ssh.install import Python, find_python, put
from trueload.places.ssh.refusals import last_line

LEAST = (3, 11)  # requires-python in pyproject.toml
# What building a subject in place leaves behind, as in setup.py.
LEFTOVERS = ignore_patterns("target", "build", "node_modules", "__pycache__", "subject", ".venv")
COMMAND = """#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/python3" -P -m trueload "$@"
"""
FETCH_S = 300.0


def install(place: SshPlace) -> str:
    """Install trueload on the host. Return the command's path there. Raises ``UserError``."""
    engine = find_engine()
    place.prepare(engine)
    connection = place.connection
    python = find_python(connection, LEAST, own_abi())
    with tempfile.TemporaryDirectory(prefix="trueload-install-") as name:
        folder = Path(name)
        site = folder / "lib" / f"python{python.version[0]}.{python.version[1]}" / "site-packages"
        _copy_trueload(site / "trueload")
        needed = list(needed_packages("trueload"))
        if python.abi == own_abi():
            _copy_packages(needed, site)
        else:
            _fetch_packages(needed, python, site)
        binary = folder / "bin" / BINARY
        binary.parent.mkdir()
        binary.write_bytes(fitting(read_program(engine), connection.host.machine).data)
        command = folder / "bin" / "trueload"
        command.write_text(COMMAND)
        for each in (binary, command):
            each.chmod(0o755)
        return put(connection, python, folder, trueload.__version__, "trueload")


def own_abi() -> str:
    """What compiled packages of this Python are named by, as ``Python.abi``."""
    return str(sysconfig.get_config_var("SOABI"))


def needed_packages(name: str) -> Iterator[Distribution]:
    """Yield every package that one needs, without extras: those that are installed here."""
    seen, left = {_plain(name)}, list(distribution(name).requires or ())
    while left:
        wanted = left.pop()
        found = re.match(r"[\w.-]+", wanted)
        if found is None or "extra ==" in wanted or _plain(found[0]) in seen:
            continue
        seen.add(_plain(found[0]))
        try:
            package = distribution(found[0])
        except PackageNotFoundError:
            continue  # its marker says that it is not needed here
        yield package
        left += package.requires or ()


def wheel_platforms(abi: str) -> tuple[str, ...]:
    """The platforms of wheels for an ABI. Pure. Raises ``ValueError`` if it is of no Linux."""
    found = re.fullmatch(r"cpython-\d+t?-(\w+)-linux-(gnu|musl)\w*", abi)
    if found is None:
        raise ValueError(f"there are no packages for {abi}")
    kinds = ("manylinux_2_17", "manylinux2014") if found[2] == "gnu" else ("musllinux_1_1",)
    return tuple(f"{kind}_{found[1]}" for kind in kinds)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()  # as PEP 503 says


def _copy_trueload(package: Path) -> None:
    copytree(Path(trueload.__file__).parent, package, ignore=LEFTOVERS)
    for kind in get_args(Kind):
        own = find_own(kind)
        if own is not None:
            copytree(own, package / "catalogue" / kind, ignore=LEFTOVERS)


def _copy_packages(needed: Sequence[Distribution], site: Path) -> None:
    """Copy the files of packages, as they are installed here. Raises ``UserError``."""
    for package in needed:
        if package.files is None:
            raise UserError(
                f"it is not known which files belong to the package {package.name} here",
                "install trueload with pip, in an environment of its own",
            )
        for file in package.files:
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                copy2(str(package.locate_file(file)), site / file)


def _fetch_packages(needed: Sequence[Distribution], python: Python, site: Path) -> None:
    """Fetch packages for another Python or machine. Raises ``UserError``."""
    version = ".".join(map(str, python.version))
    try:
        platforms = wheel_platforms(python.abi)
    except ValueError as error:
        raise UserError(str(error), "use a host with the CPython of a usual Linux") from error
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    words += ["--target", str(site), "--only-binary", ":all:", "--python-version", version]
    words += [word for platform in platforms for word in ("--platform", platform)]
    words += [f"{package.name}=={package.version}" for package in needed]
    try:
        ended = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=FETCH_S, process_group=0
        )
        why = last_line(ended.stderr) if ended.returncode else None
    except subprocess.TimeoutExpired:
        why = f"it took more than {FETCH_S:g} s"
    if why is not None:
        raise UserError(
            f"pip cannot fetch the packages for {python.abi}: {why}",
            f"with Python {'.'.join(map(str, sys.version_info[:2]))} on the same kind of machine,"
            " those of here are copied",
        )
