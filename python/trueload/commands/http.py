"""The options of ``trueload http``: those of a request and those of when it is sent."""

from __future__ import annotations

from trueload.commands.measure import measuring
from trueload.commands.request_flags import read_http

read_job = measuring(read_http)
