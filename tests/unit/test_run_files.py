"""Runs in files: how much of a file is read, and files that are compressed."""

from __future__ import annotations

import lzma
import os
from pathlib import Path

import pytest
from trueload.compare.run_records import read_side
from trueload.errors import UserError
from trueload.files.compressed import XZ_MAGIC
from trueload.store import run_files


@pytest.mark.parametrize(
    ("why", "packed", "read"),
    [
        ("whole", lzma.compress(b"[1, 2]"), [1, 2]),
        ("more bytes than may be read", lzma.compress(b" " * 2000), "is too large"),
        ("truncated", lzma.compress(b"[1, 2]")[:-30], "ends early"),
        ("damaged", XZ_MAGIC + b"x" * 50, "cannot be unpacked"),
    ],
)
def test_a_file_may_be_compressed(
    why: str, packed: bytes, read: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_files, "FILE_BYTES_MAX", 1000)
    path = tmp_path / "run.json.xz"
    path.write_bytes(packed)
    if isinstance(read, str):
        with pytest.raises(UserError, match=read):
            run_files.read_json(path)
    else:
        assert run_files.read_json(path) == read, why


def test_a_file_is_read_up_to_a_limit_also_where_it_does_not_say_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_files, "FILE_BYTES_MAX", 1000)
    path, pipe = tmp_path / "run.json", tmp_path / "pipe.json"
    os.mkfifo(pipe)
    for size, complaint in ((0, "is not JSON"), (1000, "is not JSON"), (1001, "is too large")):
        path.write_bytes(b"x" * size)
        with pytest.raises(UserError, match=complaint):
            read_side(str(path), None)
    held = os.open(pipe, os.O_RDWR)
    try:
        os.write(held, b"x" * 2000)
        with pytest.raises(UserError, match="is too large"):
            read_side(str(pipe), None)
    finally:
        os.close(held)
    with pytest.raises(UserError, match="has no end"):
        read_side("/dev/zero", None)
