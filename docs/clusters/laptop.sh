#!/bin/sh
# A cluster of one machine: what works here works on a real one. The engine gets one CPU of it to
# book; it still uses as many threads as it is told to.
set -eu

export RAY_USAGE_STATS_ENABLED=0
# Ray makes what it starts nicer than everything else (15); a generator must not be.
export RAY_worker_niceness=0

ray start --head --num-cpus=1 --object-store-memory=100000000 --include-dashboard=false
trap 'ray stop' EXIT # which ends every Ray of yours on this machine

trueload http "${1:-http://127.0.0.1:8080/}" --place ray
