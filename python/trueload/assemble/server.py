"""What a record says of a server's processes, from two samples of them. Pure.

Must not know whose server it is, or how anything is judged.
"""

from __future__ import annotations

from typing import Literal

from trueload.machine.accounting import ServerUsage, TreeSample, usage
from trueload.machine.throttling import throttled_share
from trueload.record.schema import Lifetime, Server
from trueload.units import NS_PER_S


def make_server(
    source: Literal["started", "found"],
    before: TreeSample,
    after: TreeSample,
    window_ns: int,
    bytes_per_connection: float | None = None,
) -> Server:
    """A server over a window, which lies between the samples."""
    used = usage(before, after)
    return Server(
        source=source,
        cpu_s=used.cpu_s,
        user_s=used.user_s,
        system_s=used.system_s,
        saturation=over_window(used, window_ns),
        peak_rss_bytes=used.peak_rss_bytes,
        threads=used.threads,
        lifetime=Lifetime(user_s=used.lifetime_user_s, system_s=used.lifetime_system_s),
        pids=tuple(sorted(before.pids | after.pids)),
        allowed_cpus=allowed_cpus(before, after),
        bytes_per_connection=bytes_per_connection,
        throttled_share=tree_throttled_share(before, after),
    )


def tree_throttled_share(before: TreeSample | None, after: TreeSample | None) -> float | None:
    """For which share of the time between the samples a CPU limit kept the tree from running; None
    where no cgroup counts that."""
    if before is None or after is None:
        return None
    used = usage(before, after)
    wall_ns, cpu_ns = int(used.wall_s * NS_PER_S), int(used.cpu_s * NS_PER_S)
    return throttled_share(before.throttled, after.throttled, wall_ns, cpu_ns)


def over_window(used: ServerUsage, window_ns: int) -> float | None:
    """Saturation over a window: the samples lie a little outside it, and only in it was there work
    to do. None where there was no window."""
    if used.saturation is None or window_ns <= 0:
        return None
    return min(1.0, used.saturation * max(1.0, used.wall_s * NS_PER_S / window_ns))


def allowed_cpus(*samples: TreeSample) -> tuple[int, ...]:
    """The CPUs that any process of these samples may use."""
    processes = [process for sample in samples for process in sample.processes.values()]
    return tuple(sorted({cpu for process in processes for cpu in process.cpus}))
