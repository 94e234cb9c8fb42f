"""The progress of a trial in a detached run, for those who attach to it.

How: the trial leaves a line from time to time, and rows of the live view while somebody watches.
They are drawn in the process that watches. Must not know: terminals.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from trueload.report.course import Course
from trueload.report.heading import Heading
from trueload.report.panel import load_rows
from trueload.report.progress_log import progress_logger
from trueload.report.rows import Row, Size, Span
from trueload.store.detached import DetachedFiles
from trueload.text import plain
from trueload.trial.spec import OnProgress, Progress, TrialSpec


@contextmanager
def for_attached(spec: TrialSpec, heading: Heading, files: DetachedFiles) -> Iterator[OnProgress]:
    """Write the progress of a trial to the files of its run."""
    course = Course()
    tell = progress_logger(
        spec, heading.title, time.monotonic, lambda line: files.write_progress(plain(line))
    )

    def show(progress: Progress) -> None:
        tell(progress)
        if progress.record is not None:
            return
        course.receive(progress, is_open=spec.load.is_open)
        if (size := files.size()) is not None:
            files.write_view(
                [heading.title, load_rows(spec, progress, course, heading, Size(*size))]
            )

    try:
        yield show
    finally:
        files.write_progress("")
        files.write_view(None)


def read_view(view: Any) -> tuple[str, Sequence[Row]]:
    """Return the title and the rows of a view."""
    title, rows = view
    return title, [tuple(Span(*span) for span in row) for row in rows]
