#!/bin/sh
# Is everything here that the set-up needs and cannot install itself? One line for each thing that
# is missing, with its cure; silent and 0 when all is well. Used by the Makefile before any work.
# The arguments are the Python to use and, if the sources are to be checked, too, `lint`.
set -u
python=${1:-python3}
rust_min_minor=88 # as rust-version in Cargo.toml
missing=0

lacks() {
    echo "set-up: $1" >&2
    missing=1
}

if ! command -v cc >/dev/null 2>&1; then
    lacks "no C compiler (cc); install one, on Debian: apt-get install gcc libc6-dev"
elif ! echo '#include <stdio.h>
int main(void) { return 0; }' | cc -x c -o /dev/null - 2>/dev/null; then
    lacks "cc cannot build a program; install the C library's headers, on Debian: apt-get install libc6-dev"
fi

if ! command -v "$python" >/dev/null 2>&1; then
    lacks "no $python; install Python 3.11 or newer, on Debian: apt-get install python3 python3-venv"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    lacks "$python is $("$python" -V 2>&1 | cut -d' ' -f2) and 3.11 is needed; name a newer one: make PYTHON=python3.12 ..."
elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    lacks "$python cannot make virtual environments; on Debian: apt-get install python3-venv"
fi

if ! command -v cargo >/dev/null 2>&1 || ! command -v rustc >/dev/null 2>&1; then
    lacks "no Rust toolchain (cargo); install 1.$rust_min_minor or newer from https://rustup.rs"
else
    # "rustc 1.95.0 (…)" gives 95; what cannot be read counts as too old
    minor=$(rustc --version 2>/dev/null | sed -n 's/^rustc 1\.\([0-9]*\)\..*/\1/p')
    [ "${minor:-0}" -ge "$rust_min_minor" ] ||
        lacks "rustc is 1.${minor:-?} and 1.$rust_min_minor is needed; with rustup: rustup update stable"
fi

# rustup's smallest profile has neither of them.
if [ "${2:-}" = lint ] && [ "$missing" = 0 ] &&
    ! { cargo clippy --version && cargo fmt --version; } >/dev/null 2>&1; then
    rustup component add clippy rustfmt >/dev/null 2>&1 ||
        lacks "no clippy or rustfmt to check the sources with; with rustup: rustup component add clippy rustfmt"
fi

exit "$missing"
