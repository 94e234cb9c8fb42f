"""Compressed files, told by their first bytes: read as what they hold, up to a limit.

How: a file is unpacked piece by piece as it is read, so that a small one that holds gigabytes takes
neither their memory nor the time to unpack them. Files that are not compressed are read as they
are.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, Protocol

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PIECE_BYTES = 2**16
XZ_MEMORY_BYTES_MAX = 128 * 2**20  # `xz -9` needs 65 MiB, and a file can ask for 4 GiB
GZIP_MAGIC = b"\x1f\x8b"  # RFC 1952, 2.3.1
XZ_MAGIC = b"\xfd7zXZ\x00"  # the .xz file format, 2.1.1.1
_MAGIC_BYTES = 6
_OTHERS = {b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}


class UnpackError(Exception):
    """Why a file cannot be unpacked, as words that follow its name, and what helps."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(why)
        self.hint = hint


class _Unpacker(Protocol):
    """What unpacks one member of a file; ``lzma.LZMADecompressor`` is one."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gunzip:
    """One member of a gzip file, in the form of ``lzma``'s class."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(31)  # 31: with gzip's header and checksum
        self._full = False

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not (self._inner.unconsumed_tail or self._full)

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        found = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self._full = len(found) == max_length
        return found


def _gzip() -> _Way:
    return _Gunzip, zlib.error


def _xz() -> _Way:
    try:
        import lzma
    except ImportError:
        hint = "unpack it first: xz -dk FILE"
        raise UnpackError("is compressed by xz, which this Python cannot read", hint) from None
    return lambda: lzma.LZMADecompressor(memlimit=XZ_MEMORY_BYTES_MAX), lzma.LZMAError


_Way = tuple[Callable[[], _Unpacker], type[Exception]]
"""What makes an unpacker of a member, and what that raises for a damaged one."""
_WAYS = {GZIP_MAGIC: _gzip, XZ_MAGIC: _xz}


def unpacked(file: BinaryIO, bytes_max: int) -> BinaryIO:
    """Return the content of an open file: unpacked if it is compressed by gzip or xz, and then at
    most ``bytes_max`` of it. Raises ``UnpackError``, and so does reading it."""
    head = file.read(_MAGIC_BYTES)
    for magic, name in _OTHERS.items():
        if head.startswith(magic):
            raise UnpackError(f"is compressed by {name}", "unpack it first, or use gzip or xz")
    rest = _Rest(head, file)
    for magic, way in _WAYS.items():
        if head.startswith(magic):
            return io.BufferedReader(_Unpacked(rest, way(), bytes_max), PIECE_BYTES)
    if file.seekable():
        file.seek(0)
        return file
    return io.BufferedReader(rest, PIECE_BYTES)


class _Rest(io.RawIOBase):
    """An open file of which the first bytes have been read."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self._head = head
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer).cast("B")
        # A pipe has what was written to it, and may never have more.
        read = getattr(self._file, "read1", self._file.read)
        found: bytes = self._head[: len(room)] or read(len(room))
        self._head = self._head[len(room) :]
        room[: len(found)] = found
        return len(found)


class _Unpacked(io.RawIOBase):
    """What the members of a compressed file hold, one after the other."""

    def __init__(self, file: _Rest, way: _Way, bytes_max: int) -> None:
        self._file = file
        self._make, self._broken = way
        self._unpacker = self._make()
        self._packed = b""
        self._bytes_max = bytes_max
        self._left = bytes_max

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer).cast("B")
        try:
            found = self._next(len(room))
        except self._broken as error:
            raise UnpackError(
                f"cannot be unpacked: {error}", "copy the whole file again"
            ) from error
        self._left -= len(found)
        if self._left < 0:
            raise UnpackError(
                f"is too large: more than {self._bytes_max // 2**20} MiB unpacked",
                "use a part of it",
            )
        room[: len(found)] = found
        return len(found)

    def _next(self, most: int) -> bytes:
        """At most so many unpacked bytes; none at the end."""
        while True:
            if self._unpacker.eof and not self._begin_next():
                return b""
            data = b""
            if self._unpacker.needs_input:
                data, self._packed = self._packed or self._file.read(PIECE_BYTES) or b"", b""
                if not data:
                    raise UnpackError("ends early", "copy the whole file again")
            if found := self._unpacker.decompress(data, most):
                return found

    def _begin_next(self) -> bool:
        """Begin the next member, if there is one. Zeros may be between members, and at the end."""
        rest = self._unpacker.unused_data.lstrip(b"\0")
        while not rest:
            piece = self._file.read(PIECE_BYTES)
            if not piece:
                return False
            rest = piece.lstrip(b"\0")
        self._unpacker, self._packed = self._make(), rest
        return True
