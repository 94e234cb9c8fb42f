"""What the answers to a request were like, in the warm-up and in the window.

Bodies are told apart by their length and a sketch of their bytes, which the engine makes of a few
words of each. Must not know how that is judged.
"""

from __future__ import annotations

from trueload.protocol.model import Model


class Alike(Model):
    """Answers that are alike: how many came in the warm-up and in the window, and about how many
    others had come before the first of them."""

    warmup: int
    window: int
    before: int

    @property
    def count(self) -> int:
        """How many came in all."""
        return self.warmup + self.window


class AnswerKind(Alike):
    """Answers whose bodies were alike: the length, and a sketch (hex; the fewer bytes two bodies
    differ in, the more of its eight bytes are equal)."""

    bytes: int
    sketch: str


class OtherAnswers(Alike):
    """Answers of other kinds whose length is a number of so many bits: 0 for an empty body."""

    bits: int


class Answers(Model):
    """The good answers to one request: a few kinds in the order in which they came, and all others
    by their length. ``target`` is the request's place among several, None where there is one."""

    target: int | None
    kinds: tuple[AnswerKind, ...]
    others: tuple[OtherAnswers, ...] = ()

    @property
    def vary(self) -> bool:
        """Whether the answers differed: there was more than one kind of them."""
        return len(self.kinds) + len(self.others) > 1

    @property
    def window(self) -> int:
        """How many came in the window."""
        return sum(each.window for each in (*self.kinds, *self.others))


class Probes(Model):
    """What a subject was asked under load beside the load's own request: other paths and forms that
    its contract fixes. How many were answered, how many of them wrongly, and the first fault."""

    asked: int
    wrong: int
    fault: str | None
