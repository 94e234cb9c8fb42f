"""The flags of ``trueload http``: those of a request and those of when it is sent.

Must not know: any of them.
"""

from __future__ import annotations

from trueload.commands.measure import measuring
from trueload.commands.request_flags import read_asked

read_job = measuring(read_asked)
