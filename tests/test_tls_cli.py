"""HTTPS as a user meets it: through the command, against OpenSSL and the reference server.

The rows of ``faults/cases/tls.toml`` run here live; in virtual time they run in
``crates/sim/tests/faults``.
"""

from __future__ import annotations

import json
import re
import select
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
from faults.cases import Case, Script, Step, load
from faults.laws import assert_out, run_lawfully
from faults.peer import Peer
from faults.tls import Certificates
from harness import Trueload, start_server
from trueload.record import figures
from trueload.record.schema import Record

pytestmark = pytest.mark.engine

ROWS = [case.live() for case in load() if case.only != "virtual" and case.tls]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ANSWERS: Script = (Step("read"), Step("send", data=OK), Step("again"))
FEW = ("--requests", "6", "-c", "2", "--timeout", "5s", "--json", "-")


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@dataclass(frozen=True)
class Secure:
    """A reference server that speaks TLS, and the certificate that it made."""

    url: str
    port: int
    cacert: Path


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    command = Trueload(tmp_path_factory.mktemp("secure"))
    yield start_secure(command)
    command.close()


def start_secure(command: Trueload, *flags: str | Path) -> Secure:
    # A killed server leaves its certificate behind, so it goes into the test's folder.
    command.folder.mkdir(parents=True, exist_ok=True)
    here = {"TMPDIR": str(command.folder)}
    words = ("serve", "http", "--tls", "--listen", "127.0.0.1:0", *flags)
    process = command.start(*words, env=here)
    assert process.stderr is not None
    readable, _, _ = select.select([process.stderr], [], [], 30)
    assert readable, "the reference server does not say where it listens"
    # It prints its lines at once, and prints nothing about a certificate that it was given.
    output = "".join(process.stderr.readline() for _ in range(1 if "--cert" in flags else 2))
    found = re.search(r"listening on (https://127\.0\.0\.1:(\d+)/)\n", output)
    cacert = re.search(r"--cacert (\S+)\n", output)
    assert found, output
    return Secure(found[1], int(found[2]), Path(cacert[1]) if cacert else Path())


def measure(trueload: Trueload, url: str, *flags: str | Path, code: int = 0) -> Any:
    done = trueload.run("http", url, *FEW, "--no-save", *flags)
    if code == 0:
        return done.measured()
    assert done.code == code, done
    return done.json()


def words_of(case: Case, peer: Peer) -> list[str]:
    words = ["http", peer.url, "--requests", str(case.requests), "--json", "-", "--no-save"]
    words += ["--timeout", f"{case.timeout_ms}ms", "-c", str(case.connections)]
    return [*words, *(["--close"] if case.close else [])]


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name)
def test_a_user_is_told_what_a_peer_did_to_tls(
    case: Case, trueload: Trueload, certificates: Certificates
) -> None:
    context = None if case.tls == "none" else certificates.context(case.tls)
    with Peer(case.scripts, context=context, secure=True) as peer:
        words = [*words_of(case, peer), "--cacert", str(certificates.cacert)]
        finished, seen = run_lawfully(trueload, case, peer, words)
        # On sockets, bytes may arrive separately.
        try:
            assert_out(seen, case)
        except AssertionError:
            assert_out(seen, case, apart=True)
    assert finished.code != 3 or len(finished.err.splitlines()[-2:]) == 2


HINTS = [
    ("self-signed", "--cacert FILE trusts its issuer, --insecure trusts anybody"),
    ("other issuer", "--cacert FILE trusts its issuer, --insecure trusts anybody"),
    ("other name", "ask for it by a name of its certificate"),
    ("expired", "renew it"),
    ("not yet valid", "renew it"),
    ("demands a certificate", "--cert FILE --key FILE"),
]


@pytest.mark.parametrize(("name", "hint"), HINTS)
def test_what_is_wrong_with_a_certificate_is_one_line_and_a_hint(
    name: str, hint: str, trueload: Trueload, certificates: Certificates
) -> None:
    with Peer((ANSWERS,), context=certificates.context(name)) as peer:
        done = trueload.run("http", peer.url, *FEW, "--cacert", certificates.cacert)
    assert done.code == 3, done
    error, hint_line = done.err.splitlines()[-2:]
    assert error.startswith("error: no connection became usable: tls."), error
    assert hint_line.startswith("hint: "), hint_line
    assert hint in hint_line


def test_a_connection_that_does_not_count_as_established_was_not_dropped(
    trueload: Trueload, certificates: Certificates
) -> None:
    context = certificates.context("demands a certificate")
    with Peer((ANSWERS,), context=context) as peer:
        words = (
            "-c",
            "2",
            "--rate",
            "20/s",
            "--warmup",
            "0",
            "-d",
            "500ms",
            "--json",
            "-",
            "--no-save",
        )
        done = trueload.run("http", peer.url, *words, "--cacert", certificates.cacert)
    assert done.code == 3, done
    found = done.json()["connections"]
    assert (found["established"], found["dropped"]) == (0, 0), done


@pytest.mark.parametrize("name", ["self-signed", "other name", "expired", "not yet valid"])
def test_insecure_measures_whoever_answers_and_says_so(
    name: str, trueload: Trueload, certificates: Certificates
) -> None:
    with Peer((ANSWERS,), context=certificates.context(name)) as peer:
        done = trueload.run("http", peer.url, *FEW, "--insecure")
    record = done.measured()
    assert record["tls"]["verification"] == "off"
    assert record["plan"]["generate"]["tls"]["trust"] == {"kind": "anybody"}
    assert "verification off" in done.err
    assert "verification off" in trueload.run("runs", "show", "last").out


def test_a_server_of_tls_1_0_only_is_of_no_version_in_common(
    trueload: Trueload, certificates: Certificates
) -> None:
    context = certificates.context("good")
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.deprecated_call():
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1
    with Peer((ANSWERS,), context=context) as peer:
        record = measure(trueload, peer.url, "--cacert", certificates.cacert, code=3)
    assert record["counts"]["failed"] == {"tls.version": 6}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_record_says_what_was_agreed_on(
    version: ssl.TLSVersion, trueload: Trueload, certificates: Certificates
) -> None:
    context = certificates.context("good")
    context.minimum_version = context.maximum_version = version
    with Peer((ANSWERS,), context=context) as peer:
        url = peer.url.replace("127.0.0.1", "localhost")
        record = measure(trueload, url, "--cacert", certificates.cacert, "--warmup", "0")
    assert record["counts"]["ok"] == 6
    tls = record["tls"]
    assert tls["version"] == version.name.replace("_", ".")
    assert (tls["server_name"], tls["alpn"]) == ("localhost", "http/1.1")
    assert (tls["verification"], tls["client_certificate"]) == ("on", False)
    assert tls["handshakes_full"] + tls["handshakes_resumed"] == 2
    assert record["handshake_ns"]["count"] == record["connect_ns"]["count"] == 2
    assert record["connect_ns"]["max"] >= record["handshake_ns"]["max"]


def test_a_client_certificate_is_shown(
    trueload: Trueload, certificates: Certificates, tmp_path: Path
) -> None:
    mine = certificates.issuer.issue_cert("me@example.org")
    both, cert = tmp_path / "both.pem", tmp_path / "cert.pem"
    key = tmp_path / "key.pem"
    both.write_bytes(mine.private_key_and_cert_chain_pem.bytes())
    cert.write_bytes(b"".join(blob.bytes() for blob in mine.cert_chain_pems))
    key.write_bytes(mine.private_key_pem.bytes())
    with Peer((ANSWERS,), context=certificates.context("demands a certificate")) as peer:
        for flags in (("--cert", both), ("--cert", cert, "--key", key)):
            record = measure(trueload, peer.url, "--cacert", certificates.cacert, *flags)
            assert record["counts"]["ok"] == 6
            assert record["tls"]["client_certificate"] is True


def test_a_private_key_is_nowhere_in_what_is_kept(
    trueload: Trueload, certificates: Certificates, tmp_path: Path
) -> None:
    mine = certificates.issuer.issue_cert("me@example.org")
    pem = mine.private_key_pem.bytes()
    both = tmp_path / "both.pem"
    both.write_bytes(mine.private_key_and_cert_chain_pem.bytes())
    with Peer((ANSWERS,), context=certificates.context("demands a certificate")) as peer:
        words = ("--cacert", certificates.cacert, "--cert", both)
        done = trueload.run("http", peer.url, *FEW, *words)
    assert done.measured()["counts"]["ok"] == 6
    exported = trueload.run("runs", "export", "last").out
    secret = pem.splitlines()[1].decode()
    stored = b"".join(path.read_bytes() for path in trueload.folder.rglob("*") if path.is_file())
    for text in (done.out, done.err, exported, stored.decode("latin-1")):
        assert secret not in text
    # A key given in place of its file's name is not shown, either.
    done = trueload.run("http", "https://127.0.0.1:1/", "--cert", pem.decode())
    assert (done.code, secret in done.err) == (2, False), done


def test_a_name_can_be_asked_for_at_another_address(
    trueload: Trueload, certificates: Certificates
) -> None:
    with Peer((ANSWERS,), context=certificates.context("other name")) as peer:
        url = f"https://example.org:{peer.port}/"
        there = ("--resolve", f"example.org:{peer.port}:127.0.0.1")
        record = measure(trueload, url, *there, "--cacert", certificates.cacert)
    assert record["tls"]["server_name"] == "example.org"


def test_the_reference_server_makes_a_certificate_that_can_be_trusted(
    trueload: Trueload, secure: Secure
) -> None:
    for url in (secure.url, secure.url.replace("127.0.0.1", "localhost")):
        record = measure(trueload, url, "--cacert", secure.cacert)
        assert record["counts"]["ok"] == 6
    assert measure(trueload, secure.url, code=3)["counts"]["failed"] == {"tls.cert": 6}
    plain = secure.url.replace("https", "http")
    assert set(measure(trueload, plain, code=4)["counts"]["failed"]) <= {"framing", "empty"}


def test_a_copied_curl_command_says_whom_to_trust(trueload: Trueload, secure: Secure) -> None:
    for option, verification in (("-k", "off"), (f"--cacert {secure.cacert}", "on")):
        done = trueload.run("http", "--curl", f"curl {option} {secure.url}", *FEW, "--no-save")
        assert done.measured()["tls"]["verification"] == verification
    done = trueload.run("http", "--curl", f"curl {secure.url}", *FEW, "--no-save")
    assert done.json()["counts"]["failed"] == {"tls.cert": 6}


def test_several_requests_take_turns_over_tls(
    trueload: Trueload, secure: Secure, tmp_path: Path
) -> None:
    # Long enough to be sent apart from what precedes it.
    long = "x" * 20_000
    file = tmp_path / "targets.jsonl"
    lines = [{"url": "/"}, {"url": "/perf?{counter}", "method": "POST", "body": long}]
    file.write_text("\n".join(map(json.dumps, lines)))
    flags = ("--targets", file, "--cacert", secure.cacert, "--expect-status", "200,405")
    record = measure(trueload, secure.url, *flags, "--pipeline", "3")
    assert [target["counts"]["ok"] for target in record["targets"]] == [3, 3]
    assert record["targets"][0]["url"] == f"{secure.url.rstrip('/')}/"


def test_sessions_are_resumed_unless_they_are_not_to_be(trueload: Trueload, secure: Secure) -> None:
    flags = ("--cacert", secure.cacert, "--close", "--requests", "60")
    tls = measure(trueload, secure.url, *flags)["tls"]
    assert tls["resumption"] is True
    assert tls["handshakes_resumed"] > tls["handshakes_full"], tls
    tls = measure(trueload, secure.url, *flags, "--no-tls-resumption")["tls"]
    assert (tls["resumption"], tls["handshakes_resumed"]) == (False, 0)
    assert tls["handshakes_full"] >= 60


@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
def test_the_lag_of_a_request_behind_its_handshake_is_ours(
    trueload: Trueload, secure: Secure, driver: str
) -> None:
    flags = ("--cacert", secure.cacert, "--close", "--requests", "40", "--driver", driver)
    record = Record.model_validate(measure(trueload, secure.url, *flags))
    assert figures.complete(record.histograms.send_lag).figures.count == record.counts.ok == 40


@pytest.mark.parametrize(
    "flags", [("--pipeline", "8"), ("--rate", "200/s"), ("--threads", "2"), ("--driver", "epoll")]
)
def test_every_way_to_send_works_over_tls(
    trueload: Trueload, secure: Secure, flags: tuple[str, ...]
) -> None:
    done = trueload.run("http", secure.url, *FEW, "--no-save", "--cacert", secure.cacert, *flags)
    # On a busy machine requests at a rate go out late, which the verdict reports.
    assert done.code in (0, 4), done
    record = done.json()
    assert record["counts"]["ok"] == 6
    assert record["counts"]["failed"] == {}


def test_a_large_body_goes_and_comes_over_tls(
    trueload: Trueload, certificates: Certificates
) -> None:
    body = b"x" * 300_000
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    script: Script = (Step("read"), Step("send", data=answer), Step("again"))
    with Peer((script,), context=certificates.context("good")) as peer:
        flags = ("--body", body.decode()[:100_000], "--expect-body", body.decode()[:100_000])
        record = measure(trueload, peer.url, "--cacert", certificates.cacert, *flags, code=4)
        assert record["counts"]["failed"] == {"mismatch": 6}
        record = measure(trueload, peer.url, "--cacert", certificates.cacert, *flags[:2])
        assert (record["counts"]["ok"], peer.requests) == (6, 12)


@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
@pytest.mark.parametrize("filled", [(), ("-H", "X-Number: {counter}")], ids=["alike", "differing"])
def test_a_pipeline_of_large_bodies_goes_over_tls(
    trueload: Trueload, secure: Secure, tmp_path: Path, driver: str, filled: tuple[str, ...]
) -> None:
    body = tmp_path / "body"
    body.write_bytes(b"x" * 4_000_000)
    # Data that is not yet encrypted must continue when the socket has taken the rest, or it stalls.
    load = ("--requests", "24", "-c", "2", "--pipeline", "8", "--timeout", "20s", *filled)
    files = ("--cacert", secure.cacert, "--body-file", body)
    words = (*load, "--driver", driver, "--json", "-", "--no-save")
    record = trueload.run("http", secure.url, *words, *files).json()
    assert (record["counts"]["ok"], record["counts"]["failed"]) == (24, {})
    assert record["generator"]["driver"] == driver


def test_the_reference_server_takes_a_certificate(
    trueload: Trueload, certificates: Certificates, tmp_path: Path
) -> None:
    leaf = certificates.issuer.issue_cert("127.0.0.1")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
    key.write_bytes(leaf.private_key_pem.bytes())
    server = start_secure(trueload, "--cert", cert, "--key", key)
    record = measure(trueload, server.url, "--cacert", certificates.cacert)
    assert record["counts"]["ok"] == 6


def test_origins_with_tls_and_without_it_are_of_one_run(
    trueload: Trueload, secure: Secure, tmp_path: Path
) -> None:
    plain, other = start_server(trueload), start_secure(trueload)
    both = tmp_path / "both.pem"
    both.write_bytes(secure.cacert.read_bytes() + other.cacert.read_bytes())
    named = f"https://localhost:{other.port}/"
    urls = (f"{plain.url}/", secure.url, named)
    targets = tmp_path / "targets"
    targets.write_text("\n".join(f'{{"url": "{url}"}}' for url in urls))
    flags = (
        "--targets",
        targets,
        "--cacert",
        both,
        "--resolve",
        f"localhost:{other.port}:127.0.0.1",
    )
    done = trueload.run("http", *flags, *FEW, "-c", "3")
    record = done.measured()
    assert [origin["counts"]["ok"] for origin in record["origins"]] == [2, 2, 2]
    assert record["tls"]["server_name"] == "127.0.0.1, localhost"
    assert record["tls"]["handshakes_full"] + record["tls"]["handshakes_resumed"] == 2


def test_large_bodies_go_over_tls_to_several_origins(
    trueload: Trueload, secure: Secure, tmp_path: Path
) -> None:
    plain = start_server(trueload)
    (tmp_path / "body").write_bytes(b"x" * 4_000_000)
    targets = tmp_path / "targets"
    urls = (f"{plain.url}/", secure.url)
    lines = (f'{{"method": "PUT", "url": "{url}", "body_file": "body"}}' for url in urls)
    targets.write_text("\n".join(lines))
    # Data that waits for encryption is reported to its own connection, and continues there.
    load = ("--requests", "24", "-c", "2", "--pipeline", "8", "--timeout", "20s")
    words = (*load, "--cacert", secure.cacert, "--json", "-", "--no-save")
    record = trueload.run("http", "--targets", targets, *words).json()
    assert [origin["counts"]["ok"] for origin in record["origins"]] == [12, 12]


def test_several_requests_and_a_copied_curl_command_go_over_tls(
    trueload: Trueload, secure: Secure, tmp_path: Path
) -> None:
    targets = tmp_path / "targets"
    targets.write_text('{"url": "/"}\n{"url": "/perf"}\n')
    record = measure(trueload, secure.url, "--targets", targets, "--cacert", secure.cacert)
    assert record["counts"]["ok"] == 6
    done = trueload.run("http", "--curl", f"curl -k {secure.url}", *FEW, "--no-save")
    assert done.measured()["tls"]["verification"] == "off"
    copied = f"curl --cacert {secure.cacert} {secure.url}?{{random}}"
    done = trueload.run("http", "--curl", copied, *FEW, "--no-save", "--expect-status", "200,404")
    assert done.measured()["tls"]["verification"] == "on", done


def test_plain_and_sealed_can_be_compared(
    trueload: Trueload, secure: Secure, certificates: Certificates
) -> None:
    with Peer((ANSWERS,)) as peer:
        flags = ("--requests", "20", "-c", "2", "--repeat", "1", "--cacert", secure.cacert)
        done = trueload.run("compare", peer.url, secure.url, *flags, "--no-save")
    assert done.code in (0, 4), done
    assert "B TLSv1.3" in done.out


MISTAKES = [
    (("http", "http://h/", "--cacert", "{good}"), "--cacert needs TLS"),
    (("http", "http://h/", "--insecure"), "--insecure needs TLS"),
    (("http", "https://h/", "--cacert", "{good}", "--insecure"), "cannot be used together"),
    (("http", "https://h/", "--cacert", "/nowhere"), "cannot be read"),
    (("http", "https://h/", "--cacert", "{key}"), "holds no certificate"),
    (("http", "https://h/", "--cacert", "{junk}"), "holds no certificate that can be read"),
    (("http", "https://h/", "--cacert", "{torn}"), "holds no certificate that can be read"),
    (("http", "https://h/", "--key", "{key}"), "no --cert"),
    (("http", "https://h/", "--cert", "{good}"), "holds no private key"),
    (("http", "https://h/", "--cert", "{good}", "--key", "{good}"), "holds no private key"),
    (("http", "https://h/", "--cert", "{good}", "--key", "{other}"), "is not that of"),
    (("http", "https://h/", "--cert", "{good}", "--key", "{locked}"), "encrypted"),
    (("serve", "http", "--tls", "--key", "{key}"), "no --cert"),
    (("serve", "http", "--cert", "{good}"), "holds no private key"),
]


@pytest.mark.parametrize(("words", "complaint"), MISTAKES, ids=lambda value: str(value)[:70])
def test_a_mistake_with_certificates_is_told_before_anything_is_sent(
    words: tuple[str, ...], complaint: str, trueload: Trueload, certificates: Certificates
) -> None:
    leaf, other = certificates.issuer.issue_cert("a"), certificates.issuer.issue_cert("b")
    locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n"
    junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    files = {
        "good": certificates.write("leaf.pem", *leaf.cert_chain_pems),
        "key": certificates.write("leaf.key", leaf.private_key_pem),
        "other": certificates.write("other.key", other.private_key_pem),
        "junk": certificates.write("junk.pem", trustme.Blob(junk.encode())),
        "torn": certificates.write("torn.pem", trustme.Blob(junk[:40].encode())),
        "locked": certificates.write("locked.key", trustme.Blob(locked.encode())),
    }
    done = trueload.run(*(word.format(**files) for word in words))
    assert done.code == 2, done
    error, hint = done.err.splitlines()
    assert error.startswith("error: ")
    assert complaint in error
    assert hint.startswith("hint: ")
