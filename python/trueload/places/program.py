"""A program to send to another host: its bytes by their SHA-256, and what they need there.

How: the head of the file (ELF) says for which machine it was built. It also names the loader that
the program needs unless it is linked statically. The same program for other machines lies beside
it, with the machine in its name.
"""

from __future__ import annotations

import hashlib
import re
import struct
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

# Values of e_machine (elf(5)), with the names that `uname -m` has for them.
MACHINES = {3: "i686", 40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
PT_INTERP = 3
NAME_CHARS_MAX = 64
_HEAD = struct.Struct("<16sHHIQQQIHHHHHH")  # Elf64_Ehdr
_SEGMENT = struct.Struct("<IIQQQQQQ")  # Elf64_Phdr


@dataclass(frozen=True)
class Program:
    """A program file. ``machine`` and ``loader`` are None if the file names none, as a script.

    ``once`` makes the name of a copy unique that is to be removed again.
    """

    path: Path
    sha256: str
    machine: str | None
    loader: str | None
    data: bytes = field(repr=False, compare=False)
    once: str = ""

    @property
    def kept_name(self) -> str:
        """The file name under which it is kept: its own name and its SHA-256. It contains nothing
        that a shell would interpret."""
        plain = re.sub(r"[^A-Za-z0-9_.]", "-", self.path.name).lstrip("-.") or "program"
        once = f"-{self.once}" if self.once else ""
        return f"{plain[:NAME_CHARS_MAX]}{once}-{self.sha256}"


def read_program(path: Path) -> Program:
    """Read a program from its file. All hosts share what was read once. Raises ``OSError``."""
    about = path.stat()
    stamp = (about.st_ino, about.st_size, about.st_mtime_ns)
    with _LOCK:
        known = _READ.get(path)
        if known is None or known[0] != stamp:
            data = path.read_bytes()
            machine, loader = needs(data)
            sha256 = hashlib.sha256(data).hexdigest()
            known = _READ[path] = (stamp, Program(path, sha256, machine, loader, data))
        return known[1]


def fitting(program: Program, machine: str) -> Program:
    """The program for a machine of this kind (``uname -m``): itself, or the one beside it. Itself
    too if there is no other, for ``check_host`` to refuse. Raises ``OSError``."""
    if program.machine in (None, machine) or machine not in MACHINES.values():
        return program
    other = program.path.with_name(f"{program.path.name}-{machine}")
    return replace(read_program(other), once=program.once) if other.is_file() else program


_LOCK = threading.Lock()
_READ: dict[Path, tuple[tuple[int, int, int], Program]] = {}


def needs(data: bytes) -> tuple[str | None, str | None]:
    """The machine and the loader that a program's bytes name. Pure."""
    if len(data) < _HEAD.size or data[:6] != b"\x7fELF\x02\x01":
        return None, None
    head = _HEAD.unpack_from(data)
    machine = MACHINES.get(head[2], f"machine {head[2]}")
    first, size_bytes, count = head[5], head[9], head[10]
    for number in range(count):
        at = first + number * size_bytes
        if at + _SEGMENT.size > len(data):
            break
        kind, _, offset, _, _, length, *_ = _SEGMENT.unpack_from(data, at)
        if kind == PT_INTERP:
            return machine, data[offset : offset + length].rstrip(b"\0").decode(errors="replace")
    return machine, None
