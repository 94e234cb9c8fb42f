#!/bin/sh
# Writes the lock files from pyproject.toml: exact versions and hashes of every package, for
# every platform, without a word about where they were fetched. Needs `uv` (pip install uv).
set -eu
cd "$(dirname "$0")/.."
lock() {
    uv pip compile --universal --python-version 3.11 --generate-hashes \
        --no-header --no-annotate --no-emit-index-url --quiet "$@"
}
lock pyproject.toml --extra build --extra http2 --extra metrics --extra report --extra websocket --output-file requirements.lock
# The same versions as above wherever a package is in both.
lock pyproject.toml --extra dev --constraint requirements.lock --output-file requirements-dev.lock
lock --group docs --output-file requirements-docs.lock
