#!/usr/bin/env -S python3 -I -S
"""Runs the engine for the command line and writes down the engine's CPU time.

`TRUELOAD_ENGINE` names this file, `BENCH_ENGINE` the real engine, and `BENCH_COST` the file that
receives a line for each engine: the CPU seconds of its whole life, and those of this process. The
engine inherits everything else, and this process only waits while it runs.
"""

import os
import sys

engine = os.environ["BENCH_ENGINE"]
pid = os.spawnv(os.P_NOWAIT, engine, [engine, *sys.argv[1:]])
_, status, used = os.wait4(pid, 0)
own = os.times()
with open(os.environ["BENCH_COST"], "a") as file:
    file.write(f"{used.ru_utime + used.ru_stime} {own.user + own.system}\n")
os._exit(os.waitstatus_to_exitcode(status) & 0x7F)
