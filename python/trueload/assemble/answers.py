"""The kinds of answers of a trial, with warm-up and window side by side. Pure."""

from __future__ import annotations

from typing import TypedDict

from trueload.protocol.kinds import Kind, Kinds, OtherKinds
from trueload.protocol.plan import Measurement
from trueload.record.answers import AnswerKind, Answers, OtherAnswers

NONE = Kinds()


class Counted(TypedDict):
    """The fields of `Alike`."""

    warmup: int
    window: int
    before: int


def make_answers(
    warmup: Measurement | None, window: Measurement, threads: int
) -> tuple[Answers, ...]:
    """The kinds of answers to each request whose bodies were compared."""
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

    def counted(first: Kind | OtherKinds | None, then: Kind | OtherKinds | None) -> Counted:
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
