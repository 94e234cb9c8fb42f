"""Which of our environment variables reach subjects, and which further ones builds."""

from __future__ import annotations

import os

import pytest
from trueload.runner.environment import build_environment, subject_environment

SECRETS = [
    *("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "DATABASE_URL", "PGPASSWORD"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_API_KEY", "SSH_AUTH_SOCK", "KUBECONFIG", "ANSWER"),
    *("OTEL_EXPORTER_OTLP_HEADERS", "DOCKER_HOST", "path", "LD_", "PATH2", "MY_PATH"),
    # Other settings of these tools are passed on.
    *("CARGO_REGISTRY_TOKEN", "CARGO_REGISTRIES_OURS_TOKEN", "npm_config__auth", "NODE_AUTH_TOKEN"),
    *("npm_config_//registry.example/:_authToken", "NPM_CONFIG__PASSWORD", "YARN_NPM_AUTH_TOKEN"),
    *("HEX_API_KEY", "GEM_HOST_API_KEY", "COMPOSER_AUTH", "UV_INDEX_OURS_PASSWORD", "ERL_COOKIE"),
    *("UV_PUBLISH_TOKEN", "MAVEN_GPG_PASSPHRASE", "MISE_GITHUB_TOKEN", "TRUELOAD_SECRET"),
]
# Variables that would change where or how things are built.
MOVERS = [
    *("CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_BUILD_TARGET"),
    *("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "REBAR_BASE_DIR", "MIX_BUILD_PATH"),
]
FOR_ALL = [
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("LD_LIBRARY_PATH", "JAVA_HOME", "PYTHONPATH", "PYENV_ROOT", "TRUELOAD_ENGINE"),
]
FOR_BUILDS = [
    *("HOME", "XDG_CONFIG_HOME", "http_proxy", "HTTPS_PROXY", "no_proxy", "CC", "CXX", "CFLAGS"),
    *("PKG_CONFIG_PATH", "CARGO_HOME", "CARGO_REGISTRIES_OURS_INDEX", "CARGO_SOURCE_X_REGISTRY"),
    *("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", "RUSTFLAGS", "GOPATH", "GOPROXY"),
    *("GOMODCACHE", "GOCACHE", "npm_config_registry", "NPM_CONFIG_USERCONFIG", "MAVEN_OPTS"),
    *("PIP_INDEX_URL", "PIP_FIND_LINKS", "HEX_MIRROR", "REQUESTS_CA_BUNDLE"),
]

# Forbid toolchains to fetch themselves, and hide the user's defaults from subjects that run
# trueload.
SET_BY_US = ("GOTOOLCHAIN", "TRUELOAD_CONFIG")


@pytest.fixture(autouse=True)
def _everything_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name in (*SECRETS, *MOVERS, *FOR_ALL, *FOR_BUILDS):
        monkeypatch.setenv(name, f"/value/of/{name}")


def test_a_subject_gets_what_finds_programs_and_libraries_alone() -> None:
    assert sorted(subject_environment({})) == sorted([*FOR_ALL, *SET_BY_US])


def test_a_build_also_gets_the_settings_of_its_tools() -> None:
    assert sorted(build_environment({})) == sorted([*FOR_ALL, *FOR_BUILDS, *SET_BY_US])


def test_what_a_manifest_names_goes_before_ours() -> None:
    env = subject_environment({"GITHUB_TOKEN": "own", "LANG": "C", "GOTOOLCHAIN": "auto"})
    assert (env["GITHUB_TOKEN"], env["LANG"], env["GOTOOLCHAIN"]) == ("own", "C", "auto")
    assert subject_environment({})["GOTOOLCHAIN"] == "local", "none is fetched by itself"


def test_system_folders_are_in_the_path_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/bin:/usr/sbin")
    assert subject_environment({})["PATH"] == "/bin:/usr/sbin:/usr/local/sbin:/sbin"
    monkeypatch.delenv("PATH")
    assert "/bin" in subject_environment({})["PATH"].split(":")
