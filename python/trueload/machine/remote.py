"""Properties of another machine, by what a small script printed there.

How: the script sleeps, and prints the times of the CPUs before and after, and the other files at
the end. It needs a POSIX shell, ``cat`` and ``sleep``. What it could not print is not known. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trueload.machine.accounting import MachineUsage, machine_usage, parse_machine_sample
from trueload.machine.facts import FILES, Machine, Watched, describe
from trueload.machine.open_files import parse_limit
from trueload.machine.wakeups import WakeupLatency
from trueload.units import NS_PER_S, parse_cpu_list

_CPU_TIMES, _UPTIME = Path("/proc/stat"), Path("/proc/uptime")
_LIMITS, _STATUS = Path("/proc/self/limits"), Path("/proc/self/status")
_HEAD, _END = "= ", "= end"
_ALLOWED = "Cpus_allowed_list:"

# Argument: how long to sleep, in seconds; some shells can sleep for whole seconds only.
SCRIPT = f"""#!/bin/sh
LC_ALL=C; export LC_ALL
show() {{ for f in "$@"; do printf '{_HEAD}%s\\n' "$f"; cat "$f" 2>/dev/null; done; }}
show {_UPTIME} {_CPU_TIMES}
sleep "$1" 2>/dev/null || sleep 1
show {_CPU_TIMES} {_UPTIME} {_LIMITS} {_STATUS}
show {" ".join(map(str, FILES))}
printf '{_END}\\n'
"""


@dataclass(frozen=True)
class Printed:
    """What the script printed: the texts of each file, in the order of reading."""

    texts: dict[Path, list[str]]
    is_whole: bool

    def read(self, path: Path) -> str | None:
        """The latest content of a file; None if it could not be read."""
        return next((text for text in reversed(self.texts.get(path, ())) if text), None)

    def cpus(self) -> tuple[int, ...]:
        """The CPUs that a program may use there; empty if that is not known."""
        status = (self.read(_STATUS) or "").splitlines()
        found = (line.removeprefix(_ALLOWED) for line in status if line.startswith(_ALLOWED))
        return next(map(parse_cpu_list, found), ())

    def usage(self, cpus: Sequence[int]) -> MachineUsage | None:
        """How these CPUs were used while the script slept; None if that is not known."""
        times, uptimes = self.texts.get(_CPU_TIMES, []), self.texts.get(_UPTIME, [])
        if len(times) < 2 or len(uptimes) < 2 or not all((*times, *uptimes)):
            return None
        before, after = (
            parse_machine_sample(text, round(float(uptime.split()[0]) * NS_PER_S))
            for text, uptime in zip(times[:2], uptimes[:2], strict=True)
        )
        return machine_usage(before, after, cpus)


def parse_printed(lines: Iterable[str]) -> Printed:
    """Read the output of the script."""
    texts: defaultdict[Path, list[list[str]]] = defaultdict(list)
    here: list[str] = []
    is_whole = False
    for line in lines:
        if line == _END:
            is_whole = True
        elif line.startswith(_HEAD):
            here = []
            texts[Path(line.removeprefix(_HEAD))].append(here)
        else:
            here.append(line)
    joined = {path: ["\n".join(each).strip() for each in found] for path, found in texts.items()}
    return Printed(joined, is_whole)


def machine_of(
    printed: Printed, cpus: Sequence[int], *, can_pin: bool | None, wakeups: WakeupLatency | None
) -> Machine:
    """The machine on which the script ran. A shell cannot time the clock."""
    used = printed.usage(cpus)
    soft, hard = parse_limit(printed.read(_LIMITS) or "")
    watched = Watched(
        open_files_soft=soft,
        open_files_hard=hard,
        can_pin=can_pin,
        clock_resolution_ns=None,
        clock_read_ns=None,
        watched_s=0.0 if used is None else used.wall_s,
        busy_share=None if used is None else max(0.0, 1.0 - used.idle_share - used.stolen_share),
        stolen_share=None if used is None else used.stolen_share,
        wakeups=wakeups,
    )
    return describe(printed.read, cpus, watched)
