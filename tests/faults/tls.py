"""A scripted peer that speaks TLS, with any certificate, and breaks it when its script says so.

How: OpenSSL works on memory buffers, so that the script can also write raw bytes to the socket.
Certificates are made on first use. Must not know what trueload makes of it.
"""

from __future__ import annotations

import contextlib
import datetime
import socket
import ssl
from functools import cached_property
from pathlib import Path
from typing import Final

import trustme

HERE: Final = ("127.0.0.1", "localhost")
JUNK: Final = b"\x17\x03\x03\x00\x20" + b"_" * 32
"""A record that no key has sealed."""


class SealedSocket:
    """A server's socket for its script; data goes through TLS."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self._sock = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def handshake(self) -> None:
        """Do the handshake. Raises ``OSError`` when it fails, after sending the alert."""
        while True:
            try:
                self._tls.do_handshake()
                return
            except ssl.SSLWantReadError:
                self._feed()
            finally:
                self._flush()

    def recv(self, size: int) -> bytes:
        while True:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                self._feed()
            except ssl.SSLZeroReturnError:
                return b""
            finally:
                self._flush()

    def sendall(self, data: bytes) -> None:
        self._tls.write(data)
        self._flush()

    def shutdown(self, how: int) -> None:
        """Send close_notify, then shut the socket down."""
        self.notify()
        self._sock.shutdown(how)

    def notify(self) -> None:
        """Send close_notify: no more data will come."""
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()
        self._flush()

    def alert(self) -> None:
        """Send a fatal alert, as a server does that received garbage."""
        self._incoming.write(JUNK)
        with contextlib.suppress(ssl.SSLError):
            self._tls.read(1)
        self._flush()

    def settimeout(self, seconds: float) -> None:
        self._sock.settimeout(seconds)

    def setsockopt(self, level: int, option: int, value: int | bytes) -> None:
        self._sock.setsockopt(level, option, value)

    def close(self) -> None:
        self._sock.close()

    def _feed(self) -> None:
        self._flush()
        data = self._sock.recv(65536)
        if not data:
            raise ConnectionError("the client has closed")
        self._incoming.write(data)

    def _flush(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.sendall(self._outgoing.read())


class Certificates:
    """The certificates of a test session; rows name each set-up."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def issuer(self) -> trustme.CA:
        return trustme.CA()

    @cached_property
    def cacert(self) -> Path:
        """The file with the issuer's certificate."""
        return self.write("issuer.pem", self.issuer.cert_pem)

    def write(self, name: str, *blobs: trustme.Blob) -> Path:
        """Write PEM texts into one file."""
        path = self._folder / name
        path.write_bytes(b"".join(blob.bytes() for blob in blobs))
        return path

    def context(self, name: str) -> ssl.SSLContext:
        """Return a server's set-up; raises ``KeyError`` for an unknown name."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        if name == "self-signed":
            alone = trustme.CA()
            path = self.write("self.pem", alone.private_key_pem, alone.cert_pem)
            context.load_cert_chain(path)
            return context
        self._leaf(name).configure_cert(context)
        if name == "demands a certificate":
            context.verify_mode = ssl.CERT_REQUIRED
            self.issuer.configure_trust(context)
        return context

    def _leaf(self, name: str) -> trustme.LeafCert:
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        day, long_ago = datetime.timedelta(days=1), now - datetime.timedelta(days=900)
        makers = {
            "good": lambda: self.issuer.issue_cert(*HERE),
            "demands a certificate": lambda: self.issuer.issue_cert(*HERE),
            "other name": lambda: self.issuer.issue_cert("example.org"),
            "other issuer": lambda: trustme.CA().issue_cert(*HERE),
            "expired": lambda: self.issuer.issue_cert(
                *HERE, not_before=long_ago, not_after=now - day
            ),
            "not yet valid": lambda: self.issuer.issue_cert(*HERE, not_before=now + day),
        }
        return makers[name]()
