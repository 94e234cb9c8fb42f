#!/bin/sh
# Runs Rebar3 with a cache inside the build folder, so that the user's own files are neither read nor changed:
# rebar.sh fetch | compile.
set -eu

export REBAR_CACHE_DIR="$PWD/build/rebar3"
case "$1" in
fetch)
    # An error message may take several lines, and the last one alone says little. So they are joined.
    said=$(QUIET=1 rebar3 get-deps 2>&1) || { printf '%s' "$said" | tr -s '[:space:]' ' '; exit 1; }
    ;;
compile) rebar3 compile ;;
esac
