"""Datagrams that settled no request, or came out of turn."""

from __future__ import annotations

from trueload.record.account import Account

DATAGRAMS = Account("datagrams", "datagrams")
