"""How answers flowed through the window."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TypeVar

from trueload.protocol.flow import Backlog, Flow, Work
from trueload.protocol.sums import sums
from trueload.record.account import Account

Number = TypeVar("Number", int, float)


def add_flows(parts: Sequence[Flow]) -> Flow:
    """The sum of all, in parts as long as the longest ones. Gaps are kept only for a single host:
    the clocks of several cannot tell when one server was silent to all."""
    part_ns, answered = _in_longest([(part.part_ns, part.answered) for part in parts])
    whole_ns = min(part.whole_ns for part in parts)
    return Flow(
        whole_ns=whole_ns,
        part_ns=part_ns,
        answered=answered,
        came=sum(part.came for part in parts),
        work=_merge_works([_until(part, whole_ns) for part in parts]),
        gaps=parts[0].gaps if len(parts) == 1 else {},
        backlog=_merge_backlogs([part.backlog for part in parts if part.backlog is not None]),
    )


def _in_longest(
    parts: Sequence[tuple[int, tuple[Number, ...]]],
) -> tuple[int, tuple[Number, ...]]:
    """Sum counts over time, in parts as long as the longest, a multiple of all others."""
    longest_ns = max(part_ns for part_ns, _ in parts)
    total: list[Number] = []
    for part_ns, counts in parts:
        step = longest_ns // part_ns
        starts = range(0, len(counts), step)
        wide = [sum(counts[at : at + step]) for at in starts] if step > 1 else list(counts)
        together = [one + other for one, other in zip(total, wide, strict=False)]
        total = together + total[len(together) :] + wide[len(together) :]
    return longest_ns, tuple(total)


def _until(flow: Flow, whole_ns: int) -> Work:
    """The work of one host, up to the earliest end of any host's window."""
    work = flow.work
    last, inside_ns = divmod(whole_ns, work.part_ns)
    if whole_ns >= flow.whole_ns or len(work.answers) <= last:
        return work
    of_ns = min(work.part_ns, flow.whole_ns - last * work.part_ns)
    kept = work.answers[last] * inside_ns / of_ns
    return work.model_copy(update={"answers": (*work.answers[:last], kept)})


def _merge_works(parts: Sequence[Work]) -> Work:
    part_ns, answers = _in_longest([(part.part_ns, part.answers) for part in parts])
    return Work(
        part_ns=part_ns,
        answers=answers,
        before_ns=_known_sum([part.before_ns for part in parts]),
        after_ns=_known_sum([part.after_ns for part in parts]),
        together=tuple(
            (sum(waits for waits, _ in level), sum(followers for _, followers in level))
            for level in zip_longest(*(part.together for part in parts), fillvalue=(0, 0))
        ),
    )


def _known_sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _merge_backlogs(parts: Sequence[Backlog]) -> Backlog | None:
    """The sum of all; the schedule has the same quarters everywhere."""
    if not parts:
        return None
    return Backlog(
        **sums(parts, "at_start", "at_end"),
        answered=_by_place([part.answered for part in parts]),
        latency_sum_ns=_by_place([part.latency_sum_ns for part in parts]),
    )


def _by_place(parts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*parts, strict=True)))


FLOW = Account("flow", "flow", add=add_flows, of_every_host=True)
