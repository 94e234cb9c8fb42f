"""The machine and the versions that stand in every record.

Facts only: what cannot be read is left out or None.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

from trueload import __version__
from trueload.machine.facts import count_ports, read_cpu_model, read_number, read_text
from trueload.machine.lock import beside
from trueload.machine.open_files import open_files_limit
from trueload.record.schema import Environment

_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_NET = Path("/proc/sys/net")


def read_environment(engine_version: str | None) -> Environment:
    """Return the environment of this machine, now.

    The engine's version is left out if ``engine_version`` is None, as when no engine was started.
    """
    versions = {"trueload": __version__, "python": platform.python_version()}
    if engine_version is not None:
        versions["engine"] = engine_version
    return Environment(
        kernel=f"{platform.system()} {platform.release()}",
        cpu_model=read_cpu_model(),
        cpu_count=os.cpu_count() or 1,
        governor=read_text(_GOVERNOR),
        limits=_limits(),
        versions=versions,
        measured_beside=beside(),
    )


def _limits() -> dict[str, int]:
    soft, hard = open_files_limit()
    found = {
        "open_files_soft": soft,
        "open_files_hard": hard,
        "somaxconn": read_number(_NET / "core/somaxconn"),
        "tcp_max_syn_backlog": read_number(_NET / "ipv4/tcp_max_syn_backlog"),
        "local_ports": count_ports(),
    }
    return {name: limit for name, limit in found.items() if limit is not None}
