"""Whether the answers to each request were alike."""

from __future__ import annotations

from trueload.report.account import Shown
from trueload.verdict.varying import answers_text

ANSWERS = Shown(
    name="answers", after="statuses", lines=lambda record: [("answers", answers_text(record))]
)
