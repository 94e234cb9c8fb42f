#!/bin/sh
# Fuzzes each target of fuzz/ for SECONDS (60): `tools/fuzz.sh [SECONDS]`. Needs a nightly Rust and
# cargo-fuzz; says how to get what is missing.
set -eu
cd "$(dirname "$0")/../fuzz"
seconds=${1:-60}

if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "fuzz: no cargo-fuzz; get it by: cargo install cargo-fuzz" >&2
    exit 1
fi
if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzz: no nightly Rust; get it by: rustup toolchain install nightly" >&2
    exit 1
fi
for target in fuzz_targets/*.rs; do
    name=$(basename "$target" .rs)
    echo "fuzz: $name for $seconds s" >&2
    dictionary=
    [ ! -f http1.dict ] || dictionary=-dict=http1.dict
    cargo +nightly fuzz run "$name" -- -max_total_time="$seconds" $dictionary
done
