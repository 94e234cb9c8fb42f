"""The record's account of a server's processes, from two samples of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from trueload.machine.accounting import ServerUsage, TreeSample, usage
from trueload.machine.noise import NoiseSample
from trueload.machine.throttling import throttled_share
from trueload.record.schema import Backend, Lifetime, Server, ServerSource
from trueload.units import NS_PER_S

# Below this many connections, most of a server's growth is what it allocates once at its start.
MEANINGFUL_CONNECTIONS = 100


def make_server(
    source: ServerSource,
    before: TreeSample,
    after: TreeSample,
    window_ns: int,
    bytes_per_connection: float | None = None,
) -> Server:
    """Return the server over a window; the window lies between the samples."""
    used = usage(before, after)
    names = {each.name for each in (*before.processes.values(), *after.processes.values())}
    return Server(
        source=source,
        name=", ".join(sorted(names - {""})) or None,
        cpu_s=used.cpu_s,
        user_s=used.user_s,
        system_s=used.system_s,
        saturation=over_window(used, window_ns),
        peak_rss_bytes=used.peak_rss_bytes,
        rss_before_bytes=before.rss_bytes or None,
        rss_after_bytes=after.rss_bytes or None,
        threads=used.threads,
        lifetime=Lifetime(user_s=used.lifetime_user_s, system_s=used.lifetime_system_s),
        pids=tuple(sorted(before.pids | after.pids)),
        allowed_cpus=allowed_cpus(before, after),
        bytes_per_connection=bytes_per_connection,
        throttled_share=tree_throttled_share(before, after),
    )


def bytes_per_connection(
    idle: TreeSample | None, now: TreeSample, connections: int
) -> float | None:
    """Return the growth of the tree's resident memory since ``idle``, per connection, in bytes.

    ``connections`` is the largest number of connections since then. None if there is no idle
    sample, if memory has not grown, or with fewer than ``MEANINGFUL_CONNECTIONS`` connections.
    """
    if idle is None or connections < MEANINGFUL_CONNECTIONS:
        return None
    grown = now.rss_bytes - idle.rss_bytes
    return grown / connections if grown > 0 else None


def tree_throttled_share(before: TreeSample | None, after: TreeSample | None) -> float | None:
    """Return the share of the time between the samples in which a CPU limit stopped the tree.

    None if no cgroup counts that.
    """
    if before is None or after is None:
        return None
    used = usage(before, after)
    wall_ns, cpu_ns = int(used.wall_s * NS_PER_S), int(used.cpu_s * NS_PER_S)
    return throttled_share(before.throttled, after.throttled, wall_ns, cpu_ns)


def make_backends(
    names: Mapping[int, str], before: NoiseSample | None, after: NoiseSample | None
) -> tuple[Backend, ...]:
    """The CPU time of the named processes between two samples, the largest first."""
    if before is None or after is None:
        return ()
    found = []
    for identity, used in after.processes.items():
        if (pid := identity[0]) in names:
            was = before.processes.get(identity)
            cpu_ns = used.cpu_ns - (was.cpu_ns if was is not None else 0)
            found.append(Backend(pid=pid, name=names[pid], cpu_s=cpu_ns / NS_PER_S))
    return tuple(sorted(found, key=lambda each: -each.cpu_s))


def over_window(used: ServerUsage, window_ns: int) -> float | None:
    """Return the saturation over a window; None if there was no window.

    The samples lie a little outside the window, and only in the window was there work to do. So the
    share is scaled from the time between the samples to the window.
    """
    if used.saturation is None or window_ns <= 0:
        return None
    return min(1.0, used.saturation * max(1.0, used.wall_s * NS_PER_S / window_ns))


def allowed_cpus(*samples: TreeSample) -> tuple[int, ...]:
    """The CPUs that any process of these samples may use."""
    processes = [process for sample in samples for process in sample.processes.values()]
    return tuple(sorted({cpu for process in processes for cpu in process.cpus}))
