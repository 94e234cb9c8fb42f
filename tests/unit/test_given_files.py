"""Files that an option names, and what else is given instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from trueload.errors import UserError
from trueload.protocol.option import JSON_FILE, OUT_FILE
from trueload.request.tls import read_identity

PKCS12 = bytes.fromhex("308209a7020103308209 6d".replace(" ", "")) + b"x" * 40


@pytest.mark.parametrize(
    ("name", "content", "hint"),
    [
        ("me.p12", PKCS12, "openssl pkcs12 -in FILE"),
        ("me.pfx", PKCS12, "openssl pkcs12 -in FILE"),
        ("me.crt", PKCS12, "openssl pkcs12 -in FILE"),
        ("me.P12", b"", "openssl pkcs12 -in FILE"),
        ("me.der", bytes.fromhex("3082030a308201f2a003020102"), "openssl x509 -inform der"),
        ("me.txt", b"hello", "openssl x509 -inform der"),
    ],
)
def test_a_certificate_in_another_form_is_told_with_the_command_that_helps(
    tmp_path: Path, name: str, content: bytes, hint: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match="no certificate in PEM form") as error:
        read_identity(tmp_path / name, None)
    assert hint in error.value.hint


@pytest.mark.parametrize("text", ["http://a/", "https://a", "WS://a", "wss://a/b"])
def test_a_url_is_no_file_for_json(text: str) -> None:
    with pytest.raises(ValueError, match="takes a FILE, or - for stdout, and a URL follows it"):
        JSON_FILE.parse(text)
    with pytest.raises(ValueError, match="takes a FILE, and a URL follows it"):
        OUT_FILE.parse(text)


@pytest.mark.parametrize("text", ["-", "a.json", "/a/b", "a:b", "./http:/x"])
def test_any_other_name_is_a_file_for_json(text: str) -> None:
    assert JSON_FILE.parse(text) == OUT_FILE.parse(text) == Path(text)
