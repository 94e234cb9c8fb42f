#!/bin/sh
# Rebar3 with a cache of its own, in the folder of the build: nothing of the user's is read or changed. rebar.sh fetch | compile.
set -eu

export REBAR_CACHE_DIR="$PWD/build/rebar3"
case "$1" in
fetch)
    # What it complains about may take several lines, of which the last alone says little.
    said=$(QUIET=1 rebar3 get-deps 2>&1) || { printf '%s' "$said" | tr -s '[:space:]' ' '; exit 1; }
    ;;
compile) rebar3 compile ;;
esac
