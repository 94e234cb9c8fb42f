#!/bin/sh
# Mix with a home of its own, in the folder of the build: nothing of the user's is read or changed. mix.sh fetch | compile.
set -eu

export MIX_ENV=prod MIX_HOME="$PWD/build/mix" HEX_HOME="$PWD/build/hex"
case "$1" in
fetch)
    # In its first line Mix says why Hex is not to be had, in the last what to try instead.
    said=$(mix local.hex --force 2>&1) || { printf '%s\n' "$said" | head -n 1; exit 1; }
    mix local.rebar rebar3 "$(command -v rebar3)" --force
    mix deps.get --only prod
    ;;
compile) mix compile ;;
esac
