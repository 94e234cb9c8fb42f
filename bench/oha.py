"""oha: Debian has no package, so it is built once from crates.io into the user's cache."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from process import BenchError
from trueload.files.catalogue import cache_folder

BUILD_S = 1_800.0
LOG_LINES = 3


def find_oha(build: bool) -> Path:
    """Return the installed oha, or build it if `build`. Raises `BenchError` with the reason."""
    if installed := shutil.which("oha"):
        return Path(installed)
    home = cache_folder() / "bench" / "oha"
    binary = home / "bin" / "oha"
    if binary.exists():
        return binary
    if not build:
        raise BenchError("not built yet: a run without --quick does it, in some minutes")
    if shutil.which("cargo") is None:
        raise BenchError("not built: there is no cargo")
    print("building oha, once, in some minutes", flush=True)
    command = ["cargo", "install", "oha", "--locked", "--root", str(home)]
    try:
        ran = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BUILD_S
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"`cargo install` took longer than {BUILD_S:g} s") from error
    if ran.returncode != 0 or not binary.exists():
        log = " ".join(ran.stderr.strip().splitlines()[-LOG_LINES:])
        raise BenchError(f"`cargo install` failed: {log}")
    return binary
