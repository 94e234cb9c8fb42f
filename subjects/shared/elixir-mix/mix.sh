#!/bin/sh
# Runs Mix with a home inside the build folder, so that the user's own files are neither read nor changed: mix.sh
# fetch | compile.
set -eu

export MIX_ENV=prod MIX_HOME="$PWD/build/mix" HEX_HOME="$PWD/build/hex"
case "$1" in
fetch)
    # The first line of Mix's output says why Hex cannot be reached; the last one only suggests what else to try.
    said=$(mix local.hex --force 2>&1) || { printf '%s\n' "$said" | head -n 1; exit 1; }
    mix local.rebar rebar3 "$(command -v rebar3)" --force
    mix deps.get --only prod
    ;;
compile) mix compile ;;
esac
