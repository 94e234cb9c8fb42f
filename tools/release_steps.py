"""What the steps of a release share: targets, commands that have to succeed, one line each."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

STEP_S = 1800.0
TAIL_LINES = 40
# Below `share/` of the prefix, where man and the shells look.
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
    """What an engine is built for, by Rust's name."""

    rust: str

    @property
    def cpu(self) -> str:
        """As wheels and the kernel call it: x86_64, aarch64."""
        return self.rust.partition("-")[0]

    @property
    def is_native(self) -> bool:
        """Whether this machine can run it."""
        return self.cpu == platform.machine()

    @property
    def compiler(self) -> str:
        """The C compiler for it, which links it, too; by Debian's name where it is a cross one."""
        return "cc" if self.is_native else f"{self.cpu}-linux-gnu-gcc"


def say(step: str) -> None:
    """One line for what was done."""
    print(f"release: {step}", flush=True)


def run(
    words: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    codes: Sequence[int] = (0,),
) -> str:
    """What a command prints to stdout. Raises ``StepError`` with all that it said unless it ends
    with one of the codes."""
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
