#!/usr/bin/env python3
"""Builds the engine for other machine types, and puts it beside the one here: `make engines`.

How: it builds a wheel for each target, as `release.py` does, and takes only the engine out. From
then on, `--place` sends it to hosts of that type. It needs Rust with the target (`rustup target
add`) and a C compiler for it. Without arguments it builds for each target but this machine's.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

# The script may be run from any folder, so it finds its neighbours by its own path.
sys.path.append(str(Path(__file__).resolve().parent.parent))
from tools.release import ROOT, TARGETS, build_wheel, check_targets
from tools.release_check import engine_in
from tools.release_steps import StepError


def build(names: Sequence[str]) -> None:
    """Build the engine for each target. Raises ``StepError``."""
    others = [target.rust for target in TARGETS if not target.is_native]
    for target in check_targets(names or others):
        with tempfile.TemporaryDirectory() as folder:
            wheel = build_wheel(target, ROOT, Path(folder))
            engine = Path(sys.prefix, "bin", f"trueload-engine-{target.cpu}")
            engine.write_bytes(engine_in(wheel))
            engine.chmod(0o755)
        print(f"{engine}: {engine.stat().st_size / 1e6:.1f} MB")


def main() -> int:
    """Build for the targets that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("targets", nargs="*", help="Rust targets; all but this machine's if none")
    try:
        build(parser.parse_args().targets)
    except (StepError, OSError, subprocess.SubprocessError) as error:
        print(f"engines: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
