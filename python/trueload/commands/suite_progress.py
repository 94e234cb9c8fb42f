"""The progress of a suite on stderr: a live panel on a terminal, and a lasting line per trial.

How: while a trial is built and started there is a status line, and then its panel. Its result is a
line of its own. For an invalid result the reason comes before the figure, which is dim. In a pipe,
or with ``--no-live``, there are only lines, in one form.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from typing import TextIO

from trueload.metrics.exports import Exports
from trueload.protocol.client_progress import OnClientProgress
from trueload.report.heading import Heading
from trueload.report.live import Page, client_view, is_terminal, watch
from trueload.runner.trials import TrialFailure, TrialResult
from trueload.suites.execute import Events
from trueload.suites.plan import Trial
from trueload.text import plain
from trueload.trial.spec import OnProgress, TrialSpec
from trueload.units import format_rate

DIM, PLAIN = "\x1b[2m", "\x1b[0m"
CLEAR = "\r\x1b[K"  # to the start of the line, and clear the rest
MINUTE_S = 60


class Progress:
    """Writes to one stream, and lets the trials be observed."""

    def __init__(
        self, out: TextIO, exports: Exports, *, live: bool = True, page: Page | None = None
    ) -> None:
        self._out = out
        self._exports = exports
        self._page = page
        self._labels: dict[str, str] = {}
        self._live = live and is_terminal(out)
        self._head = ""
        self._heading = Heading("")
        self._begun: tuple[float, int] | None = None

    def events(self) -> Events:
        """Return the callbacks for the execution of a plan."""
        return Events(talk=self.talk, trial_starts=self.starts, trial_ended=self.ended)

    def talk(self, line: str) -> None:
        """Write a line that stays."""
        self._write(plain(line), stay=True)
        self._tell_page(line)

    def starts(self, trial: Trial, number: int, of: int) -> None:
        where = f"{trial.cell.subject.name}, {trial.cell.load.title}"
        self._head = f"[{number:>{len(str(of))}}/{of}] {where}, r{trial.repetition}"
        self._labels = {
            "trial": str(number),
            "subject": trial.cell.subject.name,
            "load": trial.cell.load.title,
            "repetition": str(trial.repetition),
        }
        now_s = time.monotonic()
        if self._begun is None:
            self._begun = (now_s, number)
        began_s, first = self._begun
        left = time_left(now_s - began_s, number - first, of - number + 1)
        self._heading = Heading(f"{where}, r{trial.repetition}", number, of, left)
        if self._live:
            self._write(f"{self._head}: starts{left}", stay=False)

    @contextlib.contextmanager
    def watching(self, spec: TrialSpec) -> Iterator[OnProgress | None]:
        """Show the panel of the trial that has begun, if there is one."""
        if self._live:
            self._write("", stay=False)
        seen = self._exports.beside(watch(live=self._live, page=self._page))
        with seen(spec, self._heading, self._labels) as on_progress:
            yield on_progress

    @contextlib.contextmanager
    def watching_client(self) -> Iterator[OnClientProgress | None]:
        """Show the panel of the client that is measured, if there is one."""
        if self._live:
            self._write("", stay=False)
        with client_view(self._heading, live=self._live, page=self._page) as on_progress:
            yield on_progress

    def ended(self, trial: Trial, outcome: TrialResult | TrialFailure) -> None:
        if isinstance(outcome, TrialFailure):
            how = "unsupported" if outcome.unsupported else "failed"
            self.talk(f"{self._head}: {how}: {outcome.reason}")
            return
        if outcome.record.client is not None:
            self._exports.measured(self._labels, outcome.record)
        rate = outcome.record.throughput.ok_per_s
        shown = format_rate(rate, "requests") if rate is not None else "nothing"
        if outcome.searched is not None:
            shown = outcome.searched.labels.get("result", shown)
        if self._live and (why := _why_invalid(outcome)):
            reason = plain(f"{self._head}: invalid, {why}")
            self._write(f"{reason}: {DIM}{plain(shown)}{PLAIN}", stay=True)
            self._tell_page(f"{reason}: {shown}")
            return
        verdict = "invalid" if outcome.died else outcome.record.verdict_text
        self.talk(f"{self._head}: {shown}, {verdict}")

    def _tell_page(self, line: str) -> None:
        if self._page is not None:
            self._page.tell(line)

    def _write(self, line: str, *, stay: bool) -> None:
        start = CLEAR if self._live else ""
        if not stay:  # a line that wraps could not be erased
            line = line[: max(_columns(self._out) - 1, 1)]
        # The reader may have gone (`2>&1 | head`), which is no reason to end the run.
        with contextlib.suppress(OSError):
            self._out.write(f"{start}{line}" + ("\n" if stay else ""))
            self._out.flush()


def _columns(out: TextIO) -> int:
    """Return the width of a terminal; stdout may be a different one, or none."""
    try:
        return os.get_terminal_size(out.fileno()).columns
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns


def _why_invalid(outcome: TrialResult) -> str:
    """Return the reason why a figure is invalid; '' if it is not."""
    if outcome.died:
        return plain(outcome.died)
    checks = outcome.record.checks
    return next((f"{each.name}: {each.why}" for each in checks if each.status == "fail"), "")


def time_left(elapsed_s: float, done: int, left: int) -> str:
    """Estimate the time of the remaining trials from those done; '' before the first. Pure."""
    if done < 1:
        return ""
    left_s = elapsed_s / done * left
    if left_s < MINUTE_S:
        return f", about {left_s:.0f} s left"
    return f", about {left_s / MINUTE_S:.0f} min left"
