"""Generators that Debian has no package of, built once into the user's cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from process import BenchError
from trueload.files.catalogue import cache_folder

COMMANDS = {
    "oha": ("cargo", "install", "oha", "--locked"),
    "k6": ("go", "install", "go.k6.io/k6@v1.8.1"),
}
BUILD_S = 1_800.0
LOG_LINES = 3


def find_built(name: str, build: bool) -> Path:
    """Return a generator that is installed, or build it if `build`. Raises `BenchError`."""
    if installed := shutil.which(name):
        return Path(installed)
    home = cache_folder() / "bench" / name
    binary = home / "bin" / name
    if binary.exists():
        return binary
    if not build:
        raise BenchError("not built yet: a run without --quick does it, in some minutes")
    command = COMMANDS[name]
    if shutil.which(command[0]) is None:
        raise BenchError(f"not built: there is no {command[0]}")
    print(f"building {name}, once, in some minutes", flush=True)
    where = {"CARGO_INSTALL_ROOT": str(home), "GOBIN": str(binary.parent)}
    what = f"`{command[0]} install`"
    try:
        ran = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_S,
            env={**os.environ, **where},
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{what} took longer than {BUILD_S:g} s") from error
    if ran.returncode != 0 or not binary.exists():
        log = " ".join(ran.stderr.strip().splitlines()[-LOG_LINES:])
        raise BenchError(f"{what} failed: {log}")
    return binary
