"""How long a command needs its hosts, and the Job of Pods that it would make for that time.

How: what is planned gives the length, as far as it is known. Pods that are made end by themselves
some time after it, if nobody is left to end them. Pure, except that a manifest is printed.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from trueload.commands.job import Job
from trueload.errors import UserError
from trueload.places.names import K8sPods, Placement
from trueload.protocol.plan import Duration
from trueload.trial.spec import TrialSpec
from trueload.units import NS_PER_S

if TYPE_CHECKING:
    from trueload.suites.plan import SuitePlan

STEPS = 40  # a search for a rate takes 10 to 25
STEP_NS = 20 * NS_PER_S  # more than the average of those that end when enough was seen
BETWEEN_NS = 10 * NS_PER_S  # to connect, and to settle
BUILDS_NS = 3600 * NS_PER_S  # of all subjects of a suite, before its first trial


def check_dry_run(dry_run: bool, placement: Placement) -> None:
    """Refuse ``--dry-run`` if there is nothing to print. Raises ``UserError``."""
    if dry_run and not placement.makes_pods:
        raise UserError(
            "--dry-run prints the Job of Pods that are made, and no --place makes any",
            "leave it out, or let it make Pods: --place k8s:NAMESPACE --hosts N",
        )


def for_job(job: Job, trials: int | None = None) -> Placement:
    """Return the hosts of a job, which are needed for so many ``trials``; None is its own."""
    one_ns = trial_ns(job.spec)
    count = trials or job.repeat
    if job.search is not None and job.search.axis == "clients":
        one_ns = None
    elif job.search is not None:
        count = STEPS
        one_ns = (job.search.step_ns or STEP_NS) + _beside_ns(job.spec)
    return _lasting(
        job.placement, job.spec.engine.threads, None if one_ns is None else count * one_ns
    )


def for_suite(placement: Placement, plan: SuitePlan) -> Placement:
    """Return the hosts of a suite."""
    from trueload.suites.plan import duration_ns  # imported late: a single run has no suite

    all_ns = duration_ns(plan)
    more_ns = BUILDS_NS + (plan.patience_ns or 0)
    return _lasting(placement, plan.threads, None if all_ns is None else all_ns + more_ns)


def trial_ns(spec: TrialSpec) -> int | None:
    """Return about how long a trial takes; None if it ends by a count."""
    stop = spec.load.stop
    return stop.ns + _beside_ns(spec) if isinstance(stop, Duration) else None


def _beside_ns(spec: TrialSpec) -> int:
    """The time that a trial takes beside its window."""
    warmup = spec.load.warmup
    warmup_ns = warmup.ns if isinstance(warmup, Duration) else 0
    return warmup_ns + spec.engine.timeout_ns + BETWEEN_NS


def _lasting(placement: Placement, threads: int, planned_ns: int | None) -> Placement:
    new = replace(placement.new_pods, threads=threads, planned_ns=planned_ns)
    return replace(placement, new_pods=new)


def print_manifest(placement: Placement) -> None:
    """Print the Job of each place that Pods are made in, as JSON that kubectl takes."""
    from trueload.places.k8s import make_manifest  # imported late: few commands make Pods

    for each in placement.generators:
        if isinstance(each.place, K8sPods) and each.place.are_made:
            found = make_manifest(each.place, placement.hosts or 1, placement.new_pods)
            sys.stdout.write(json.dumps(found, indent=2) + "\n")
