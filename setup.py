"""What pyproject.toml cannot say: the wheel carries the catalogue; the engine is static.

``suites/``, ``subjects/`` and ``contracts/`` lie at the top of the checkout, where people look for
them, and in the wheel under ``trueload/catalogue/``. An editable install has no copy: there the
checkout itself is used.

The engine needs nothing of the C library that must be shared, so it carries its part of it where
the machine has the static library (with gcc on Debian; a package of its own elsewhere): it starts
unchanged on another host, and takes 1.4 MB less memory.
"""

import os
import subprocess
from pathlib import Path
from shutil import copytree, ignore_patterns, rmtree

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools_rust import RustBin, Strip
from setuptools_rust.rustc_info import get_rust_host

CATALOGUE_FOLDERS = ("suites", "subjects", "contracts")
# What building a subject in place leaves behind.
LEFTOVERS = ignore_patterns("target", "build", "node_modules", "__pycache__", "subject", ".venv")


class BuildWithCatalogue(build_py):
    """Build the package, then copy the catalogue into it."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for name in CATALOGUE_FOLDERS:
            copy = Path(self.build_lib, "trueload", "catalogue", name)
            rmtree(copy, ignore_errors=True)
            copytree(name, copy, ignore=LEFTOVERS)


def has_static_c_library() -> bool:
    """Whether the compiler can link the C library statically."""
    command = ["cc", "-print-file-name=libc.a"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    # A compiler that has none says the name as it was asked.
    return Path(found.stdout.strip()).is_absolute()


def engine() -> RustBin:
    """The engine's binary, as it is to be built."""
    args, environment = ["--locked"], dict(os.environ)
    if has_static_c_library() and "CARGO_BUILD_TARGET" not in environment:
        # With a target named, the flag does not reach what runs while it is built.
        args += ["--target", get_rust_host(None)]
        flags = (environment.get("RUSTFLAGS", ""), "-C target-feature=+crt-static")
        environment["RUSTFLAGS"] = " ".join(flags).strip()
    path = "crates/engine/Cargo.toml"
    # Without the tables that only debuggers read: 18 of 24 MB.
    strip = Strip.Debug
    return RustBin("trueload-engine", path, args, debug=False, strip=strip, env=environment)


setup(rust_extensions=[engine()], cmdclass={"build_py": BuildWithCatalogue})
