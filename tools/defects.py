#!/usr/bin/env python3
"""Puts known defects back, one by one, and checks that the simulation finds each: `make defects`.

How: every file of ``crates/sim/defects`` is a patch against the present code that puts one defect
back. It is applied to a copy of the crates below ``target/``. ``Play: generator`` runs the seeds of
``trueload-sim``; ``Play: drivers`` runs the drivers over the simulated kernels of
``crates/drive/src/fake``.

    tools/defects.py [--seeds N] [NAME…]     prints a table; NAME is the beginning of a patch's name

Exit: 0 each was found, 1 one was not, 2 a patch no longer applies or does not compile.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATCHES = ROOT / "crates" / "sim" / "defects"
FOLDER = ROOT / "target" / "defects"
TREE = FOLDER / "tree"
SEEDS = 20_000
# A run that takes longer hangs.
PLAY_S = 3600.0

# A compromise: building takes longer than running, because most defects show soon.
QUICK = {
    "CARGO_PROFILE_SIM_OPT_LEVEL": "1",
    "CARGO_PROFILE_SIM_INCREMENTAL": "true",
    "CARGO_PROFILE_TEST_OPT_LEVEL": "1",
}


# A panic's message may have several lines.
_LINES = re.MULTILINE | re.DOTALL


class DefectError(Exception):
    """A defect cannot be put back. Every message names the patch and the next step."""

    @classmethod
    def stale(cls, patch: Path, why: str) -> DefectError:
        return cls(f"{patch.name} no longer applies: make it again against the code\n{why}")

    @classmethod
    def broken(cls, patch: Path, why: str) -> DefectError:
        return cls(f"{patch.name} does not compile: make it again against the code\n{why}")

    @classmethod
    def headless(cls, patch: Path) -> DefectError:
        return cls(f"{patch.name}: begin with 'Defect: …' and 'Play: generator' or 'Play: drivers'")


@dataclass(frozen=True)
class Defect:
    """A patch, the defect that it puts back, and the simulation that should find it."""

    patch: Path
    title: str
    play: str

    @classmethod
    def read(cls, patch: Path) -> Defect:
        head = dict(re.findall(r"^(Defect|Play): (.+)$", patch.read_text(), re.MULTILINE))
        if head.keys() != {"Defect", "Play"} or head["Play"] not in PLAYS:
            raise DefectError.headless(patch)
        return cls(patch, head["Defect"], head["Play"])

    @property
    def name(self) -> str:
        return self.patch.stem


@dataclass(frozen=True)
class Found:
    """The law that a defect broke, and the first seed that did."""

    law: str
    seed: int


def run(command: list[str], env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a command in the copy; return its exit code and all that it printed."""
    where = {
        "CARGO_TARGET_DIR": str(FOLDER / "build"),
        # The copy lies below a repository but is not part of it.
        "GIT_CEILING_DIRECTORIES": str(FOLDER),
    }
    done = subprocess.run(
        command,
        cwd=TREE,
        env={**os.environ, **where, **QUICK, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=PLAY_S,
        check=False,
    )
    return done.returncode, done.stdout


def copy_crates() -> None:
    """Copy the workspace again; its new timestamps make cargo rebuild our crates."""
    shutil.rmtree(TREE, ignore_errors=True)
    TREE.mkdir(parents=True)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copyfile(ROOT / name, TREE / name)
    shutil.copytree(ROOT / "crates", TREE / "crates", copy_function=shutil.copyfile)


def apply(defect: Defect, *options: str) -> None:
    code, output = run(["git", "apply", *options, str(defect.patch)])
    if code:
        raise DefectError.stale(defect.patch, output)


def build(defect: Defect, command: list[str]) -> None:
    code, output = run(command)
    if code:
        raise DefectError.broken(defect.patch, output)


def play_generator(defect: Defect, seeds: int) -> list[Found]:
    """Return the laws broken by the first seed that breaks any."""
    package = ["--locked", "--quiet", "--package", "trueload-sim"]
    build(defect, ["cargo", "build", "--profile", "sim", *package])
    binary = FOLDER / "build" / "sim" / "trueload-sim"
    code, output = run([str(binary), "--seeds", str(seeds)])
    broken = re.findall(r"^seed (\d+) breaks a law: ([^:]+):", output, re.MULTILINE)
    return [Found(law, int(seed)) for seed, law in broken] if code else []


def play_drivers(defect: Defect, seeds: int) -> list[Found]:
    """Return each failing test of the simulated kernels, with its first seed."""
    test = ["cargo", "test", "--locked", "--quiet", "--package", "trueload-drive", "--lib"]
    build(defect, [*test, "--no-run"])
    code, output = run([*test, "fake::"], {"TRUELOAD_SEEDS": str(seeds)})
    return failures(output) if code else []


def failures(output: str) -> list[Found]:
    """Parse the failing tests of the simulated kernels, each with its seed."""
    panics = re.findall(r"^thread 'fake::tests::(\w+)'.*?\bseed (\d+)", output, _LINES)
    return [Found(name.replace("_", " "), int(seed)) for name, seed in panics]


PLAYS: dict[str, Callable[[Defect, int], list[Found]]] = {
    "generator": play_generator,
    "drivers": play_drivers,
}


def put_back(defect: Defect, seeds: int) -> list[Found]:
    """Put a defect back, run the simulation, and take the defect out again."""
    apply(defect)
    try:
        return PLAYS[defect.play](defect, seeds)
    finally:
        apply(defect, "--reverse")


def main() -> int:
    parser = argparse.ArgumentParser(description="Put known defects back and play the simulation.")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds to play for each defect")
    parser.add_argument("names", nargs="*", metavar="NAME", help="how a patch's name begins")
    options = parser.parse_args()
    missed = 0
    try:
        defects = [Defect.read(patch) for patch in sorted(PATCHES.glob("*.patch"))]
        copy_crates()
        for defect in defects:
            apply(defect, "--check")
        print("| defect put back | played | law or test that finds it: seed |", flush=True)
        print("|---|---|---|", flush=True)
        for defect in defects:
            if options.names and not defect.name.startswith(tuple(options.names)):
                continue
            found = put_back(defect, options.seeds)
            missed += not found
            found_text = "; ".join(f"{each.law}: {each.seed}" for each in found) or "**not found**"
            print(f"| {defect.title} | {defect.play} | {found_text} |", flush=True)
    except DefectError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
