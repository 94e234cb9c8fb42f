"""Checks of the machine and of the generator: is the figure the server's, or theirs?

Pure functions of a record.
"""

from __future__ import annotations

import ipaddress

from trueload.record.schema import Check, Record, Status
from trueload.units import NS_PER_S, format_cpu_list, format_duration, format_share
from trueload.verdict.common import checked, graded, graded_beyond, not_applicable, too_short

GENERATOR_FULL = 0.95  # beyond this a thread has no slack left: it times its own queue
SERVER_FULL = 0.90  # a server as full as this would not have gone much faster
SERVER_IDLE = 0.80  # a server with a fifth of its time to spare was not at its limit
HICCUP_WARN_NS = NS_PER_S // 10  # ten beats of 10 ms: more than a scheduler does by itself
HICCUP_FAIL_NS = NS_PER_S // 2  # as long as a stop of the process, or of the machine
NOISE_WARN, NOISE_FAIL = 0.05, 0.25  # of all CPUs' time: a figure can be off by as much
NOISE_WINDOW_NS = NS_PER_S  # /proc/stat counts in ticks of 10 ms; shorter windows err by 1 % and up
HOST_IDLE_MIN = 0.10  # with this much idle, generator and server did not wait for each other
SERVER_UNKNOWN = "what the server's processes used is not known"


def check_generator_limit(record: Record) -> Check:
    """Saturation of both ends: whose limit was it?"""
    name = "generator-limit"
    for failures in (record.counts.failed, record.connections.failed):
        for ran_out, of in (("local.fds", "file descriptors"), ("local.ports", "local ports")):
            if failures.get(ran_out):
                why = f"generator limited: it ran out of {of}"
                return checked(name, "fail", why, failures[ran_out], 0)
    generator = record.generator.saturation
    server = record.server.saturation if record.server else None
    if generator is None:
        return not_applicable(name, "the generator's saturation is not known")
    if short := too_short(record):
        return not_applicable(name, short)
    busy = f"the generator's busiest thread was busy for {format_share(generator)} of the window"
    if server is None:
        if generator >= GENERATOR_FULL:
            why = f"{busy}, and {SERVER_UNKNOWN}: it may have had more to give"
            return checked(name, "warn", why, generator, GENERATOR_FULL)
        return not_applicable(name, f"{SERVER_UNKNOWN}; {busy}")
    both = f"{busy}, the server's for {format_share(server)}"
    if generator >= GENERATOR_FULL and server < SERVER_FULL:
        return checked(
            name, "fail", f"{both}: the generator was the limit", generator, GENERATOR_FULL
        )
    if generator >= SERVER_FULL and server >= SERVER_FULL:
        return checked(name, "warn", f"{both}: co-limited, a lower bound", generator, SERVER_FULL)
    return checked(name, "pass", both, generator, GENERATOR_FULL)


def check_server_idle(record: Record) -> Check:
    """Whether the server was at its limit, where that is claimed."""
    name = "server-idle"
    if not record.plan.claim.maximum:
        return not_applicable(name, "nobody claims that the server can do no more")
    if short := too_short(record):
        return not_applicable(name, short)
    saturation = record.server.saturation if record.server else None
    if saturation is None:
        return not_applicable(name, SERVER_UNKNOWN)
    generator = record.generator.saturation
    if generator is not None and generator >= GENERATOR_FULL:
        return not_applicable(name, "the generator was the limit")
    why = f"the server's busiest thread was busy for {format_share(saturation)} of the window"
    if saturation < SERVER_IDLE:
        why += ", and the generator had time to spare: something else was the limit"
        return checked(name, "warn", why, saturation, SERVER_IDLE)
    return checked(name, "pass", why, saturation, SERVER_IDLE)


def check_hiccup(record: Record) -> Check:
    """The lateness, in all, of the engine's own 10 ms heartbeats."""
    name, late_ns = "hiccup", record.generator.hiccup_ns
    if late_ns is None:
        return not_applicable(name, "the engine ended before it could say")
    why = f"the generator's heartbeats were late by {format_duration(late_ns)} in all"
    status, limit_ns = graded_beyond(late_ns, HICCUP_WARN_NS, HICCUP_FAIL_NS)
    return checked(name, status, why, late_ns, limit_ns)


def check_noise(record: Record) -> Check:
    """CPU time that went to others than engine, front, runner and server, of all there was."""
    name, window = "noise", record.window
    if window.others_share is None or window.stolen_share is None:
        return not_applicable(name, "how busy the machine was is not known")
    if short := too_short(record, NOISE_WINDOW_NS):
        return not_applicable(name, short)
    share = window.others_share + window.stolen_share
    status, limit = graded(share, NOISE_WARN, NOISE_FAIL)
    why = (
        f"other processes took {format_share(window.others_share)} of the machine's CPU time,"
        f" its host {format_share(window.stolen_share)}"
    )
    return checked(name, status, why, share, limit)


def check_same_host(record: Record) -> Check:
    """Whether generator and server on one machine took CPU time from each other."""
    name = "same-host"
    addresses = record.plan.generate.every_address
    if not all(map(is_loopback, addresses)):
        return not_applicable(name, "the target is not on this machine's loopback")
    if not addresses:
        return not_applicable(name, "the target has no address")
    engine = set(record.generator.allowed_cpus)
    server = set(record.server.allowed_cpus) if record.server else set()
    if engine and server and not engine & server:
        apart = f"generator on CPU {format_cpu_list(engine)}, server on {format_cpu_list(server)}"
        return checked(name, "pass", f"kept apart: {apart}")
    idle = record.window.host_idle_share
    if idle is None:
        return not_applicable(name, "how busy the machine was is not known")
    if short := too_short(record):
        return not_applicable(name, short)
    shared = "share CPUs" if server else "may share CPUs"
    why = f"generator and server {shared}, and the machine was idle for {format_share(idle)}"
    status: Status = "pass" if idle >= HOST_IDLE_MIN else "warn"
    return checked(name, status, why, idle, HOST_IDLE_MIN)


def is_loopback(address: str) -> bool:
    """Whether ``IP:PORT`` or ``[IPv6]:PORT`` is of this machine's loopback; ``unix:PATH`` is."""
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    return ipaddress.ip_address(host.partition("%")[0]).is_loopback
