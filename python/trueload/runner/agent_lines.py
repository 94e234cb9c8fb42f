"""A tree's sample as JSON and back: how the agent tells the front what processes use.

Pure, of the standard library alone: both ends have it.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from trueload.machine.accounting import GroupCpu, ProcessSample, ThreadSample, TreeSample


def sample_json(sample: TreeSample) -> dict[str, Any]:
    """As it goes over the line."""
    return {
        "at_ns": sample.at_ns,
        "group": None if sample.group is None else asdict(sample.group),
        "processes": [
            {
                **asdict(each),
                "cpus": sorted(each.cpus),
                "threads": [[tid, one.run_ns, one.wait_ns] for tid, one in each.threads.items()],
            }
            for each in sample.processes.values()
        ],
    }


def parse_sample(said: dict[str, Any]) -> TreeSample:
    """As it was. Its times are of the host's clock: they compare with each other alone. Raises
    ``KeyError``, ``TypeError``, ``ValueError`` for what is no sample."""
    processes = [
        ProcessSample(
            **{
                **each,
                "cpus": frozenset(each["cpus"]),
                "threads": {tid: ThreadSample(run, wait) for tid, run, wait in each["threads"]},
            }
        )
        for each in said["processes"]
    ]
    return TreeSample(
        at_ns=said["at_ns"],
        processes={each.identity: each for each in processes},
        group=None if said["group"] is None else GroupCpu(**said["group"]),
    )
