"""Checks of the machine and the generator: is the figure the server's, or theirs?

Pure functions of a record.
"""

from __future__ import annotations

from dataclasses import replace

from trueload.record.client import MS_PER_S, ClientEnd
from trueload.record.schema import Record, Status
from trueload.request.route import is_loopback
from trueload.units import NS_PER_S, format_cpu_list, format_duration, format_share
from trueload.verdict.common import (
    DELAYS,
    SERVES_MORE,
    Definition,
    Finding,
    graded,
    not_applicable,
    too_short,
)
from trueload.verdict.flow import LITTLE_WARN
from trueload.verdict.hosts import SEVERITY
from trueload.verdict.throttling import STOOD_FAIL, STOOD_WARN, TURN_NS

GENERATOR_FULL = 0.95  # beyond this a thread has no slack left: it times its own queue
GENERATOR_NEARLY_FULL = 0.90  # its own pauses are then as long as the server's
SERVER_FULL = 0.90  # a server as full as this would not have gone much faster
SERVER_LIMIT = 0.97  # what is left is less than figures differ by
# A server with a third of its time to spare may carry half as much again, so the lower bound is
# still close.
SERVER_NEARLY_FULL = 2 / 3
SERVER_BUSY = 0.80  # a server with more than a fifth of its time to spare was not at its limit
LATE_SHARE = LITTLE_WARN  # of a client's wait: its ceiling would then be another
HELD_WARN, HELD_FAIL = STOOD_WARN, STOOD_FAIL  # being held up has the same effect as standing still
STOLEN_WARN, STOLEN_FAIL = 0.05, 0.25  # of all CPUs' time: a figure can be off by as much
NOISE_WINDOW_NS = NS_PER_S  # engines elsewhere count in ticks of 10 ms; below this they err by 1 %
NOISE_UNKNOWN = "what else ran on the machine is not known"
SHARED_WARN = 0.10
"""The share of the window in which an end waits for the other.

On two CPUs with one thread at each end it is 1 to 2 %. With two threads of the generator it is 18
to 35 %, and p99 is three times as long.
"""
HOST_IDLE_MIN = 0.10  # with this much idle, generator and server did not wait for each other
SERVER_UNKNOWN = "what the server's processes used is not known"


def check_generator_limit(record: Record) -> Finding:
    """Compare the saturation of both ends: which of them was the limit?"""
    for failures in (record.counts.failed, record.connections.failed):
        for ran_out, of in (("local.fds", "file descriptors"), ("local.ports", "local ports")):
            if failures.get(ran_out):
                why = f"generator limited: it ran out of {of}"
                return Finding("fail", why, failures[ran_out], 0)
    generator = record.generator.saturation
    server = record.server.saturation if record.server else None
    if generator is None:
        return not_applicable("the generator's saturation is not known")
    if short := too_short(record):
        return not_applicable(short)
    busy = f"the generator's busiest thread was busy for {format_share(generator)} of the window"
    if server is None:
        if generator >= GENERATOR_FULL:
            why = (
                f"{busy}, and {SERVER_UNKNOWN}: the generator may have been the limit, and"
                " the server may carry more"
            )
            return Finding("warn", why, generator, GENERATOR_FULL)
        if generator >= GENERATOR_NEARLY_FULL:
            why = f"{busy}, and {SERVER_UNKNOWN}: a lower bound"
            return Finding("bound", why, generator, GENERATOR_NEARLY_FULL)
        return not_applicable(f"{SERVER_UNKNOWN}; {busy}")
    both = f"{busy}, the server's for {format_share(server)}"
    if generator >= GENERATOR_FULL and server < SERVER_NEARLY_FULL:
        # The throughput is a lower bound, too, but the times are those of the generator's queue.
        return Finding("fail", f"{both}: the generator was the limit", generator, GENERATOR_FULL)
    if generator < GENERATOR_NEARLY_FULL:
        return Finding("pass", both, generator, GENERATOR_NEARLY_FULL)
    if server >= SERVER_LIMIT:
        why = f"{both}: the server was at its limit"
        return Finding("pass", why, generator, GENERATOR_NEARLY_FULL)
    more = f"{format_share(1 / server - 1)} more" if server else "more"
    why = f"{both}: a lower bound, the server may carry {more}"
    return Finding("bound", why, generator, GENERATOR_NEARLY_FULL)


def check_client_generator_limit(record: Record, client: ClientEnd) -> Finding:
    """Check that the reference server had time to spare, and answered when it should."""
    busy = record.server.saturation if record.server is not None else None
    if busy is None:
        return not_applicable("the reference server's saturation is not known")
    if short := too_short(record):
        return not_applicable(short)
    found = f"the reference server was busy for {format_share(busy)} of the time"
    if busy >= SERVER_BUSY:
        return Finding("fail", f"{found}: it was the limit", busy, SERVER_BUSY)
    late = client.seen.delay_error_ns
    allowed_ns = LATE_SHARE * client.asked.wait_ms * NS_PER_S / MS_PER_S
    if late is not None and late.mean > allowed_ns:
        why = f"{found}, but answered {format_duration(late.mean)} late on average"
        return Finding("warn", why, late.mean, allowed_ns)
    return Finding("pass", found, busy, SERVER_BUSY)


def remedy_without_cpus(record: Record) -> str | None:
    """The remedy if this machine has no CPU left for more threads of the generator.

    More threads would take the server's CPU time. None if there is a CPU left.
    """
    idle, count = record.window.host_idle_share, record.environment.cpu_count
    if (
        idle is None
        or idle * count >= 1
        or not all(map(is_loopback, record.plan.generate.every_address))
    ):
        return None
    return (
        "Give the load to another machine (--place ssh:HOST), or take the figure as a"
        " lower bound: this machine has no CPU left for more --threads."
    )


GENERATOR_LIMIT = Definition(
    name="generator-limit",
    order=50,
    compute=check_generator_limit,
    of_client=check_client_generator_limit,
    fault="generator",
    moves=DELAYS,
    meaning="If the generator had no time left, the figure is the generator's, not the server's.",
    remedy=(
        "Give the generator more --threads or CPUs of its own (--cpus), or the server fewer; if it"
        " ran out of files, raise `ulimit -n`, if of ports, add a --local-address. Where a client"
        " is measured, give the reference server more --threads."
    ),
    remedy_where=remedy_without_cpus,
    spoiled="the generator was the limit",
    per_host=True,
)


def check_server_idle(record: Record) -> Finding:
    """Check that the server was at its limit, if that is claimed."""
    if not record.plan.claim.maximum:
        return not_applicable("no maximum is claimed for the server")
    if short := too_short(record):
        return not_applicable(short)
    saturation = record.server.saturation if record.server else None
    if saturation is None:
        return not_applicable(SERVER_UNKNOWN)
    generator = record.generator.saturation
    if generator is not None and generator >= GENERATOR_NEARLY_FULL:
        return not_applicable("the generator was the limit")
    why = f"the server's busiest thread was busy for {format_share(saturation)} of the window"
    if saturation < SERVER_BUSY:
        why += ", and the generator had time to spare: something else was the limit"
        return Finding("warn", why, saturation, SERVER_BUSY)
    return Finding("pass", why, saturation, SERVER_BUSY)


SERVER_IDLE = Definition(
    name="server-idle",
    order=140,
    compute=check_server_idle,
    of_client="the server is ours, and should have time to spare (generator-limit)",
    fault="load",
    moves=SERVES_MORE,
    meaning=(
        "A server with CPU time to spare was not at its limit, so its maximum is higher than"
        " this figure."
    ),
    remedy="Use more --connections or --pipeline, or look at what the server waits for.",
)


def check_noise(record: Record) -> Finding:
    """Grade the time that both ends waited for CPUs used by processes outside the run.

    Also grades the time that the machine's own host took. Another trueload that measured at the
    same time warns, whatever it took: two generators disturb each other in more than CPU time.
    """
    found = _check_waits(record)
    other = record.environment.measured_beside
    if other is None:
        return found
    status = found.status if found.status == "fail" else "warn"
    return replace(found, status=status, why=f"measured at the same time: {other}; {found.why}")


def _check_waits(record: Record) -> Finding:
    window = record.window
    if window.others_share is None or window.stolen_share is None:
        if record.partial or any(host.place != "local" for host in record.hosts):
            return not_applicable(NOISE_UNKNOWN)
        return Finding("warn", NOISE_UNKNOWN)
    stolen, limit = graded(window.stolen_share, STOLEN_WARN, STOLEN_FAIL)
    took = (
        f"other processes took {format_share(window.others_share)} of the machine's CPU"
        f" time, its hypervisor {format_share(window.stolen_share)}"
    )
    ends = {"generator": record.generator, "server": record.server}
    waits = {name: end.waited.for_others for name, end in ends.items() if end and end.waited}
    if not waits:
        return _unattributed(record, took)
    held, least = graded(max(waits.values()), HELD_WARN, HELD_FAIL)
    if max(waits.values()) * window.window_ns < TURN_NS:
        held = "pass"
    why = " and ".join(f"the {name} for {format_share(share)}" for name, share in waits.items())
    why = f"other processes delayed {why} of the window; {took}"
    if SEVERITY[stolen] > SEVERITY[held]:
        return Finding(stolen, why, window.stolen_share, limit)
    return Finding(held, why, max(waits.values()), least)


def _unattributed(record: Record, took: str) -> Finding:
    """Judge noise if it is not known which processes the ends waited for.

    On another host all other processes count. If the server cannot be told from them, only what the
    machine's host took counts.
    """
    window = record.window
    stolen, others = window.stolen_share or 0.0, window.others_share or 0.0
    if any(host.place != "local" for host in record.hosts):
        if short := too_short(record, NOISE_WINDOW_NS):
            return not_applicable(short)
        stolen += others
    else:
        took = f"{took}; whether engine or server waited for them is not known"
    status, limit = graded(stolen, STOLEN_WARN, STOLEN_FAIL)
    return Finding(status, took, stolen, limit)


NOISE = Definition(
    name="noise",
    order=160,
    compute=check_noise,
    fault="machine",
    moves=DELAYS,
    meaning=(
        "When the generator or the server has to wait for other programs, the figure"
        " includes that wait."
    ),
    remedy=(
        "End other programs, or measure on a quiet machine; `trueload doctor` looks at the load."
    ),
    spoiled="other processes held it up",
    per_host=True,
)


def check_same_host(record: Record) -> Finding:
    """Check whether generator and server on one machine took CPU time from each other."""
    addresses = record.plan.generate.every_address
    if not all(map(is_loopback, addresses)):
        return not_applicable("the target is not on this machine's loopback")
    if not addresses:
        return not_applicable("the target has no address")
    engine = set(record.generator.allowed_cpus)
    server = set(record.server.allowed_cpus) if record.server else set()
    if engine and server and not engine & server:
        apart = f"generator on CPU {format_cpu_list(engine)}, server on {format_cpu_list(server)}"
        return Finding("pass", f"kept apart: {apart}")
    if short := too_short(record):
        return not_applicable(short)
    ends = {"the generator": record.generator, "the server": record.server}
    waits = {
        name: max(0.0, end.waited.share - end.waited.for_others)
        for name, end in ends.items()
        if end and end.waited
    }
    if len(waits) == len(ends):
        most = max(waits.values())
        waited = " and ".join(f"{name} for {format_share(share)}" for name, share in waits.items())
        why = f"generator and server share CPUs, and waited for each other: {waited} of the window"
        return Finding("warn" if most >= SHARED_WARN else "pass", why, most, SHARED_WARN)
    idle = record.window.host_idle_share
    if idle is None:
        return not_applicable("how busy the machine was is not known")
    shared = "share CPUs" if server else "may share CPUs"
    why = f"generator and server {shared}, and the machine was idle for {format_share(idle)}"
    status: Status = "pass" if idle >= HOST_IDLE_MIN else "warn"
    return Finding(status, why, idle, HOST_IDLE_MIN)


def check_client_same_host(record: Record, client: ClientEnd) -> Finding:
    """Check that the client and the reference server had CPUs of their own."""
    theirs = set(record.generator.allowed_cpus)
    ours = set(record.server.allowed_cpus) if record.server is not None else set()
    if not theirs or not ours:
        return not_applicable("the CPUs of both ends are not known")
    apart = f"client on CPU {format_cpu_list(theirs)}, server on {format_cpu_list(ours)}"
    if theirs & ours:
        return Finding("warn", f"they share CPUs: {apart}")
    return Finding("pass", f"kept apart: {apart}")


SAME_HOST = Definition(
    name="same-host",
    order=170,
    compute=check_same_host,
    of_client=check_client_same_host,
    fault="machine",
    moves=DELAYS,
    meaning="On one machine without spare CPU time, generator and server slow each other down.",
    remedy="Pin them apart: `taskset -c 0` for the server and --cpus 1 here, or use two machines.",
)
