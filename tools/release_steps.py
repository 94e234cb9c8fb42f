"""What the steps of a release share: targets, commands that must succeed, output lines."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

STEP_S = 1800.0
TAIL_LINES = 40
# Paths below `share/` of the prefix, where man and the shells look.
MAN_PAGE = "man/man1/trueload.1"
COMPLETIONS = {
    "bash": "bash-completion/completions/trueload",
    "zsh": "zsh/site-functions/_trueload",
    "fish": "fish/vendor_completions.d/trueload.fish",
}


class StepError(Exception):
    """A step of the release failed; the message says what to look at."""


@dataclass(frozen=True)
class Target:
    """The platform that an engine is built for, by Rust's name."""

    rust: str

    @property
    def cpu(self) -> str:
        """The processor as wheels and the kernel call it: x86_64, aarch64."""
        return self.rust.partition("-")[0]

    @property
    def is_native(self) -> bool:
        """Whether this machine can run it."""
        return self.cpu == platform.machine()

    @property
    def compiler(self) -> str:
        """The C compiler and linker for it; for cross-compiling it has Debian's name."""
        return "cc" if self.is_native else f"{self.cpu}-linux-gnu-gcc"


def print_step(step: str) -> None:
    """Print one line about what was done."""
    print(f"release: {step}", flush=True)


def run(
    words: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    codes: Sequence[int] = (0,),
) -> str:
    """Run a command; return what it prints to stdout.

    Raises ``StepError`` with the end of its output unless it ends with one of the codes.
    """
    ended = subprocess.run(
        words,
        cwd=cwd,
        env=os.environ if env is None else env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=STEP_S,
    )
    if ended.returncode not in codes:
        tail = "\n".join((ended.stdout + ended.stderr).splitlines()[-TAIL_LINES:])
        raise StepError(f"`{' '.join(words)}` ended with {ended.returncode}:\n{tail}")
    return ended.stdout
