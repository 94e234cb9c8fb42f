#!/bin/sh
# Starts the client with CPUS schedulers: start.sh CPUS.
set -eu

exec erl -noshell -pa build/ebin +S "$1:$1" +sbwt none +sbwtdcpu none +sbwtdio none -s client main
