"""A log whose clock was set back: its lines are in order, and their times begin again.

How: a log has its requests in the order of their ends, so that a slow one has an earlier time than
the lines before it. But the lines behind it are as late as ever. If all lines that follow are
earlier, up to the end of the log or until they have caught up as time goes by, the clock was set
back. They are moved to where the lines before them end. Pure.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from trueload.units import NS_PER_S

BACK_NS_MIN = 2 * NS_PER_S
"""A shorter step is as in a log of quick requests whose times are known to the second."""
LINES_MIN = 5
"""Fewer lines in a row may be slow requests that end together."""


def put_right(at_ns: array[int], whole: bool) -> tuple[array[int], int, int]:
    """Return times of lines as of a clock that was never set back, how often it was, and by how
    much at most. ``whole``: they are known to the second."""
    found, latest_ns, moved_ns = array("q"), at_ns[0] if at_ns else 0, 0
    steps = longest_ns = 0
    for place, raw_ns in enumerate(at_ns):
        back_ns = latest_ns - (raw_ns + moved_ns)
        if back_ns >= BACK_NS_MIN and _stays_back(at_ns, place, latest_ns - moved_ns):
            if whole and _is_full(at_ns, place, found, latest_ns):
                back_ns += NS_PER_S
            steps, longest_ns = steps + 1, max(longest_ns, back_ns)
            moved_ns += back_ns
        found.append(raw_ns + moved_ns)
        latest_ns = max(latest_ns, found[-1])
    return found, steps, longest_ns


def _stays_back(at_ns: array[int], place: int, latest_ns: int) -> bool:
    """Whether the lines from this one on are earlier than the latest so far, and take the time that
    they are back to catch up."""
    until_ns = latest_ns - BACK_NS_MIN // 2
    end = next((at for at in range(place, len(at_ns)) if at_ns[at] > until_ns), len(at_ns))
    catches_up = end == len(at_ns) or at_ns[end - 1] >= until_ns - BACK_NS_MIN // 4
    return end - place >= LINES_MIN and catches_up


def _is_full(at_ns: array[int], place: int, before: array[int], latest_ns: int) -> bool:
    """Whether the second of the step would have more lines than the fuller one beside it."""
    ends = bisect_right(before, latest_ns - NS_PER_S)
    own = len(before) - ends
    previous = ends - bisect_left(before, latest_ns - NS_PER_S)
    behind, last = at_ns[place], place
    counts = [0, 0]
    while last < len(at_ns) and at_ns[last] - behind < 2 * NS_PER_S:
        counts[at_ns[last] - behind >= NS_PER_S] += 1
        last += 1
    return own + counts[0] > max(previous, counts[1])
