"""Kinds of the answers that ended requests well, mirrored from
crates/meter/src/kinds.rs.
"""

from __future__ import annotations

from trueload.protocol.model import Model


class Kind(Model):
    """Answers with similar bodies: their length, a sketch of their bytes, how many they are, and
    how many answers to the same request had come on a thread before the first of them. The sketch
    is hex: the fewer bytes two bodies differ in, the more of its eight bytes are equal."""

    bytes: int
    sketch: str
    count: int
    before: int


class OtherKinds(Model):
    """Answers of other kinds, by the number of bits of their length: 0 for empty bodies, 1 for 1
    byte, 2 for 2 or 3, and so on."""

    bits: int
    count: int
    before: int


class Kinds(Model):
    """Answers to one request: a few kinds, and all others by their length. Empty if each body was
    compared with an expected one."""

    known: tuple[Kind, ...] = ()
    other: tuple[OtherKinds, ...] = ()
