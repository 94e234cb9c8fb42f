#!/usr/bin/env python3
"""Stands in for the engine under the command line, and writes down what the engine cost.

`TRUELOAD_ENGINE` names this file, `BENCH_ENGINE` the engine, `BENCH_COST` the file for the CPU
seconds of its whole life. The engine inherits everything else; nothing is done while it runs.
"""

import os
import sys

engine = os.environ["BENCH_ENGINE"]
pid = os.spawnv(os.P_NOWAIT, engine, [engine, *sys.argv[1:]])
_, status, used = os.wait4(pid, 0)
with open(os.environ["BENCH_COST"], "w") as file:
    file.write(str(used.ru_utime + used.ru_stime))
sys.exit(os.waitstatus_to_exitcode(status) & 0x7F)
