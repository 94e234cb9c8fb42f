"""The version of a library that a subject pins, as its package manager's file says.

How: each package manager's file is read in its own format; the first that names the library counts.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from xml.etree import ElementTree


def pinned_version(folder: Path, library: str) -> str | None:
    """The version of ``library`` (``actix-web``, ``github.com/valyala/fasthttp``) that the files in
    ``folder`` pin; None if none of them does, or none can be read."""
    for name, read in READERS.items():
        try:
            version = read((folder / name).read_text(encoding="utf-8"), library)
        except (OSError, ValueError, KeyError, ElementTree.ParseError):
            continue
        if version is not None:
            return version
    return None


def _cargo(text: str, library: str) -> str | None:
    packages: Iterable[dict[str, str]] = tomllib.loads(text)["package"]
    return next((each["version"] for each in packages if each["name"] == library), None)


def _npm(text: str, library: str) -> str | None:
    found = json.loads(text)["packages"].get(f"node_modules/{library}")
    return None if found is None else str(found["version"])


def _dub(text: str, library: str) -> str | None:
    found = json.loads(text)["versions"].get(library)
    return None if found is None else str(found)


def _maven(text: str, library: str) -> str | None:
    properties: dict[str, str] = {}
    for each in ElementTree.fromstring(text).iter():
        fields = {child.tag.rpartition("}")[2]: child.text or "" for child in each}
        if each.tag.endswith("}properties"):
            properties = {f"${{{name}}}": value for name, value in fields.items()}
        if fields.get("artifactId") == library and "version" in fields:
            return properties.get(fields["version"], fields["version"])
    return None


def _line(pattern: str) -> Callable[[str, str], str | None]:
    """Finds the version behind the library's name, which stands where the pattern has ``NAME``."""

    def read(text: str, library: str) -> str | None:
        found = re.search(pattern.replace("NAME", re.escape(library)), text, re.MULTILINE)
        return None if found is None else found[1]

    return read


READERS: dict[str, Callable[[str, str], str | None]] = {
    "Cargo.lock": _cargo,
    "dub.selections.json": _dub,
    "go.mod": _line(r"^\s*(?:require\s+)?NAME v(\S+)"),
    "package-lock.json": _npm,
    "pom.xml": _maven,
    "requirements.txt": _line(r"^NAME==([^\s;\\]+)"),
    "mix.exs": _line(r"\{:NAME, \"[=~> ]*([^\"]+)\""),
    "rebar.config": _line(r"\{NAME,[^\"]*(?:\"[^\"]*\",[^\"]*)?\"([^\"]+)\"\}"),
}
