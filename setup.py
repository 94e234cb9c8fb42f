"""What pyproject.toml cannot say: the wheel carries the catalogue, the man page and the completion
scripts; the engine is static.

``suites/``, ``subjects/`` and ``contracts/`` lie at the top of the checkout, where people look for
them, and in the wheel under ``trueload/catalogue/``. An editable install has no copy: there the
checkout itself is used.

The engine needs nothing of the C library that must be shared, so it carries its part of it where
the machine has the static library (with gcc on Debian; a package of its own elsewhere): it starts
unchanged on another host, and takes 1.4 MB less memory. A wheel with a static engine is for every
Linux of its processor, with glibc or musl, and for every Python 3: its tags say so.

``share/`` is there in a source distribution only: ``tools/release.py`` writes it.
"""

import os
import subprocess
from pathlib import Path
from shutil import copytree, ignore_patterns, rmtree

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools_rust import RustBin, Strip
from setuptools_rust.rustc_info import get_rust_host, get_rust_version

# By cargo's rule a compiler, and so its linker, runs at the root of the workspace.
UNWINDING = "crates/engine/no-unwinding.ld"
CATALOGUE_FOLDERS = ("suites", "subjects", "contracts")
# What building a subject in place leaves behind, and what only a checkout needs.
NOT_COPIED = ignore_patterns(
    *("target", "build", "node_modules", "__pycache__", "subject", ".venv", "README.md")
)


class BuildWithCatalogue(build_py):
    """Build the package, then copy the catalogue into it."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for name in CATALOGUE_FOLDERS:
            copy = Path(self.build_lib, "trueload", "catalogue", name)
            rmtree(copy, ignore_errors=True)
            copytree(name, copy, ignore=NOT_COPIED)


class WheelOfAProgram(bdist_wheel):
    """Tag the wheel by its engine: it has no extension module that would need one Python."""

    def get_tag(self) -> tuple[str, str, str]:
        platform = super().get_tag()[2]
        if is_static():
            cpu = target().partition("-")[0]
            platform = f"manylinux_2_17_{cpu}.musllinux_1_1_{cpu}"
        return "py3", "none", platform


def target() -> str:
    """What the engine is built for, like aarch64-unknown-linux-gnu."""
    return os.environ.get("CARGO_BUILD_TARGET") or get_rust_host(None)


def is_static() -> bool:
    """Whether the engine can carry the C library: it comes with Rust for musl, or the linker."""
    if target().endswith("-musl"):
        return True
    linker = f"CARGO_TARGET_{target().upper().replace('-', '_')}_LINKER"
    command = [os.environ.get(linker, "cc"), "-print-file-name=libc.a"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    # A compiler that has none says the name as it was asked.
    return Path(found.stdout.strip()).is_absolute()


def has_lld() -> bool:
    """Whether Rust links with its own LLD, as it does for this target since 1.90."""
    rust = get_rust_version(None)
    if rust is None or (rust.major, rust.minor) < (1, 90):
        return False
    if target() != "x86_64-unknown-linux-gnu":
        return False
    command = ["rustc", "--print", "target-libdir"]
    libraries = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return Path(libraries, "../bin/gcc-ld/ld.lld").exists()


def engine() -> RustBin:
    """The engine's binary, as it is to be built."""
    args, environment = ["--locked"], dict(os.environ)
    if is_static():
        # With a target named, the flags do not reach what runs while it is built.
        if "CARGO_BUILD_TARGET" not in environment:
            args += ["--target", target()]
        # At a fixed address it needs no list of what is to be moved, of 160 kB. Less inlining than
        # the compiler's usual 225 saves 220 kB, and costs no CPU per request (measured).
        flags = "-C target-feature=+crt-static -C relocation-model=static"
        # The stripping of the build leaves 23 kB of symbols.
        flags += " -C llvm-args=-inline-threshold=125 -C strip=symbols"
        if has_lld():
            # Functions that came out alike are kept once. Nothing unwinds, so that the tables for
            # it, which Rust's own library brings, are left out: 480 kB.
            for arg in ("--icf=all", "--no-eh-frame-hdr", f"-T,{UNWINDING}"):
                flags += f" -C link-arg=-Wl,{arg}"
        environment["RUSTFLAGS"] = f"{environment.get('RUSTFLAGS', '')} {flags}".strip()
    path = "crates/engine/Cargo.toml"
    # Without what only debuggers and profilers read, 18 of 24 MB. A panic names its line anyway.
    strip = Strip.All
    return RustBin("trueload-engine", path, args, debug=False, strip=strip, env=environment)


def shared_files() -> list[tuple[str, list[str]]]:
    """The man page and the completion scripts, by the folder below the prefix that they go to."""
    files = sorted(path for path in Path("share").rglob("*") if path.is_file())
    return [(str(path.parent), [str(path)]) for path in files]


setup(
    rust_extensions=[engine()],
    cmdclass={"build_py": BuildWithCatalogue, "bdist_wheel": WheelOfAProgram},
    data_files=shared_files(),
)
