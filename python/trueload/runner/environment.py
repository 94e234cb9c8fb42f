"""The environment variables that a subject inherits: the names listed here, and no others.

How: two tables of shell patterns. A running subject gets the places of programs and libraries, and
its language. Builds, and commands that print a version, also get the settings of toolchains and
package managers. Names that look like a secret are left out.

Must not import anything beyond the standard library: the agent has it, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

FOR_ALL = (
    *("PATH", "TMPDIR", "USER", "LOGNAME"),
    *("LANG", "LANGUAGE", "LC_*", "TZ", "TZDIR", "TERM", "NO_COLOR", "LOCALE_ARCHIVE"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    # The places where language runtimes find themselves and their libraries.
    *("JAVA_HOME", "PYTHON*", "NODE_PATH", "NODE_EXTRA_CA_CERTS", "GEM_HOME", "GEM_PATH"),
    *("RUBYLIB", "PERL5LIB", "ERL_LIBS", "DOTNET_ROOT"),
    # Version managers: the program on the PATH is a shim that asks them for the real one.
    *("PYENV_*", "RBENV_*", "ASDF_*", "MISE_*", "VOLTA_HOME", "NVM_DIR", "RUSTUP_*"),
    # A subject may be trueload itself: its engine and its cache.
    "TRUELOAD_*",
)
FOR_BUILDS = (
    # ~/.cargo, ~/.npmrc, ~/.m2, ~/.config/pip, …: registries, their mirrors, and caches.
    *("HOME", "XDG_*_HOME"),
    # Only builds get a proxy: it would stand between a running client and its server.
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"),
    *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"),
    # With these set, tools ask no question and draw no progress bar.
    *("CI", "DEBIAN_FRONTEND", "SOURCE_DATE_EPOCH"),
    # C and C++
    *("CC", "CXX", "CPP", "LD", "AR", "NM", "RANLIB", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"),
    *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH"),
    *("PKG_CONFIG*", "CMAKE_*", "CCACHE_*", "SCCACHE_*", "OPENSSL_*", "LIBCLANG_PATH", "NIX_*"),
    # Rust; without CARGO_TARGET_DIR and the like, which move the build out of the folder.
    *("CARGO_HOME", "CARGO_HTTP_*", "CARGO_NET_*", "CARGO_REGISTR*", "CARGO_SOURCE_*"),
    *("CARGO_BUILD_JOBS", "CARGO_BUILD_RUST*", "CARGO_INCREMENTAL", "CARGO_PROFILE_*"),
    # CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER
    *("CARGO_TARGET_*_*", "RUSTC", "RUSTC_*", "RUSTFLAGS", "RUST_BACKTRACE"),
    # Go, one by one: GO* would include GOOGLE_APPLICATION_CREDENTIALS.
    *("GOROOT", "GOPATH", "GOBIN", "GOCACHE", "GOMODCACHE", "GOENV", "GOTMPDIR", "GOTOOLCHAIN"),
    *("GOPROXY", "GOSUMDB", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOINSECURE", "GOVCS"),
    *("GOFLAGS", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GO111MODULE", "CGO_*"),
    # JavaScript; npm reads its settings in lower and in upper case.
    *("NODE_*", "npm_config_*", "NPM_CONFIG_*", "YARN_*", "PNPM_*", "COREPACK_*"),
    # Java and its kin
    *("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "M2", "M2_HOME", "MAVEN_*"),
    *("GRADLE_OPTS", "GRADLE_USER_HOME", "LEIN_*", "CLJ_*"),
    # Python, Ruby, PHP
    *("PIP_*", "UV_*", "GEM_*", "BUNDLE_PATH", "BUNDLE_MIRROR*", "RUBYOPT", "COMPOSER_*"),
    # Erlang, Elixir
    *("HEX_*", "MIX_HOME", "MIX_ARCHIVES", "MIX_REBAR3", "REBAR_CACHE_DIR", "ERL_*"),
    "REBAR_GLOBAL_CONFIG_DIR",
    # Haskell, D, Zig, OCaml, .NET
    *("CABAL_DIR", "CABAL_CONFIG", "STACK_ROOT", "GHCUP_*", "DC", "DFLAGS", "DUB_HOME"),
    *("ZIG_GLOBAL_CACHE_DIR", "OPAM*", "DOTNET_*", "NUGET_*"),
)
# CARGO_REGISTRY_TOKEN, HEX_API_KEY, UV_INDEX_X_PASSWORD, npm_config__auth, COMPOSER_AUTH, …
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|KEY$|COOKIE", re.I)
_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def subject_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a running subject. ``extra`` overrides ours, and sets its HOME."""
    return {**_inherited(FOR_ALL), **extra}


def build_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of commands that fetch and build a subject, or print a version."""
    return {**_inherited((*FOR_ALL, *FOR_BUILDS)), **extra}


def _inherited(patterns: tuple[str, ...]) -> dict[str, str]:
    """Our environment, with system folders in the path and without toolchain downloads."""
    env = {name: value for name, value in os.environ.items() if _passes(name, patterns)}
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    folders += [folder for folder in _SYSTEM_FOLDERS if folder not in folders]
    # A subject that is trueload itself must not use its user's defaults.
    ours = {"GOTOOLCHAIN": "local", "TRUELOAD_CONFIG": ""}
    return {**ours, **env, "PATH": os.pathsep.join(folders)}


def _passes(name: str, patterns: tuple[str, ...]) -> bool:
    if not any(fnmatchcase(name, pattern) for pattern in patterns):
        return False
    return _SECRET.search(name) is None
