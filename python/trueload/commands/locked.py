"""What a measurement needs once its hosts are open: their locks, and the server that it starts.

One command measures at a time: it waits for another trueload on the same machines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from trueload.commands.job import Job
from trueload.commands.output import announce as announce_on_stderr
from trueload.engines.locks import hold_locks
from trueload.interrupt import Interrupt
from trueload.places import EngineHost
from trueload.places.names import CommandHost, Placement, SshHost, ThisMachine
from trueload.trial.spec import TrialSpec


def locked(
    what: str,
    placement: Placement,
    hosts: Sequence[EngineHost],
    interrupt: Interrupt,
    *,
    announce: Callable[[str], object] = announce_on_stderr,
    starts_subjects: bool = False,
) -> AbstractContextManager[None]:
    """Lock the machines of a command that does ``what``. Raises ``UserError``.

    Hosts of a cluster are left out: the cluster says who gets them.
    """
    places = [each.place for each in placement.generators]
    named = {each.name for each in places if isinstance(each, SshHost | CommandHost)}
    return hold_locks(
        what,
        [each.place for each in hosts if each.place.name in named],
        placement.wait_ns,
        here=ThisMachine() in places or (starts_subjects and placement.server is None),
        announce=announce,
        stopped=lambda: interrupt.requested,
    )


def served(job: Job, spec: TrialSpec) -> AbstractContextManager[TrialSpec]:
    """The specification with the server that was asked for, if one was. Raises ``UserError``."""
    if job.placement.server is None:
        return nullcontext(spec)
    from trueload.commands.server_place import with_server  # imported late: few start one

    return with_server(job, spec)
