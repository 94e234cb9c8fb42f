"""Recognises names of headers and query parameters whose value is probably a secret. Pure.

How: a name is split into parts at everything but letters (digits, ``-``, ``_``, brackets), and
where a small letter is followed by a capital. A part counts if it contains one of ``ANYWHERE`` or
ends with one of ``ENDINGS``. It also counts if it consists only of ``WORDS`` and ``FILLERS``, with
one of ``WORDS`` among them. So ``sessionid`` and ``X-Api-Key`` count, but ``author``, ``monkey``,
``design`` and ``spin`` do not.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote_plus

ANYWHERE = (
    *("password", "passwd", "passphrase", "passcode", "credential", "signature", "apikey"),
    *("authorization", "authorisation", "authentication", "bearer", "jwt", "csrf", "xsrf"),
    *("sessionid", "sessid", "secretkey", "accesskey", "privatekey"),
)
"""So unlike any other word that they count anywhere in a part."""

ENDINGS = ("token", "secret", "cookie", "auth", "pwd")
"""No other word ends with these, but others begin with them: ``author``, ``secretary``."""

WORDS = (
    *("key", "token", "secret", "auth", "authn", "authz", "session", "sess", "sid", "cookie"),
    *("pass", "pwd", "sig", "cred", "otp", "totp", "hotp", "pin", "hmac", "sso", "mfa", "saml"),
)
"""Other words contain these too often for them to be searched for within a part."""

FILLERS = (
    *("access", "account", "admin", "api", "app", "asp", "aws", "client", "code", "db", "device"),
    *("hash", "id", "login", "master", "my", "php", "private", "public", "refresh", "root"),
    *("service", "sign", "signing", "user", "value", "web", "x"),
)
"""What may be joined to one of ``WORDS`` without a separator: ``authcode``, ``userpass``."""

ESCAPES_DEEP = 5  # a name that is percent-encoded so many times counts as a secret

_PARTS = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WORD = "|".join(sorted(WORDS, key=len, reverse=True))
_ANY = "|".join(sorted((*WORDS, *FILLERS), key=len, reverse=True))
_SECRET = re.compile(
    rf".*(?:{'|'.join(ANYWHERE)}).*|.*(?:{'|'.join(ENDINGS)})s?"
    rf"|(?:{'|'.join(FILLERS)}){{0,4}}(?:{_WORD})(?:{_ANY}){{0,4}}s?"
)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether the value of this header or parameter must be shown nowhere."""
    for _ in range(ESCAPES_DEEP):
        plain = unquote_plus(name)
        if plain == name:
            return any(_SECRET.fullmatch(part) for part in _parts(name))
        name = plain
    return True


def _parts(name: str) -> list[str]:
    """The words of a name in small letters, split with and without regard to capitals."""
    found = _PARTS.findall(name)
    camel = (word for part in found for word in _CAMEL.findall(part))
    return [part.casefold() for part in (*found, *camel)]
