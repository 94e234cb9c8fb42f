#!/usr/bin/env python3
"""Runs the engine for the command line and writes down the engine's CPU time.

`TRUELOAD_ENGINE` names this file, `BENCH_ENGINE` the real engine, and `BENCH_COST` the file that
receives the CPU seconds of its whole life. The engine inherits everything else, and this process
only waits while it runs.
"""

import os
import sys

engine = os.environ["BENCH_ENGINE"]
pid = os.spawnv(os.P_NOWAIT, engine, [engine, *sys.argv[1:]])
_, status, used = os.wait4(pid, 0)
with open(os.environ["BENCH_COST"], "w") as file:
    file.write(str(used.ru_utime + used.ru_stime))
sys.exit(os.waitstatus_to_exitcode(status) & 0x7F)
