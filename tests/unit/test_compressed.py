"""Compressed files: read as what they hold, in any pieces, and never more of it than a limit."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trueload.errors import UserError
from trueload.files.compressed import PIECE_BYTES, UnpackError, unpacked
from trueload.files.inputs import read_input

MANY = 2**40
LONG = random.Random(1).randbytes(3 * PIECE_BYTES) + b"a" * 10 * PIECE_BYTES


class Pipe(io.BytesIO):
    """A file that cannot go back."""

    def seekable(self) -> bool:
        return False


def read(packed: bytes, most: int = MANY) -> bytes:
    return unpacked(io.BytesIO(packed), most).read()


@pytest.mark.parametrize("content", [b"", b"a", b"a\nb\n", LONG])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_a_file_is_read_as_what_it_holds(pack: Callable[[bytes], bytes], content: bytes) -> None:
    packed = pack(content)
    assert read(packed) == content
    assert unpacked(Pipe(packed), MANY).read() == content
    assert b"".join(unpacked(Pipe(packed), MANY)) == content
    if pack is not bytes:
        assert read(packed, len(content)) == content, "exactly the limit"
        if content:
            with pytest.raises(UnpackError, match="is too large: more than 0 MiB unpacked"):
                read(packed, len(content) - 1)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_files_behind_each_other_are_one(pack: Callable[[bytes], bytes]) -> None:
    one, two = pack(b"one\n"), pack(LONG)
    assert read(one + two) == b"one\n" + LONG
    assert read(one + b"\0" * 8 + two + b"\0" * 100_000) == b"one\n" + LONG


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_what_is_damaged_or_ends_early_is_refused(pack: Callable[[bytes], bytes]) -> None:
    packed = pack(LONG)
    for cut in (7, 30, len(packed) // 2, len(packed) - 1):
        with pytest.raises(UnpackError, match="ends early"):
            read(packed[:cut])
    spoilt = bytearray(packed)
    spoilt[len(packed) // 2] ^= 0xFF
    for broken in (bytes(spoilt), packed[:8] + b"x" * 50, packed + b"more than this"):
        with pytest.raises(UnpackError, match=r"cannot be unpacked|ends early"):
            read(broken)


@pytest.mark.parametrize(
    ("packed", "name"),
    [
        (bz2.compress(b"a"), "bzip2"),
        (b"\x28\xb5\x2f\xfd" + b"\0" * 20, "zstd"),
        (b"PK\x03\x04" + b"\0" * 20, "zip"),
    ],
)
def test_what_is_packed_otherwise_is_named(packed: bytes, name: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(packed)
    with pytest.raises(UserError, match=f"the file is compressed by {name}") as refused:
        read_input(path, 100, "the file", "{}", packed=True)
    assert "gzip" in refused.value.hint


def test_an_xz_file_that_asks_for_much_memory_is_refused() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 2**28}]
    packed = lzma.compress(b"a", filters=filters)
    with pytest.raises(UnpackError, match="Memory usage limit"):
        read(packed)


def test_a_python_without_lzma_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lzma", None)
    with pytest.raises(UnpackError, match="is compressed by xz, which this Python cannot read"):
        read(lzma.compress(b"a"))


def test_a_pipe_is_read_as_it_is_written() -> None:
    reading, writing = os.pipe()
    packed = gzip.compress(b"first\n")
    with os.fdopen(reading, "rb") as file, os.fdopen(writing, "wb", 0) as sink:
        threading.Thread(target=sink.write, args=(packed[:3],)).start()
        threading.Timer(0.05, sink.write, args=(packed[3:],)).start()
        assert unpacked(file, MANY).readline() == b"first\n"


BOMB = """
import io, lzma, resource, sys
from trueload.store import run_files
from pathlib import Path
from trueload.errors import UserError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    run_files.read_json(Path(sys.argv[1]))
except UserError as error:
    print(error.message)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("pack", [gzip.compress, partial(lzma.compress, preset=0)])
def test_a_file_that_unpacks_to_gigabytes_takes_no_more_memory_than_the_limit(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "bomb.json"
    path.write_bytes(pack(b" " * 2**24) * 60)
    done = subprocess.run(
        [sys.executable, "-c", BOMB, path], capture_output=True, text=True, check=True
    )
    said, grown_mib = done.stdout.splitlines()
    assert said == f"{path} is too large: more than 256 MiB unpacked"
    assert int(grown_mib) < 300, "once the limit, and no copy"


MAGICS = (b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")


@given(st.binary(max_size=200), st.sampled_from([b"", b"\x1f\x8b", b"\xfd7zXZ\x00"]))
def test_any_bytes_are_read_or_refused(junk: bytes, magic: bytes) -> None:
    for content in (magic + junk, gzip.compress(junk)[:20] + junk):
        try:
            found = read(content)
        except UnpackError as error:
            found = str(error).encode()
        assert found == content or content.startswith(MAGICS)
