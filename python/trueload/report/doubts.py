"""What would make a result invalid if the window ended now, as far as ticks show. Pure.

How: by the thresholds of the checks with the same names. Most checks need the whole record, so a
live view without a doubt is no verdict.
"""

from __future__ import annotations

from trueload.record import figures
from trueload.report.course import Course
from trueload.trial.spec import WINDOW
from trueload.units import NS_PER_S, format_count, format_share
from trueload.verdict.answers import ERRORS_FAIL

ANSWER_NS = NS_PER_S  # the time that a server may take for its first answers
SHORT = {"local.fds": "file descriptors", "local.ports": "local ports"}


def doubts(course: Course) -> list[str]:
    """Return each doubt in one line that begins with the name of its check; none in a warm-up."""
    if course.phase != WINDOW or not course.recent:
        return []
    return [why for why in (_unsolicited(course), _errors(course), _shortage(course)) if why]


def _unsolicited(course: Course) -> str:
    count = course.recent[-1].counts.failed.get("unsolicited", 0)
    return f"unsolicited: {format_count(count)} met bytes nobody had asked for" if count else ""


def _errors(course: Course) -> str:
    counts = course.recent[-1].counts
    failed = figures.failed(counts)
    if not failed:
        late = not counts.ok and course.elapsed_ns > ANSWER_NS
        return "errors: nothing has been answered yet" if late else ""
    share = failed / max(counts.issued, failed)
    if share < ERRORS_FAIL:
        return ""
    worst = max(counts.failed, key=lambda name: counts.failed[name])
    return f"errors: {format_share(share)} of the requests failed, mostly {worst}"


def _shortage(course: Course) -> str:
    failed = course.recent[-1].counts.failed
    short = [of for name, of in SHORT.items() if failed.get(name)]
    return f"generator-limit: it ran out of {' and '.join(short)}" if short else ""
