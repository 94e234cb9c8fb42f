"""Commands that measure: a protocol's own options with those that all of them have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trueload.commands.flags import take_flags, with_flags_of
from trueload.commands.job_options import read_job_options

if TYPE_CHECKING:
    from trueload.commands.job import Job, Workload


def measuring(read_workload: Callable[..., Workload]) -> Callable[..., Job]:
    """Return one function with a protocol's flags and those of ``read_job_options``; it returns a
    job."""

    @with_flags_of(read_workload, without=())
    @with_flags_of(read_job_options, without=())
    def read(**flags: Any) -> Job:
        from trueload.commands.measure import make_job  # imported late: a help has no job

        workload = read_workload(**take_flags(read_workload, flags))
        return make_job(workload, read_job_options(**flags))

    return read
