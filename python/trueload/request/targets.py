"""A targets file: several requests that take turns.

How: each target is parsed by itself, and a mistake in it is reported with its line. Then the
file is checked as a whole (origins, weights that are possible). Flags given beside the file go into
every line that does not say otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

from trueload.errors import UserError
from trueload.files.inputs import read_input, text_of
from trueload.request.fields import Entry, FileFlags
from trueload.request.origins import ORIGINS_MAX, OriginKey, origin_key
from trueload.request.redact import redact_url
from trueload.request.target_formats import FORMAT, KEYS, VEGETA, TargetsFormat, format_of
from trueload.request.url import Url
from trueload.request.values import TargetSpec

FILE_BYTES_MAX = 32 * 2**20
TARGETS_MAX = 10_000
BODIES_BYTES_MAX = 256 * 2**20
WEIGHT_MAX = 1_000_000
TURNS_MAX = 2**20  # crates/load: the engine keeps the order of a whole cycle
NAME_LENGTH_MAX = 80


@dataclass(frozen=True)
class TargetsFile:
    """A targets file in memory: its content, how errors name it, and the folder in which the files
    lie that it names. With ``one_origin`` all lines must be of the origin of the URL beside it;
    with ``vegeta`` it is a file of vegeta."""

    content: bytes
    shown: str
    folder: Path
    one_origin: bool = False
    vegeta: bool = False


def open_targets(path: Path) -> TargetsFile:
    """Read the file (``-`` for stdin) into memory; ``vegeta:`` may stand before its name. Raises
    ``UserError``."""
    vegeta = str(path).startswith(VEGETA)
    path = Path(str(path).removeprefix(VEGETA))
    folder = Path() if str(path) == "-" else path.parent
    shown = _shown(path)
    content = text_of(read_input(path, FILE_BYTES_MAX, shown, "at most {} MiB"), shown)
    return TargetsFile(content, shown, folder, vegeta=vegeta)


def read_targets(
    file: Path | TargetsFile, flags: FileFlags
) -> tuple[tuple[Url, ...], tuple[TargetSpec, ...]]:
    """Read the targets of a file (``-`` for stdin). Return the first URL of each origin, in the
    order in which they come, and the targets. Raises ``UserError``."""
    return parse_targets(open_targets(file) if isinstance(file, Path) else file, flags)


def parse_targets(
    file: TargetsFile, flags: FileFlags
) -> tuple[tuple[Url, ...], tuple[TargetSpec, ...]]:
    """Parse the content of a targets file, like ``read_targets``. Raises ``UserError``."""
    shown, base = file.shown, flags.base
    origins: dict[OriginKey, Url] = {}
    found: list[TargetSpec] = []
    bodies_bytes = 0
    lines = list(enumerate(file.content.split(b"\n"), start=1))
    written = format_of(lines, vegeta=file.vegeta)
    for own in written.divide(lines):
        number = own[0][0]
        try:
            texts = [_decoded(line, written) for _, line in own]
            endpoint, spec = _target(texts, written, file.folder, flags)
            if file.one_origin and base is not None:
                _check_origin(endpoint, base)
            spec = replace(spec, origin=_origin(endpoint, origins))
            bodies_bytes += len(spec.request.body or b"") + len(spec.expect.body or b"")
            if bodies_bytes > BODIES_BYTES_MAX:
                FORMAT.refuse(
                    f"the bodies are more than {BODIES_BYTES_MAX // 2**20} MiB", "use fewer"
                )
            if len(found) == TARGETS_MAX:
                FORMAT.refuse(f"there are more than {TARGETS_MAX:,} targets", "use fewer")
        except UserError as error:
            raise UserError(f"{shown}, line {number}: {error.message}", error.hint) from None
        found.append(spec)
    if not found:
        raise UserError(f"{shown} has no target", FORMAT.entry)
    if base is not None and origin_key(base) not in origins:
        raise UserError(
            f"no line of {shown} goes to {base.authority}, which the URL names",
            "leave the URL out, or write only paths in the lines",
        )
    _check_weights(found, shown)
    return tuple(origins.values()), tuple(found)


def _origin(endpoint: Url, origins: dict[OriginKey, Url]) -> int:
    """The index of a target's origin, which is added if it is new. Raises ``UserError``."""
    key = origin_key(endpoint)
    if key not in origins and len(origins) == ORIGINS_MAX:
        FORMAT.refuse(
            f"{endpoint.authority} is one more origin, and {ORIGINS_MAX} are the most", "use fewer"
        )
    origins.setdefault(key, endpoint)
    return list(origins).index(key)


def _decoded(line: bytes, written: TargetsFormat) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"not UTF-8 at byte {error.start + 1}", written.form.entry) from None


def _target(
    lines: Sequence[str], written: TargetsFormat, folder: Path, flags: FileFlags
) -> tuple[Url, TargetSpec]:
    entry = Entry(written.fields(lines, folder), KEYS, written.form)
    endpoint = entry.endpoint(flags.base)
    return endpoint, TargetSpec(
        url=redact_url(endpoint.url),
        request=entry.request(endpoint, folder, flags),
        expect=entry.expect(flags.expect),
        weight=entry.count("weight", WEIGHT_MAX),
        name=_name(entry.text("name")),
    )


def _name(value: str | None) -> str | None:
    if value is not None and not (value.isprintable() and 0 < len(value) <= NAME_LENGTH_MAX):
        FORMAT.refuse(f"'name' is not a line of 1 to {NAME_LENGTH_MAX} characters", "shorten it")
    return None if value is None else redact_url(value)


def _check_origin(endpoint: Url, base: Url) -> None:
    if origin_key(endpoint) != origin_key(base):
        here, there = redact_url(base.origin), redact_url(endpoint.origin)
        FORMAT.refuse(
            f"it goes to {there}, but the URL is of {here}",
            "both sides are asked the same: write only the path",
        )


def _check_weights(targets: Sequence[TargetSpec], shown: str) -> None:
    weights = [target.weight for target in targets]
    turns = sum(weights) // reduce(math.gcd, weights)
    if turns > TURNS_MAX:
        raise UserError(
            (
                f"{shown}: the weights need {turns:,} turns even in lowest terms, and at most"
                f" {TURNS_MAX:,} are allowed"
            ),
            "use smaller or rounder weights",
        )


def _shown(path: Path) -> str:
    return "the targets on stdin" if str(path) == "-" else f"the targets file {str(path)!r}"
