#!/usr/bin/env python3
"""Builds all that is published, into dist/, and tries it in a clean place: `make release`.

How: the files that git knows are laid out once, together with the man page and the completion
scripts. The source distribution is made of these; the wheels and crates are made of what is
unpacked from it. The engine of a wheel is static and stripped. `release_check.py` then installs and
uses what was built. Each step says in one line what it did; the first that fails ends the program
with 1.

It needs Rust with each target (`rustup target add`) and a C compiler for it. To build only one
target: `make release TARGETS=x86_64-unknown-linux-gnu`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

# The script may be run from any folder, so it finds its neighbours by its own path.
sys.path.append(str(Path(__file__).resolve().parent.parent))
from trueload import __version__

from tools import man_page, release_check
from tools.release_steps import COMPLETIONS, MAN_PAGE, StepError, Target, print_step, run

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
WORK = ROOT / "build" / "release"
SOURCE = WORK / f"trueload-{__version__}"
# With glibc, like the engine of all our benchmarks.
TARGETS = (Target("x86_64-unknown-linux-gnu"), Target("aarch64-unknown-linux-gnu"))


def check_version(tag: str | None) -> str:
    """Check that Python, Rust and the tag, if there is one, have the same version."""
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    versions = {"Cargo.toml": cargo["package"]["version"]}
    for name, crate in cargo["dependencies"].items():
        if isinstance(crate, dict) and "path" in crate:
            versions[f"{name} in Cargo.toml"] = crate["version"]
    if tag is not None:
        versions["the tag"] = tag.removeprefix("v")
        if run(["git", "status", "--porcelain"], cwd=ROOT):
            raise StepError("there are changes that are not committed: a tag names a commit")
    for where, version in versions.items():
        if version != __version__:
            raise StepError(f"the version is {version} in {where}, and {__version__} in Python")
    return f"version {__version__}, in Python, in Rust{' and in the tag' if tag else ''}"


def check_targets(names: Sequence[str]) -> list[Target]:
    """Return the targets to build.

    Raises ``StepError`` if one is unknown or lacks Rust or a compiler.
    """
    known = {target.rust: target for target in TARGETS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise StepError(f"{unknown[0]} is no target; targets are {', '.join(known)}")
    chosen = [known[name] for name in names or known]
    libraries = Path(run(["rustc", "--print", "sysroot"]).strip(), "lib", "rustlib")
    for target in chosen:
        if not (libraries / target.rust).is_dir():
            raise StepError(f"no Rust for {target.rust}: rustup target add {target.rust}")
        if shutil.which(target.compiler) is None:
            package = "gcc" if target.is_native else target.compiler.replace("_", "-")
            raise StepError(f"no {target.compiler}; on Debian: apt-get install {package}")
    return chosen


def lay_out() -> str:
    """Copy the files of git, the man page and the completion scripts into a folder of their own."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    names = run(["git", "ls-files", "-z"], cwd=ROOT).split("\0")
    for name in filter(None, names):
        (SOURCE / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, SOURCE / name)
    share = SOURCE / "share"
    texts = {MAN_PAGE: man_page.page()}
    for shell, place in COMPLETIONS.items():
        texts[place] = run([sys.executable, "-m", "trueload", "completion", shell])
    for place, text in texts.items():
        (share / place).parent.mkdir(parents=True)
        (share / place).write_text(text)
    return f"laid out {len(names) - 1} files, with man page and completion scripts"


def build_sdist() -> Path:
    """Build the source distribution and unpack it: everything else is built from it."""
    code = f"from setuptools.build_meta import build_sdist; build_sdist({str(DIST)!r})"
    run([sys.executable, "-c", code], cwd=SOURCE)
    sdist = DIST / f"{SOURCE.name}.tar.gz"
    shutil.rmtree(SOURCE)
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        archive.extractall(WORK)
    print_step(f"sdist {sdist.name}, {sdist.stat().st_size / 1e6:.1f} MB")
    return sdist


def build_env(target: Target | None = None) -> Mapping[str, str]:
    """The environment of cargo: where to build, and how for a target."""
    env = {
        **os.environ,
        "CARGO_TARGET_DIR": str(WORK / "target"),
        "CARGO_PROFILE_RELEASE_STRIP": "symbols",
        "SOURCE_DATE_EPOCH": run(["git", "log", "-1", "--format=%ct"], cwd=ROOT).strip(),
    }
    if target is not None:
        name = target.rust.upper().replace("-", "_")
        env["CARGO_BUILD_TARGET"] = target.rust
        env[f"CARGO_TARGET_{name}_LINKER"] = target.compiler
        env[f"CC_{target.rust.replace('-', '_')}"] = target.compiler
    return env


def build_wheel(target: Target, source: Path, folder: Path) -> Path:
    """Build a wheel into a folder with the locked build tools."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    run([*pip, "--wheel-dir", str(folder), str(source)], env=build_env(target))
    (wheel,) = folder.glob(f"*_{target.cpu}.whl")
    return wheel


def build_inspected(target: Target) -> Path:
    """Build a wheel that is published, and check it."""
    wheel = build_wheel(target, SOURCE, DIST)
    print_step(release_check.inspect_wheel(wheel, target))
    return wheel


def build_crates() -> str:
    """Build every crate from its package alone, and install the engine as `cargo install` does."""
    crates = ["--workspace", "--exclude", "trueload-sim"]
    run(["cargo", "package", "--locked", *crates], cwd=SOURCE, env=build_env())
    packed = list((WORK / "target" / "package").glob(f"*-{__version__}.crate"))
    place = WORK / "cargo"
    words = ["cargo", "install", "--debug", "--locked", "--path", "crates/engine", "--root"]
    run([*words, str(place)], cwd=SOURCE, env=build_env())
    release_check.ask_engine([str(place / "bin" / "trueload-engine")])
    return f"{len(packed)} crates packaged and built; `cargo install` makes an engine that answers"


def write_sums() -> str:
    """Write dist/SHA256SUMS, as `sha256sum --check` reads it."""
    files = sorted(path for path in DIST.iterdir() if path.name != "SHA256SUMS")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (DIST / "SHA256SUMS").write_text("".join(sums))
    return f"dist/SHA256SUMS of {len(files)} files"


def release(tag: str | None, names: Sequence[str]) -> None:
    """Run every step, in order. Raises ``StepError``."""
    print_step(check_version(tag))
    targets = check_targets(names)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    print_step(lay_out())
    sdist = build_sdist()
    wheels = {target: build_inspected(target) for target in targets}
    print_step(build_crates())
    for target, wheel in wheels.items():
        print_step(release_check.resolve_dependencies(wheel, target))
        if target.is_native:
            release_check.try_wheel(wheel, WORK / "try")
        else:
            print_step(release_check.try_emulated(wheel, target, WORK / "emulated"))
    print_step(release_check.try_sdist(sdist, WORK / "try-sdist", build_env()))
    print_step(write_sums())


def main() -> int:
    """Make the release that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--tag", help="the tag that is released, like v0.1.0")
    parser.add_argument("targets", nargs="*", help="Rust targets; all by default")
    given = parser.parse_args()
    try:
        release(given.tag or None, given.targets)
    except (StepError, OSError, subprocess.SubprocessError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
