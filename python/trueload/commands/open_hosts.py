"""Opens the hosts of a job's load, and tells the user of long copies."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

from trueload.commands.host_duration import for_job
from trueload.commands.job import Job
from trueload.engines.engine import find_engine
from trueload.interrupt import Interrupt
from trueload.places import EngineHost
from trueload.places.late_hosts import LateHosts
from trueload.places.open import open_first, open_places


def open_hosts(
    job: Job, announce: Callable[[str], object], interrupt: Interrupt
) -> contextlib.AbstractContextManager[tuple[EngineHost, ...]]:
    """Return the context of the opened hosts. It raises ``UserError``, and ``KeyboardInterrupt``
    if the user asks to stop meanwhile."""
    stopped = partial(_is_requested, interrupt)
    return open_places(for_job(job), find_engine(), announce=announce, stopped=stopped)


def open_now(
    job: Job, announce: Callable[[str], object], interrupt: Interrupt
) -> contextlib.AbstractContextManager[tuple[tuple[EngineHost, ...], LateHosts | None]]:
    """Return the same, with the hosts that may join later, if the run may begin without them."""
    stopped = partial(_is_requested, interrupt)
    return open_first(for_job(job), find_engine(), announce=announce, stopped=stopped)


def _is_requested(interrupt: Interrupt) -> bool:
    return interrupt.requested
