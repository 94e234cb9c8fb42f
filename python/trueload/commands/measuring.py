"""Commands that measure: a protocol's own options with those that all of them have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trueload.commands.flags import with_read
from trueload.commands.job_options import read_job_options

if TYPE_CHECKING:
    from trueload.commands.job import Job, Workload


def measuring(read_workload: Callable[..., Workload]) -> Callable[..., Job]:
    """Return one function with a protocol's flags and those of ``read_job_options``; it returns a
    job."""

    @with_read(options=read_job_options, workload=read_workload)
    def read(options: Any, workload: Any) -> Job:
        from trueload.commands.measure import make_job  # imported late: a help has no job

        return make_job(workload, options)

    return read
