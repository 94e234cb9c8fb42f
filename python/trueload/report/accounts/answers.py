"""Whether the answers to each request were alike."""

from __future__ import annotations

from trueload.report.account import AccountView
from trueload.verdict.varying import answers_text

ANSWERS = AccountView(
    name="answers", after="statuses", lines=lambda record: [("answers", answers_text(record))]
)
