"""Which headers and parameters count as secrets by their names alone."""

from __future__ import annotations

import pytest
from trueload.request.secret_names import ANYWHERE, ENDINGS, WORDS, is_secret_name

SECRET = (
    *("X-Api-Key", "apikey", "api_key", "apiKey", "APIKey", "key", "Ocp-Apim-Subscription-Key"),
    *("access_token", "accessToken", "TOKEN", "tokens", "token2", "tokenid", "X-Vault-Token"),
    *("X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token", "AWSAccessKeyId", "sig"),
    *("Authorization", "Proxy-Authorization", "auth", "X-Auth", "oauth2", "auth_code", "authkey"),
    *("sessionid", "PHPSESSID", "JSESSIONID", "ASP.NET_SessionId", "laravel_session", "sid"),
    *("connect.sid", "Cookie", "Cookie2", "Set-Cookie", "secret", "client_secret", "sEcReT"),
    *("password", "userPassword", "user[password]", "dbpassword", "passwd", "pass", "userpass"),
    *("pwd", "jwt", "bearer", "otp", "totp", "pin", "PIN", "pincode", "credentials", "hmac"),
    *("X-CSRF-Token", "csrfmiddlewaretoken", "X-Hub-Signature-256", "webhooksecret", "passkey"),
    # However often they are percent-encoded.
    *("to%6ben", "%74oken", "to%256ben", "pass%5Fword", "%2525252525252574oken"),
)
OPEN = (
    *("monkey", "keyboard", "keyword", "keynote", "turkey", "hockey", "hotkey", "keypad"),
    *("author", "authors", "authority", "co-author", "authentic", "design", "signal", "signup"),
    *("sigma", "assign", "spin", "spinner", "pinned", "opinion", "shipping", "president"),
    *("inside", "sidebar", "compass", "bypass", "passenger", "secretary", "tokenizer"),
    *("cookiecutter", "possession", "obsession", "hotpot", "desktop", "zipcode", "code", "user"),
    *("Accept", "Content-Type", "User-Agent", "Host", "Origin", "page", "q", "id", "sort", ""),
)


@pytest.mark.parametrize("name", SECRET)
def test_a_name_of_a_secret_is_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", OPEN)
def test_a_name_that_only_looks_like_one_is_not(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize("word", [*ANYWHERE, *ENDINGS, *WORDS])
def test_each_word_of_the_table_counts_with_any_case_and_marks(word: str) -> None:
    for name in (word, word.upper(), word.title(), f"X-{word}", f"my_{word}_1", f"a[{word}]"):
        assert is_secret_name(name), name


def test_a_very_long_name_is_decided_at_once() -> None:
    assert not is_secret_name("my" * 50_000 + "zz")
    assert is_secret_name("z" * 100_000 + "-key")
