"""Compression of messages over WebSocket: which connections agreed to it, and what it saved."""

from __future__ import annotations

from trueload.record.account import Account

DEFLATE = Account("deflate", "deflate")
