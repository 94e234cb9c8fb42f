"""What the answers to each request looked like, in the warm-up and in the window.

Bodies are told apart by their length and a sketch of their bytes, which the engine makes from a few
words of each.
"""

from __future__ import annotations

from collections.abc import Sequence

from trueload.protocol.kinds import Kind, Kinds, OtherKinds
from trueload.protocol.model import Model
from trueload.protocol.sums import add_up
from trueload.record.account import Account, TrialFacts

NONE = Kinds.model_construct()


class SimilarAnswers(Model):
    """Similar answers: how many came in the warm-up and in the window, and about how many others
    had come before the first of them."""

    warmup: int
    window: int
    before: int

    @property
    def count(self) -> int:
        """How many came in all."""
        return self.warmup + self.window


class AnswerKind(SimilarAnswers):
    """Answers with similar bodies: their length, and a sketch (hex; the fewer bytes two bodies
    differ in, the more of its eight bytes are equal)."""

    bytes: int
    sketch: str


class OtherAnswers(SimilarAnswers):
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


def add_kinds(parts: Sequence[Kinds]) -> Kinds:
    """The kinds of answer to one request, each summed, in the order in which they came."""
    found: dict[tuple[int, str], Kind] = {}
    for kind in (kind for part in parts for kind in part.known):
        body = (kind.bytes, kind.sketch)
        mine = found.get(body)
        if mine is not None:
            before = min(mine.before, kind.before)
            kind = kind.model_copy(update={"count": mine.count + kind.count, "before": before})
        found[body] = kind
    known = tuple(sorted(found.values(), key=lambda kind: kind.before))
    bits = sorted({each.bits for part in parts for each in part.other})
    same = [[each for part in parts for each in part.other if each.bits == size] for size in bits]
    other = tuple(
        add_up(each, bits=each[0].bits, before=min(one.before for one in each)) for each in same
    )
    return Kinds(known=known, other=other)


def make_answers(_: Kinds, facts: TrialFacts) -> tuple[Answers, ...]:
    """The kinds of answers to each request whose bodies were compared."""
    warmup, window = facts.warmup, facts.window
    threads = window.generator.threads
    if window.targets is None:
        found = [_answers(None, warmup.kinds if warmup else NONE, window.kinds, threads)]
    else:
        before = warmup.targets if warmup is not None else None
        found = [
            _answers(place, before[place].kinds if before else NONE, target.kinds, threads)
            for place, target in enumerate(window.targets)
        ]
    return tuple(each for each in found if each.kinds)


def _answers(target: int | None, warmup: Kinds, window: Kinds, threads: int) -> Answers:
    known = {(kind.bytes, kind.sketch): kind for kind in warmup.known}
    known_later = {(kind.bytes, kind.sketch): kind for kind in window.known}
    others = {each.bits: each for each in warmup.other}
    others_later = {each.bits: each for each in window.other}
    earlier = sum(kind.count for kind in warmup.known) + sum(each.count for each in warmup.other)

    def counted(first: Kind | OtherKinds | None, then: Kind | OtherKinds | None) -> dict[str, int]:
        # Each thread counted only the answers before it on that thread; all together had more.
        before = first.before * threads if first else 0
        if first is None and then is not None:
            before = earlier + then.before * threads
        return {
            "warmup": first.count if first else 0,
            "window": then.count if then else 0,
            "before": before,
        }

    return Answers(
        target=target,
        kinds=tuple(
            AnswerKind(
                bytes=body[0], sketch=body[1], **counted(known.get(body), known_later.get(body))
            )
            for body in dict.fromkeys((*known, *known_later))
        ),
        others=tuple(
            OtherAnswers(bits=bits, **counted(others.get(bits), others_later.get(bits)))
            for bits in sorted({*others, *others_later})
        ),
    )


ANSWERS = Account("answers", "kinds", make_answers, add_kinds)
