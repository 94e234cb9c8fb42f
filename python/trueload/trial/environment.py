"""The machine and the versions that stand in every record. Facts only; what cannot be read is left
out or None. Must not know what is good or bad (``doctor``)."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from trueload import __version__
from trueload.machine.open_files import open_files_limit
from trueload.record.schema import Environment

_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_LIMITS = {
    "somaxconn": Path("/proc/sys/net/core/somaxconn"),
    "tcp_max_syn_backlog": Path("/proc/sys/net/ipv4/tcp_max_syn_backlog"),
}
_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def read_environment(engine_version: str | None) -> Environment:
    """This machine, now; without an engine (nothing was started) its version is left out."""
    versions = {"trueload": __version__, "python": platform.python_version()}
    if engine_version is not None:
        versions["engine"] = engine_version
    return Environment(
        kernel=f"{platform.system()} {platform.release()}",
        cpu_model=_cpu_model(),
        cpu_count=os.cpu_count() or 1,
        governor=_text(_GOVERNOR),
        limits=_limits(),
        versions=versions,
    )


def _limits() -> dict[str, int]:
    soft, hard = open_files_limit()
    limits = {"open_files_soft": soft, "open_files_hard": hard}
    for name, path in _LIMITS.items():
        text = _text(path)
        if text is not None and text.isdigit():
            limits[name] = int(text)
    ports = (_text(_PORTS) or "").split()
    if len(ports) == 2:
        limits["local_ports"] = int(ports[1]) - int(ports[0]) + 1
    return limits


def _cpu_model() -> str | None:
    for line in (_text(Path("/proc/cpuinfo")) or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None
