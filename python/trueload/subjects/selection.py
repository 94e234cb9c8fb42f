"""The subjects of a catalogue, and the selection of them by SELECTs.

How: the caller decides what to do about a folder that cannot be used, so that one does not stop the
others.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trueload.errors import UserError
from trueload.files.catalogue import trusted_in
from trueload.files.ownership import below, why_not
from trueload.near import did_you_mean
from trueload.subjects.manifest import (
    DEFAULT_VARIANT,
    MANIFEST,
    NAME_PATTERN,
    NOT_SOURCES,
    Subject,
    bad_place,
    load_subject,
    shared_folder,
    shown_path,
)


@dataclass(frozen=True)
class Select:
    """One SELECT: NAME, LANGUAGE or LANGUAGE/NAME, with :VARIANT; `!` in front excludes. Of a
    subject's own settings the variant is called ``default``."""

    text: str
    exclude: bool
    language: str | None
    name: str
    variant: str | None

    @classmethod
    def parse(cls, text: str) -> Select:
        """Parse a SELECT. Raises ``UserError`` for one that can select nothing."""
        body = text.strip()
        exclude = body.startswith("!")
        head, colon, variant = body.removeprefix("!").partition(":")
        language, slash, name = head.rpartition("/")
        if not name or (slash and not language) or "/" in language:
            raise UserError(
                f"{text!r} selects no subject",
                "a SELECT is NAME, LANGUAGE or LANGUAGE/NAME; `!` in front excludes",
            )
        variant = "" if variant == DEFAULT_VARIANT else variant
        return cls(body, exclude, language or None, name, variant if colon else None)

    def means_folder(self, language: str, framework: str) -> bool:
        """Whether the select can mean a variant of that subject."""
        if self.language is not None:
            return (self.language, self.name) == (language, framework)
        return self.name in (language, framework)

    def means(self, subject: Subject) -> bool:
        """Whether it means that variant."""
        return self.means_folder(subject.language, subject.framework) and (
            self.variant is None or self.variant == subject.variant
        )


def parse_selects(texts: Sequence[str]) -> list[Select]:
    """Parse the SELECTs of options, each of which may hold several, separated by commas. Raises
    ``UserError`` for an option that holds none: an empty shell variable does not mean all."""
    found = []
    for text in texts:
        parts = [part for part in text.split(",") if part.strip()]
        found += [Select.parse(part) for part in parts or [""]]
    return found


@dataclass(frozen=True)
class Entry:
    """A folder of the catalogue with a manifest, and why it cannot be used, if its place shows
    that. `framework` is "" for a whole language whose folder cannot be read."""

    language: str
    framework: str
    folder: Path
    fault: UserError | None = None

    @property
    def name(self) -> str:
        """LANGUAGE/NAME, as for a subject."""
        return f"{self.language}/{self.framework}"

    def load(self) -> list[Subject]:
        """Load it by ``load_subject``. Also raises ``UserError`` if somebody else can change it."""
        fault = self.fault or _fault_of_owner(self.folder)
        if fault is not None:
            raise fault
        subjects = load_subject(self.folder)
        for name in {name for subject in subjects for name in subject.manifest.shared}:
            shared = shared_folder(self.folder, name)
            if shared.exists() and (fault := _fault_of_owner(shared)) is not None:
                raise fault
        return subjects

    def is_meant_by(self, selects: Iterable[Select]) -> bool:
        """Whether one of the selects can mean a variant of it."""
        return any(select.means_folder(self.language, self.framework) for select in selects)

    def is_named_by(self, selects: Iterable[Select]) -> bool:
        """Whether one of the selects asks for it by its own name, not by its language."""
        return self.is_meant_by(
            select for select in selects if not select.exclude and select.name == self.framework
        )


OnBroken = Callable[[Entry, UserError], None]
"""Handles an entry that cannot be used, and the reason; may raise."""


def refuse_broken(entry: Entry, why: UserError) -> None:
    """Raise the reason: an ``OnBroken`` for callers that need every entry."""
    raise why


def unless_named(selects: Sequence[Select], on_broken: OnBroken) -> OnBroken:
    """Raise the reason for an entry selected by name; hand the others to ``on_broken``."""

    def handle(entry: Entry, why: UserError) -> None:
        if entry.is_named_by(selects):
            raise why
        on_broken(entry, why)

    return handle


def entries(catalogue: Path) -> list[Entry]:
    """The folders of all subjects, sorted by language and name."""
    found = []
    for language in _folders_in(catalogue):
        try:
            folders = _folders_in(language)
        except OSError as error:
            found.append(Entry(language.name, "", language, _closed(language, error)))
            continue
        for folder in folders:
            try:
                os.lstat(folder / MANIFEST)
                fault = _fault_of_place(folder, catalogue)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                fault = _closed(folder, error)
            found.append(Entry(language.name, folder.name, folder, fault))
    return found


def _folders_in(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except NotADirectoryError:
        return []


def _closed(folder: Path, error: OSError) -> UserError:
    return UserError(f"{shown_path(folder)}: cannot be read: {error.strerror}", "check its rights")


def _fault_of_place(folder: Path, catalogue: Path) -> UserError | None:
    names = (folder.parent.name, folder.name)
    if os.path.realpath(folder) != os.path.join(os.path.realpath(catalogue), *names):
        return bad_place(folder, None, "is a link that leads out of its place")
    unfit = [name for name in names if not NAME_PATTERN.fullmatch(name)]
    if unfit:
        return UserError(
            f"{shown_path(folder)}: {unfit[0]!r}: names have letters, digits and . _ + -",
            "rename the folder",
        )
    return None


def _fault_of_owner(folder: Path) -> UserError | None:
    """Refuse what somebody else can change, unless the user has named its place."""
    catalogue = folder.parent.parent
    trusted = trusted_in(catalogue)
    if trusted is None:
        return None
    try:
        for path in (folder.parent, *below(folder, NOT_SOURCES)):
            if why := why_not(path, trusted):
                home = shlex.quote(os.path.realpath(catalogue.parent))
                hint = f"TRUELOAD_HOME={home} uses all that is there as it is"
                return UserError(f"{why}; what others can change is not run", hint)
    except OSError as error:
        return _closed(folder, error)
    return None


def select_subjects(
    catalogue: Path, selects: Sequence[Select], on_broken: OnBroken = refuse_broken
) -> list[Subject]:
    """The variants selected, in the catalogue's order; all without a positive select. `on_broken`
    is called for each entry that is selected and cannot be used. Raises ``UserError`` for a select
    that matches nothing."""
    everywhere = entries(catalogue)
    for select in selects:
        if not any(entry.is_meant_by([select]) for entry in everywhere):
            raise _unknown_select(select, everywhere)
    wanted = [select for select in selects if not select.exclude]
    unwanted = [select for select in selects if select.exclude]
    found: list[Subject] = []
    broken: list[Entry] = []
    for entry in everywhere:
        if wanted and not entry.is_meant_by(wanted):
            continue
        try:
            found += entry.load()
        except UserError as why:
            broken.append(entry)
            if not entry.is_meant_by(select for select in unwanted if select.variant is None):
                on_broken(entry, why)
    for select in selects:
        _check_variant(select, found, broken)
    return [
        subject
        for subject in found
        if (not wanted or any(select.means(subject) for select in wanted))
        and not any(select.means(subject) for select in unwanted)
    ]


def _check_variant(select: Select, found: Sequence[Subject], broken: Sequence[Entry]) -> None:
    """Raise ``UserError`` for a variant that no subject has; a broken subject may have it."""
    if select.variant is None or any(entry.is_meant_by([select]) for entry in broken):
        return
    if not any(select.means(subject) for subject in found):
        known = sorted({s.variant for s in found if s.variant})
        raise UserError(
            f"no subject has the variant {select.text!r}",
            f"variants are {', '.join(known)}" if known else "it has only the default",
        )


def _unknown_select(select: Select, everywhere: Sequence[Entry]) -> UserError:
    names = {entry.language for entry in everywhere} | {entry.name for entry in everywhere}
    names |= {entry.framework for entry in everywhere if entry.framework}
    asked = f"{select.language}/{select.name}" if select.language else select.name
    hint = did_you_mean(asked, sorted(names)) or "`trueload subjects list` shows them"
    return UserError(f"no subject is called {asked!r}", hint)
