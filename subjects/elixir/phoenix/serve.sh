#!/bin/sh
# Starts the server with CPUS schedulers: serve.sh HOST PORT CPUS.
set -eu

ulimit -n "$(ulimit -Hn)"
exec elixir --erl "+S $3:$3 +sbwt none +sbwtdcpu none +sbwtdio none" -pa "_build/prod/lib/*/ebin" \
    -e "Shootout.main(System.argv()); Process.sleep(:infinity)" -- "$1" "$2"
