#!/bin/sh
# Starts the server with CPUS schedulers: start.sh HOST PORT CPUS.
set -eu

ulimit -n "$(ulimit -Hn)"
exec elixir --erl "+S $3:$3 +sbwt none +sbwtdcpu none +sbwtdio none" -pa "build/deps/*/ebin" -pa build/ebin start.exs "$1" "$2"
