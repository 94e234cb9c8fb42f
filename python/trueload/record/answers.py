"""What the answers to a request looked like, in the warm-up and in the window.

Bodies are told apart by their length and a sketch of their bytes, which the engine makes from a few
words of each. Must not know how that is judged.
"""

from __future__ import annotations

from trueload.protocol.model import Model


class Alike(Model):
    """Similar answers: how many came in the warm-up and in the window, and about how many others
    had come before the first of them."""

    warmup: int
    window: int
    before: int

    @property
    def count(self) -> int:
        """How many came in all."""
        return self.warmup + self.window


class AnswerKind(Alike):
    """Answers with similar bodies: their length, and a sketch (hex; the fewer bytes two bodies
    differ in, the more of its eight bytes are equal)."""

    bytes: int
    sketch: str


class OtherAnswers(Alike):
    """Answers of other kinds, by the number of bits of their length; 0 for an empty body."""

    bits: int


class Answers(Model):
    """The good answers to one request: a few kinds in the order in which they came, and all others
    by their length. ``target`` is the index of the request among several, None if there is one."""

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
    its contract fixes. How many were answered, how many of these wrongly, and the first fault."""

    asked: int
    wrong: int
    fault: str | None
