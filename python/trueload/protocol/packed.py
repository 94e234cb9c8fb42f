"""A sparse histogram in little memory, for counts that are kept for long and rarely read. Pure.

How: the engine's packing (crates/meter/src/packed.rs). For each value that occurred, in order, it
has the difference of its index to the previous one, and its count, both as LEB128. An hour of
seconds takes 3 MB this way, and more than 100 MB as dicts. In JSON that people read it is an
object, like every other sparse histogram.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import ItemsView, Iterator, Mapping
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

_HIGH = bytes(range(0x80, 0x100))


class PackedCounts(Mapping[int, int]):
    """Counts by index; immutable, and equal to every mapping with the same content."""

    __slots__ = ("_bytes",)

    def __init__(self, counts: Mapping[int, int]) -> None:
        packed = bytearray()
        before = 0
        for index in sorted(counts):
            if counts[index]:
                _put(packed, index - before)
                _put(packed, counts[index])
                before = index
        self._bytes = bytes(packed)

    @classmethod
    def of_base64(cls, text: str) -> PackedCounts:
        """Decode what the engine wrote. Raises ``ValueError`` for what it cannot have written."""
        try:
            packed = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise ValueError(f"no base64: {error}") from error
        if packed and packed[-1] & 0x80:
            raise ValueError("cut within a number")
        found = cls({})
        found._bytes = packed
        if len(packed.translate(None, _HIGH)) % 2:
            raise ValueError("an index without a count")
        return found

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

    def as_dict(self) -> dict[int, int]:
        """The same as a dict."""
        found: dict[int, int] = {}
        index = number = shift = 0
        is_index = True
        for byte in self._bytes:
            if byte & 0x80:
                number |= (byte & 0x7F) << shift
                shift += 7
                continue
            number |= byte << shift
            if is_index:
                index += number
            else:
                found[index] = number
            is_index = not is_index
            number = shift = 0
        return found

    def as_base64(self) -> str:
        """The same as the engine writes it."""
        return base64.b64encode(self._bytes).decode()

    def size_bytes(self) -> int:
        """Size of the packed counts."""
        return len(self._bytes)


def _put(packed: bytearray, number: int) -> None:
    while number >= 0x80:
        packed.append(number & 0x7F | 0x80)
        number >>= 7
    packed.append(number)


def _read(given: Any) -> PackedCounts:
    if isinstance(given, PackedCounts):
        return given
    if isinstance(given, str):
        return PackedCounts.of_base64(given)
    if not isinstance(given, Mapping):
        raise ValueError("neither packed nor an object")
    counts = {int(index): count for index, count in given.items()}
    if not all(type(count) is int and count >= 0 and at >= 0 for at, count in counts.items()):
        raise ValueError("an index or a count that is no natural number")
    return PackedCounts(counts)


Packed = Annotated[
    Mapping[int, int],
    PlainValidator(_read, json_schema_input_type=str | dict[int, int]),
    PlainSerializer(PackedCounts.as_dict, return_type=dict[int, int]),
]
"""A model's field of ``PackedCounts``: read from base64 or an object, written as an object."""
