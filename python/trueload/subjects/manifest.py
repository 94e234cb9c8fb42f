"""Subjects: the programs under test, each a folder with a manifest.

How: a manifest is read once, strictly, into one `Subject` per variant. An unknown key is refused
with the file, the key and the known keys. Nothing is executed here. Commands run in a copy of the
folder, so a path that leaves it is a mistake of its author, and is refused. A program runs with the
user's rights, so it is also checked who can change it.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from trueload.errors import UserError
from trueload.files.invalid import Mistake, first_mistake
from trueload.files.toml import UnreadableError, read_toml
from trueload.protocol.client import PATH_PATTERN
from trueload.protocol.model import Model
from trueload.protocol.shootout import Dialect

MANIFEST = "subject.toml"
# The contract whose subjects may name a path and a dialect.
SHOOTOUT = "ws-shootout"
PLACEHOLDERS = ("host", "port", "scheme", "cpus", "cpu_list", "build", "trueload")
NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
# Output of builds in the checkout, never sources; .gitignore names the same.
NOT_SOURCES = frozenset({"target", "build", "node_modules", "__pycache__", ".git", ".venv"})

# What says that a subject was never seen to work, or only with sources that are not the registry's.
TRIED_PATTERN = r"^(no|with local sources): \S"
# Names the variant that has no name.
DEFAULT_VARIANT = "default"
# The folder of the catalogue with what several subjects have in common.
SHARED = "shared"

Cores = Literal["single", "multi"]
Category = Literal["micro", "platform", "fullstack", "proxy"]


def _plain(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not hold a NUL character")
    return text


def _argument(text: str) -> str:
    """Check an argument, which may name something in the folder and is used in a copy of it. Raises
    ``ValueError``."""
    for word in re.findall(r"\{([a-z_]+)\}", text):
        if word not in PLACEHOLDERS:
            known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise ValueError(f"has the unknown substitution {{{word}}}; there are {known}")
    for part in re.split(r"[=:,]", text):
        if ".." in part.split("/"):
            raise ValueError(f"{text!r} leaves the subject's folder, and a copy of that is run")
    if text.startswith("/") and text not in ("/dev/null", "/dev/stdout", "/dev/stderr"):
        raise ValueError(f"{text!r} is an absolute path; name a program, or a path in the folder")
    return _plain(text)


def _command(argv: tuple[str, ...]) -> tuple[str, ...]:
    if not argv or not argv[0].strip():
        raise ValueError("must name a program")
    return argv


def _tool(text: str) -> str:
    if not TOOL_PATTERN.fullmatch(text):
        raise ValueError(f"{text!r} is not a tool such as 'go' or 'go>=1.22'")
    return text


def _package(text: str) -> str:
    # Debian policy 5.6.1; it also keeps options out of apt's command line.
    if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", text):
        raise ValueError(f"{text!r} is not the name of a Debian package")
    return text


TOOL_PATTERN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._+-]*)(?:(>=|==|<)(\d+(?:\.\d+)*))?")
Text = Annotated[str, AfterValidator(_plain)]
Argument = Annotated[str, AfterValidator(_argument)]
Command = Annotated[tuple[Argument, ...], AfterValidator(_command)]


class Needs(Model):
    """What the machine must have. `tools` are programs, `debian` packages."""

    tools: tuple[Annotated[str, AfterValidator(_tool)], ...] = ()
    debian: tuple[Annotated[str, AfterValidator(_package)], ...] = ()


class Manifest(Model):
    """One variant of a subject, complete; see docs/adding-a-subject.md. Times in seconds."""

    role: Literal["server", "client"]
    about: Text
    home: Text = ""
    category: Category = "platform"
    contracts: tuple[Text, ...]
    fetch: tuple[Command, ...] = ()
    build: tuple[Command, ...] = ()
    run: Command
    version: Command | None = None
    library: Text | None = None
    needs: Needs = Needs.model_construct()
    env: dict[str, Text] = Field(default_factory=dict)
    shared: tuple[Annotated[str, Field(pattern=f"^{NAME_PATTERN.pattern}$")], ...] = ()
    ready_s: float = Field(default=10, gt=0, le=600)
    build_s: float = Field(default=600, gt=0, le=7200)
    cores: tuple[Cores, ...] = ("single", "multi")
    prefork: bool = False
    trap: bool = False
    tried: Text | None = Field(default=None, pattern=TRIED_PATTERN)
    tls: bool = False
    keep_alive: bool = True
    path: Text | None = Field(default=None, pattern=PATH_PATTERN)
    dialect: Dialect | None = None

    @model_validator(mode="after")
    def _only_where_they_count(self) -> Self:
        if (self.path or self.dialect) and SHOOTOUT not in self.contracts:
            raise ValueError(f"path and dialect are for the contract {SHOOTOUT} alone")
        words = [*self.run, *self.env.values()]
        if self.tls and self.role == "server" and not any("{scheme}" in word for word in words):
            raise ValueError("with tls the command has to be told {scheme}, http or https")
        if self.role == "server" and not self.keep_alive:
            raise ValueError("keep_alive is for clients")
        placed = self.prefork or any("{host}" in word or "{port}" in word for word in words)
        if self.role == "client" and placed:
            raise ValueError("a client is told on its stdin where to: no host, port or prefork")
        return self

    @property
    def shows_certificate(self) -> bool:
        """Whether its build has to make a certificate."""
        return self.tls and self.role == "server"


MANIFEST_KEYS = (*Manifest.model_fields, "variants")
VARIANT_KEYS = tuple(key for key in Manifest.model_fields if key not in ("role", "home"))


@dataclass(frozen=True)
class Subject:
    """One variant of a program. `variant` is "" for the default; it is the table's Name."""

    language: str
    framework: str
    variant: str
    folder: Path
    manifest: Manifest

    @property
    def name(self) -> str:
        """LANGUAGE/NAME, with :VARIANT unless it is the default. Unique in a catalogue."""
        suffix = f":{self.variant}" if self.variant else ""
        return f"{self.language}/{self.framework}{suffix}"


def load_subject(folder: Path) -> list[Subject]:
    """Every variant of the subject in `folder`, the default first. Raises ``UserError`` with one
    line that names the file and the place in it."""
    path = folder / MANIFEST
    data = _parse(path)
    for key in data:
        if key not in MANIFEST_KEYS:
            raise _unknown_key(path, key, MANIFEST_KEYS)
    variants = data.pop("variants", {})
    if not isinstance(variants, dict):
        raise bad_place(path, "variants", "must be tables such as [variants.tuned]")
    subjects = [_subject(folder, "", data, path)]
    for variant, changes in variants.items():
        place = f"variants.{variant}"
        if not NAME_PATTERN.fullmatch(variant):
            raise bad_place(
                path, place, "a variant's name has letters, digits, '.', '_', '+' and '-'"
            )
        if not isinstance(changes, dict):
            raise bad_place(path, place, "must be a table of what differs")
        for key in changes:
            if key not in VARIANT_KEYS:
                raise _unknown_key(path, f"{place}.{key}", VARIANT_KEYS)
        subjects.append(_subject(folder, variant, _merged(data, changes), path))
    return subjects


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The base with the changes applied; environment variables are merged one by one."""
    merged = {**base, **changes}
    ours, theirs = base.get("env"), changes.get("env")
    if isinstance(ours, dict) and isinstance(theirs, dict):
        merged["env"] = {**ours, **theirs}
    return merged


def _subject(folder: Path, variant: str, data: dict[str, Any], path: Path) -> Subject:
    prefix = f"variants.{variant}." if variant else ""
    try:
        # Through JSON, so that strictness follows JSON's types: "10" is not a number, a list is a
        # tuple.
        text = json.dumps(data, default=repr)
        manifest = Manifest.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise _invalid(path, prefix, first_mistake(error)) from None
    return Subject(folder.parent.name, folder.name, variant, folder, manifest)


def _parse(path: Path) -> dict[str, Any]:
    try:
        # Not Path.resolve, which fails on a circle of links.
        if os.path.realpath(path) != os.path.join(os.path.realpath(path.parent), MANIFEST):
            raise bad_place(path, None, "is a link that leads out of the subject's folder")
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for its writer
            raise bad_place(path, None, "is no file")
        return read_toml(path)
    except UnreadableError as error:
        raise bad_place(path, None, str(error)) from None
    except OSError as error:
        raise bad_place(path, None, f"cannot be read: {error.strerror}") from None


def _invalid(path: Path, prefix: str, mistake: Mistake) -> UserError:
    place = (prefix + mistake.place).removesuffix(".")
    if mistake.is_unknown:
        return _unknown_key(path, place, tuple(Needs.model_fields))
    return bad_place(path, place, mistake.what)


def _unknown_key(path: Path, key: str, known: Iterable[str]) -> UserError:
    return UserError(
        f"{shown_path(path)}: '{key}' is not a manifest key; keys are {', '.join(known)}",
        "correct or remove that line",
    )


def bad_place(path: Path, place: str | None, what: str) -> UserError:
    where = f"{shown_path(path)}: {place}: " if place else f"{shown_path(path)}: "
    return UserError(where + what, "correct the file; `trueload subjects check` tries it")


def shown_path(path: Path) -> str:
    """A path as short as possible: relative to the current folder, if it is below that."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):  # the current folder may have been removed
        return str(path)


def sources(folder: Path) -> list[Path]:
    """The files of a subject, relative to its folder, sorted; without what builds leave. Raises
    ``UserError`` for a link that leads out of the folder, and for an entry that is neither a file
    nor a folder."""
    return sorted(_walk(folder, folder.resolve(), Path()))


def contents(subject: Subject) -> dict[Path, Path]:
    """The files that a subject's build begins with: their paths in the copy, and where they lie.

    What it shares with others is laid into its copy, at the same paths as in the shared folder.
    Raises ``UserError`` as ``sources`` does, and for a shared folder that is missing or brings a
    file that already exists.
    """
    manifest = subject.folder / MANIFEST
    found = {path: subject.folder / path for path in sources(subject.folder)}
    for name in subject.manifest.shared:
        folder = shared_folder(subject.folder, name)
        if not folder.is_dir():
            raise bad_place(manifest, "shared", f"there is no folder {shown_path(folder)}")
        for path in sources(folder):
            if path in found:
                raise bad_place(
                    manifest, "shared", f"{path} is there twice, also in {shown_path(folder)}"
                )
            found[path] = folder / path
    return dict(sorted(found.items()))


def shared_folder(folder: Path, name: str) -> Path:
    return folder.parent.parent / SHARED / name


def _walk(folder: Path, root: Path, below: Path) -> Iterator[Path]:
    with os.scandir(folder / below) as entries:
        for entry in entries:
            relative = below / entry.name
            if entry.name in NOT_SOURCES or relative == Path("subject"):
                continue
            if entry.is_symlink():
                if not Path(entry.path).resolve().is_relative_to(root):
                    raise bad_place(folder / relative, None, "leads out of the subject's folder")
                yield relative
            elif entry.is_dir():
                yield from _walk(folder, root, relative)
            elif entry.is_file():
                yield relative
            else:
                raise bad_place(folder / relative, None, "is neither a file nor a folder")
