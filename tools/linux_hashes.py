#!/usr/bin/env python3
"""Leaves out of requirements the hashes of wheels that no subject can use: subjects run on Linux,
on x86_64 or aarch64, with CPython 3.11 or newer. They were three quarters of a lock file.

    tools/linux_hashes.py INDEX subjects/python/aiohttp/requirements.txt …

INDEX is the URL of a package index, which is asked for the file of each hash. A hash that it does
not know stays. Exit code 1 if a package would have none.
"""

from __future__ import annotations

import json
import re
import sys
import urllib.request
from functools import cache
from pathlib import Path

JSON = "application/vnd.pypi.simple.v1+json"  # PEP 691
PACKAGE = re.compile(r"(?m)^(?=[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[^]]*\])?==)")
HASH = re.compile(r" \\\n +--hash=sha256:([0-9a-f]{64})")
TIMEOUT_S = 60.0


@cache
def files(index: str, package: str) -> dict[str, str]:
    """Return the files of a package by their hashes."""
    name = re.sub(r"[-_.]+", "-", package).lower()  # PEP 503
    asked = urllib.request.Request(f"{index}/{name}/", headers={"Accept": JSON})
    with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as answer:
        return {each["hashes"]["sha256"]: each["filename"] for each in json.load(answer)["files"]}


def is_usable(file: str) -> bool:
    """Whether a subject may be built from this file."""
    if not file.endswith(".whl"):
        return True
    python, abi, platform = file.removesuffix(".whl").split("-")[-3:]
    runs = platform == "any" or ("linux" in platform and re.search("x86_64|aarch64", platform))
    old = re.search(r"\bcp3[0-9]\b|\bcp310\b|\bpp", python) and abi != "abi3"
    return bool(runs) and not old


def trimmed(text: str, index: str) -> str:
    """Return requirements without the hashes of other files."""
    blocks = PACKAGE.split(text)
    return "".join(_trimmed(block, index) if "==" in block else block for block in blocks)


def _trimmed(block: str, index: str) -> str:
    package = re.split(r"[\[=]", block, maxsplit=1)[0]
    known = files(index, package)
    kept = HASH.sub(lambda found: found[0] if is_usable(known.get(found[1], "")) else "", block)
    if HASH.search(block) and not HASH.search(kept):
        raise SystemExit(f"{package} has no file that a subject could use")
    return kept


def main() -> None:
    """Rewrite the files."""
    index, *paths = sys.argv[1:]
    for path in map(Path, paths):
        path.write_text(trimmed(path.read_text(), index.rstrip("/")))


if __name__ == "__main__":
    main()
