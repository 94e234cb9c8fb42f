"""The log of single requests: how many of them it has."""

from __future__ import annotations

from trueload.record.schema import RequestLogCounts
from trueload.report.account import AccountView, Lines
from trueload.units import counted


def _texts(found: RequestLogCounts) -> Lines:
    if found.one_in == 1:
        return [("request log", f"all {counted(found.rows, 'request')}")]
    of_all = f"{found.rows:,} of {counted(found.requests, 'request')}"
    return [("request log", f"{of_all}, one of {found.one_in:,}")]


REQUEST_LOG = AccountView(name="request_log", after="warm-up", texts=_texts)
