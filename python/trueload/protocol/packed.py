"""A sparse histogram in little memory, for counts that are kept for long and rarely read. Pure.

How: as the engine packs it (crates/meter/src/packed.rs): see ``zigzag``. An hour of seconds takes
3 MB this way, and more than 100 MB as dicts. In JSON that people read it is an object, like every
other sparse histogram.
"""

from __future__ import annotations

import base64
from array import array
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

from trueload import zigzag

INDEXES = 64 * 64  # no time of 64 bits has a higher index


class PackedCounts(Mapping[int, int]):
    """Counts by index; immutable, and equal to every mapping with the same content."""

    __slots__ = ("_bytes", "_run")

    def __init__(self, counts: Mapping[int, int]) -> None:
        filled = sorted(index for index, count in counts.items() if count)
        self._bytes = zigzag.pack((index, counts[index]) for index in filled)
        self._run: tuple[int, array[int]] | None = None

    @classmethod
    def of_base64(cls, text: str) -> PackedCounts:
        """Decode what the engine wrote. Raises ``ValueError`` for what it cannot have written. It
        also stays unpacked: an engine's messages are added up right after they are read."""
        found = cls({})
        found._bytes = base64.b64decode(text, validate=True)
        found._run = zigzag.unpack(found._bytes, INDEXES)
        zigzag.check(found._run[1])
        return found

    def run(self) -> tuple[int, array[int]]:
        """The lowest index, and the counts from there on."""
        return self._run or zigzag.unpack(self._bytes, INDEXES)

    def __iter__(self) -> Iterator[int]:
        return iter(self.as_dict())

    def __getitem__(self, wanted: int) -> int:
        return self.as_dict()[wanted]

    def __len__(self) -> int:
        return len(self.as_dict())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedCounts):
            return self._bytes == other._bytes
        return self.as_dict() == other

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __repr__(self) -> str:
        return repr(self.as_dict())

    def items(self) -> ItemsView[int, int]:
        """All pairs, decoded in one pass instead of by a search for each."""
        return self.as_dict().items()

    def values(self) -> ValuesView[int]:
        return self.as_dict().values()

    def as_dict(self) -> dict[int, int]:
        first, counts = self.run()
        return {index: count for index, count in enumerate(counts, first) if count}

    def as_base64(self) -> str:
        """The same as the engine writes it."""
        return base64.b64encode(self._bytes).decode()


class SparseSum:
    """Sparse histograms, added up."""

    def __init__(self) -> None:
        self._sum = zigzag.Sum()

    def add(self, part: Mapping[int, int]) -> None:
        packed = part if isinstance(part, PackedCounts) else PackedCounts(part)
        self._sum.add(*packed.run())

    def as_dict(self) -> dict[int, int]:
        return dict(self._sum.items())


def _read(given: Any) -> PackedCounts:
    if isinstance(given, str):
        return PackedCounts.of_base64(given)
    if isinstance(given, PackedCounts):
        return given
    if not isinstance(given, Mapping):
        raise ValueError("neither packed nor an object")
    counts = {int(index): count for index, count in given.items()}
    if not all(type(n) is int and 0 <= n <= zigzag.COUNT_MOST for n in counts.values()):
        raise ValueError("a count that is negative, too large or no whole number")
    if not all(0 <= index < INDEXES for index in counts):
        raise ValueError("an index that no time has")
    return PackedCounts(counts)


Packed = Annotated[
    Mapping[int, int],
    PlainValidator(_read, json_schema_input_type=str | dict[int, int]),
    PlainSerializer(lambda counts: dict(counts.items()), return_type=dict[int, int]),
]
"""A model's field of ``PackedCounts``: read from base64 or an object, written as an object."""
