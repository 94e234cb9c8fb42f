"""The program for a host's kind of machine, by the head of its file and by its name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from trueload.places.program import fitting, read_program

# What the head of a program says of its machine (elf(5)).
HEADS = {"x86_64": 62, "aarch64": 183, "riscv64": 243}


def write(path: Path, machine: str | None) -> Path:
    """Write a program for a kind of machine; a script for None."""
    head = b"" if machine is None else HEADS[machine].to_bytes(2, "little")
    words = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00" + head + bytes(44)
    path.write_bytes(words if head else b"#!/bin/sh\n")
    return path


@pytest.mark.parametrize(
    ("why", "own", "beside", "host", "chosen"),
    [
        ("its own kind", "x86_64", ["aarch64"], "x86_64", "engine"),
        ("another kind", "x86_64", ["aarch64"], "aarch64", "engine-aarch64"),
        ("from the other side", "aarch64", ["x86_64"], "x86_64", "engine-x86_64"),
        ("one of two", "x86_64", ["aarch64", "riscv64"], "riscv64", "engine-riscv64"),
        ("there is none for it", "x86_64", ["aarch64"], "riscv64", "engine"),
        ("a script runs anywhere", None, ["aarch64"], "aarch64", "engine"),
        ("a kind that nobody knows", "x86_64", ["aarch64"], "mips", "engine"),
        ("no kind, but a path", "x86_64", ["aarch64"], "../engine-aarch64", "engine"),
        ("nothing", "x86_64", ["aarch64"], "", "engine"),
    ],
)
def test_which_program_is_taken(
    tmp_path: Path, why: str, own: str | None, beside: list[str], host: str, chosen: str
) -> None:
    program = read_program(write(tmp_path / "engine", own))
    for machine in beside:
        write(tmp_path / f"engine-{machine}", machine)
    assert fitting(program, host).path.name == chosen, why


def test_a_copy_that_is_removed_again_has_its_own_name_on_every_kind(tmp_path: Path) -> None:
    write(tmp_path / "engine-aarch64", "aarch64")
    once = replace(read_program(write(tmp_path / "engine", "x86_64")), once="1f2e")
    assert fitting(once, "aarch64").kept_name.startswith("engine-aarch64-1f2e-")
