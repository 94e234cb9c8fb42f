#!/bin/sh
# Starts the client with CPUS schedulers: start.sh CPUS [http2].
set -eu

cpus=$1
shift
exec elixir --erl "+S $cpus:$cpus +sbwt none +sbwtdcpu none +sbwtdio none" -pa "_build/prod/lib/*/ebin" -e "Client.main()" -- "$@"
