#!/bin/sh
# Starts the client with CPUS schedulers: start.sh CPUS.
set -eu

exec elixir --erl "+S $1:$1 +sbwt none +sbwtdcpu none +sbwtdio none" -pa "_build/prod/lib/*/ebin" -e "Client.main()"
