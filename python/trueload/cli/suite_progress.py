"""How a suite goes on, on stderr: one status line on a terminal, a line per trial in a pipe.

Must not know: anything but what it is told.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from typing import TextIO

from trueload.report.table import plain
from trueload.runner.trials import Failed, Measured
from trueload.spec import Progress as TrialProgress
from trueload.suite.execute import Events
from trueload.suite.plan import Trial
from trueload.units import format_rate

REDRAW_S = 0.1


class Progress:
    """Writes to one stream. The status line is rewritten at most every `REDRAW_S`."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()
        self._head = ""
        self._drawn_s = 0.0

    def events(self) -> Events:
        """For the execution of a plan."""
        return Events(talk=self.talk, trial_starts=self.starts, trial_ended=self.ended)

    def talk(self, line: str) -> None:
        """A line that stays."""
        self._write(plain(line), stay=True)

    def starts(self, trial: Trial, number: int, of: int) -> None:
        """A trial begins."""
        where = f"{trial.cell.subject.name}, {trial.cell.load.title}"
        self._head = f"[{number:>{len(str(of))}}/{of}] {where}, r{trial.repetition}"
        if self._live:
            self._write(f"{self._head}: starts", stay=False)

    def on_progress(self, progress: TrialProgress) -> None:
        """Where the trial is."""
        now_s = time.monotonic()
        if self._live and now_s - self._drawn_s >= REDRAW_S:
            self._drawn_s = now_s
            elapsed_s = progress.elapsed_ns / 1e9
            stage = f"{progress.stage} {elapsed_s:.1f} s"
            if progress.tick is not None and elapsed_s > 0:
                counts = progress.tick.counts
                stage += f", {format_rate(counts.ok / elapsed_s)}"
                if failed := sum(counts.failed.values()):
                    stage += f", {failed} failed"
            self._write(f"{self._head}: {stage}", stay=False)

    def ended(self, trial: Trial, outcome: Measured | Failed) -> None:
        """A trial has ended."""
        if isinstance(outcome, Failed):
            self.talk(f"{self._head}: failed: {outcome.reason}")
            return
        rate = outcome.record.throughput.ok_per_s
        shown = format_rate(rate, "requests") if rate is not None else "nothing"
        if outcome.searched is not None:
            shown = outcome.searched.labels.get("result", shown)
        verdict = "invalid" if outcome.died else outcome.record.verdict
        self.talk(f"{self._head}: {shown}, {verdict}")

    def _write(self, line: str, *, stay: bool) -> None:
        # \r and "erase to the end of the line", on a terminal only.
        start = "\r\x1b[K" if self._live else ""
        if not stay:  # a line that wraps could not be taken back
            line = line[: max(shutil.get_terminal_size().columns - 1, 1)]
        # Whoever read the talk may have gone (`2>&1 | head`): no reason to end the run.
        with contextlib.suppress(OSError):
            self._out.write(f"{start}{line}" + ("\n" if stay else ""))
            self._out.flush()
