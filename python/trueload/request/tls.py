"""What the options of TLS mean: whom to trust, which certificate to show, whether to resume.

How: files are read here, once, and checked as far as possible without a handshake. So a mistake in
them is reported before anything is sent. A key is kept out of every text.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Literal

from trueload.errors import UserError
from trueload.files.inputs import read_input, text_of
from trueload.protocol.option import flag_of, refuse_beside
from trueload.protocol.request_options import TlsOptions
from trueload.request.url import Url
from trueload.request.values import Tls

PEM_BYTES_MAX = 8 * 2**20  # a system's bundle of issuers has 0.2 MiB
ALPN = ("http/1.1",)

_CERTIFICATE = re.compile(rb"-----BEGIN (X509 |TRUSTED )?CERTIFICATE-----")
_CERTIFICATE_BLOCK = re.compile(
    rb"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----(.*?)-----END", re.DOTALL
)
_KEY = re.compile(rb"-----BEGIN ([A-Z0-9]+ )?PRIVATE KEY-----")
_ENCRYPTED = re.compile(rb"-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED")
_AS_PEM = "a PEM file begins with -----BEGIN; `openssl x509 -inform der` makes one of a .der file"


def make_tls(endpoint: Url, given: TlsOptions) -> Tls | None:
    """The settings of TLS for a URL; None for one without it. Raises ``UserError``."""
    if not endpoint.is_secure:
        for flag in map(flag_of, given.given):
            raise UserError(
                f"{flag} needs TLS, but the URL begins with {endpoint.scheme}://",
                f"write it as {endpoint.scheme}s://…",
            )
        return None
    refuse_beside("--cacert", {"--insecure": given.cacert is not None and given.insecure})
    issuers = None if given.cacert is None else read_certificates(given.cacert, "--cacert")
    trust: Literal["system", "given", "anybody"] = "system" if issuers is None else "given"
    named = given.cert is not None or given.key is not None
    certificate, key = read_identity(given.cert, given.key) if named else (None, None)
    return Tls(
        server_name=server_name(endpoint),
        alpn=ALPN,
        trust="anybody" if given.insecure else trust,
        issuers=issuers,
        certificate=certificate,
        key=key,
        resumption=not given.no_tls_resumption,
    )


def server_name(endpoint: Url) -> str:
    """The name that a server's certificate must be for."""
    return endpoint.host.partition("%")[0].removesuffix(".")


def read_certificates(path: Path, flag: str) -> bytes:
    """Read a PEM file with at least one certificate. Raises ``UserError``."""
    pem = _read(path, flag)
    if not _CERTIFICATE.search(pem):
        raise UserError(
            f"{flag} {_shown(path)} holds no certificate in PEM form", _as_pem(path, pem)
        )
    if not _has_readable_certificate(pem):
        raise UserError(
            f"{flag} {_shown(path)} holds no certificate that can be read",
            "`openssl x509 -in FILE` rewrites it, if it can be read",
        )
    return pem


def _has_readable_certificate(pem: bytes) -> bool:
    """Whether at least one certificate can be read; in a system's bundle some may be unknown."""
    import ssl

    for block in _CERTIFICATE_BLOCK.findall(pem):
        try:
            der = base64.b64decode(block)
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=der)
        except (ssl.SSLError, ValueError):
            continue
        return True
    return False


def read_identity(cert: Path | None, key: Path | None) -> tuple[bytes, bytes]:
    """Read a certificate and its private key; without ``key`` both are in one file. Raises
    ``UserError``."""
    if cert is None:
        raise UserError("--key is given, but no --cert", "add --cert FILE")
    certificate = read_certificates(cert, "--cert")
    where, flag = (cert, "--cert") if key is None else (key, "--key")
    secret = certificate if key is None else _read(where, flag)
    if not _KEY.search(secret):
        hint = "add --key FILE" if key is None else _as_pem(where, secret)
        raise UserError(f"{flag} {_shown(where)} holds no private key in PEM form", hint)
    if _ENCRYPTED.search(secret):
        raise UserError(
            f"{flag} {_shown(where)} holds an encrypted private key",
            "decrypt it, for example with `openssl pkey -in FILE -out FILE.plain`",
        )
    _refuse_strangers(cert, where)
    return certificate, secret


def _refuse_strangers(cert: Path, key: Path) -> None:
    """Refuse a key that is not the certificate's, before a handshake. Raises ``UserError``."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key, password=lambda: "")
    except ssl.SSLError as error:
        why = (
            f"the private key in {_shown(key)} is not that of the certificate in {_shown(cert)}"
            if error.reason == "KEY_VALUES_MISMATCH"
            else f"the certificate in {_shown(cert)} and its key cannot be read"
        )
        raise UserError(why, "name a certificate and the key that belongs to it") from None
    except OSError:
        return  # a file that cannot be read again is left to the engine


def _as_pem(path: Path, content: bytes) -> str:
    """How to make a PEM file of a file that is none."""
    # A PKCS #12 file is a sequence that begins with the number 3 (RFC 7292, 4).
    if path.suffix.lower() in (".p12", ".pfx") or b"\x02\x01\x03" in content[:9]:
        return "`openssl pkcs12 -in FILE -nodes -out FILE.pem` makes a PEM file of PKCS #12"
    return _AS_PEM


def _read(path: Path, flag: str) -> bytes:
    shown = f"{flag} {_shown(path)}"
    limit = "a PEM file has at most {} MiB"
    return text_of(read_input(path, PEM_BYTES_MAX, shown, limit, stdin=False), shown)


def _shown(path: Path) -> str:
    # If a key itself was given instead of its file's name, it must not appear in an error.
    text = str(path)
    return "'…'" if "-----" in text else repr(text)
