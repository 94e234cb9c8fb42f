"""The agent as one file: the modules of the front that it needs, packed for any Python.

How: a zip with a first line by which the kernel finds Python (zipapp). Its bytes depend on the
modules alone, so each host gets it only once.
"""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from pathlib import Path

import trueload
from trueload.files.catalogue import cache_folder
from trueload.files.private import make_folder

MODULES = (
    *("deadline.py", "machine/processes.py", "machine/listeners.py", "machine/accounting.py"),
    *("machine/sock_diag.py", "machine/throttling.py", "machine/open_files.py"),
    *("runner/cgroup.py", "runner/environment.py", "runner/supervisor.py", "runner/process.py"),
    *("runner/sockets.py", "runner/agent.py"),
)
PACKAGES = ("", "machine/", "runner/")
NAME = "trueload-agent"
FIRST_LINE = b"#!/usr/bin/env python3\n"
# The supervisor is started as a file, so the zip is unpacked for as long as the agent runs.
MAIN = """import shutil, sys, tempfile, zipfile
from pathlib import Path

folder = Path(tempfile.mkdtemp(prefix="trueload-server-"))
try:
    with zipfile.ZipFile(sys.argv[0]) as packed:
        packed.extractall(folder)
    sys.path[:1] = [str(folder)]
    from trueload.runner.agent import main
    main(folder)
finally:
    shutil.rmtree(folder, ignore_errors=True)
"""
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold


def agent_file() -> Path:
    """Return the file in the user's cache, and make it if needed. Raises ``OSError``."""
    data = pack()
    folder = cache_folder() / "agent"
    path = folder / NAME
    if path.exists() and path.read_bytes() == data and os.access(path, os.X_OK):
        return path
    make_folder(folder)
    handle, name = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.chmod(name, 0o700)
    os.replace(name, path)
    return path


def pack() -> bytes:
    home = Path(trueload.__file__).parent
    out = io.BytesIO()
    out.write(FIRST_LINE)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        _add(packed, "__main__.py", MAIN.encode())
        for package in PACKAGES:
            _add(packed, f"trueload/{package}__init__.py", b"")
        for module in MODULES:
            _add(packed, f"trueload/{module}", (home / module).read_bytes())
    return out.getvalue()


def _add(packed: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    packed.writestr(entry, data)
