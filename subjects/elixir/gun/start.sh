#!/bin/sh
# Starts the client with as many schedulers as it has CPUs: start.sh CPUS.
set -eu

exec elixir --erl "+S $1:$1 +sbwt none +sbwtdcpu none +sbwtdio none" -pa "build/deps/*/ebin" -pa build/ebin -e "Client.main()"
