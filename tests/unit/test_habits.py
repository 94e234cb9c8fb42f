"""Command lines as users of other tools type them: run as they mean it, or told how it is written.

A hint that is wrong is worse than none, so each row has the whole hint, or a part of it that only
the right one has. Nothing is sent: what would run is caught before it does.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from trueload import __version__
from trueload.cli import app
from trueload.commands.foreign_flags import FOREIGN_FLAGS, ForeignFlag

URL = "http://127.0.0.1:9/"
SEE = "see `trueload http --help`"
TWO_DASHES = "long options have two dashes: "


class Typed:
    """Runs command lines in this process, and keeps the jobs that would be measured."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.jobs: list[Any] = []
        self._capsys = capsys

    def run(self, line: str) -> tuple[int, str, str]:
        """Return the exit code, the output, and the hint or the whole of stderr."""
        self.jobs.clear()
        code = app.run(shlex.split(line.replace("URL", URL)))
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    def hint(self, line: str) -> str:
        """Return the hint of a command line that is refused."""
        code, out, err = self.run(line)
        assert (code, out) == (2, ""), (line, err)
        assert not self.jobs, line
        error, hint = err.splitlines()
        assert error.startswith("error: "), err
        return hint.removeprefix("hint: ")


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Command lines, and what they would measure."""
    caught = Typed(capsys)

    def keep(job: Any) -> int:
        caught.jobs.append(job)
        return 0

    monkeypatch.setattr("trueload.commands.run.run_job", keep)
    monkeypatch.setattr(sys, "argv", ["trueload"])
    monkeypatch.setenv("TRUELOAD_CONFIG", "")
    return caught


# Line, then a part of its hint.
REFUSED = [
    # wrk and wrk2
    ("http -t2 -c20 -d1s URL", "use --threads N, --duration 10s"),
    ("http -t 1 -c 20 -d 1 URL", "use --threads N, --duration 10s"),
    ("http --latency -c20 -d1s URL", "percentiles are always printed"),
    ("http -s post.lua -d 1s URL", "there are no scripts"),
    ("http -R 1000 -d 1s URL", "-R of wrk2 and autocannon (rate): use --rate"),
    ("http -R1000 -L -d1s URL", "-R of wrk2 and autocannon (rate): use --rate"),
    ("http -L -d1s URL", "percentiles are always printed; for redirects use --follow"),
    # hey
    ("http -q 10 -z 1s URL", "use --rate 5k/s or --quiet"),
    ("http -n 100 -m POST -d '{\"a\":1}' URL", "to send a body use --body TEXT"),
    ("http -n 100 -m POST -d hello URL", "to send a body use --body TEXT"),
    ("http -n 100 -T application/json URL", "use -H 'Content-Type: text/plain'"),
    ("http -n 100 -a u:p URL", "use --user NAME:PASSWORD"),
    ("http -n 100 -A text/html URL", "or -H 'Accept: …'"),
    ("http -n 100 -D body.txt URL", "--body-file FILE"),
    ("http -n 100 -U me URL", "User-Agent"),
    ("http -n 100 -o csv URL", "end it with .html (the report), .xml (JUnit)"),
    ("http -n 100 -h2 URL", "use --http 2"),
    ("http -n 100 -cpus 1 URL", "-cpus of hey (threads): use --threads N"),
    ("http -n 100 -disable-keepalive URL", "(a connection per request): use --close"),
    ("http -n 100 -disable-compression URL", "leave it out, none is asked for"),
    ("http -n 100 -disable-redirects URL", "redirects are followed only with --follow N"),
    ("http -n 100 -host a.b URL", "-H 'Host: …'"),
    # ab
    ("http -n 100 -c 10 -k URL", "connections are kept alive; --close"),
    ("http -n 100 -c 10 -p body.txt -T text/plain URL", "use --body-file FILE"),
    ("http -n 100 -u body.txt URL", "-u of ab (a body file to PUT): use -X PUT --body-file FILE"),
    ("http -n 100 -C a=b URL", "use -H 'Cookie: name=value'"),
    ("http -n 100 -l URL", "answers may vary"),
    ("http -n 100 -g out.tsv URL", "use --json FILE"),
    ("http -n 100 -e out.csv URL", "use --format csv"),
    ("http -t 1 -c 10 URL", "--duration 10s"),
    ("http -i -n 100 URL", "use -X HEAD"),
    ("http -n 100 -B 127.0.0.2 URL", "use --local-address"),
    ("ab -n 100 -c 10 URL", "`trueload http URL` loads one, as"),
    ("ab -c 10 URL", "`trueload http URL` loads one, as"),
    # oha
    ("http -q 100 -z 1s URL", "use --rate 5k/s"),
    ("http --no-tui -z 1s URL", "use --no-live"),
    ("http --output-format json -z 1s URL", "use --format json"),
    ("http -z 1s --output a.txt URL", "--format prints the result"),
    ("http -z 1s -o no-folder/a.html URL", "name another file"),
    ("http --json -z 1s URL", "its value is missing: write --json FILE"),
    ("http --latency-correction -z 1s URL", "with --rate it always is"),
    ("http --disable-keepalive -n 50 URL", "use --close"),
    ("http --http2 -p 2 -z 1s URL", "use --http 2"),
    ("http -p 2 -z 1s URL", "--http 2 --streams N"),
    ("http --burst-rate 10 --burst-delay 1s URL", "use --stages '1s@10,100ms@1k'"),
    ("http --urls-from-file urls.txt -z 1s", "use --targets FILE"),
    ("http --stats-success-breakdown -z 1s URL", "status codes are printed"),
    ("http --redirect 5 -z 1s URL", "use --follow N"),
    ("http --db-url x.db -z 1s URL", "with --request-log FILE"),
    ("http --ipv6 -z 1s URL", "write an IPv6 address in the URL"),
    ("http --connect-timeout 5s URL", "use --timeout 5s"),
    ("http --http-version 2 URL", "use --http 2"),
    ("http --connect-to a:80:b:80 URL", "use --resolve HOST:PORT:ADDRESS"),
    ("http --disable-color URL", "use --no-color"),
    ("http --method POST -d '{\"a\":1}' URL", "to send a body use --body TEXT"),
    # k6
    ("run script.js", "`trueload http URL` loads a server, with --scenario FILE"),
    ("run", "`trueload runs list` shows the runs"),
    ("http -u 10 -d 1s URL", "(virtual users): use -c N"),
    ("http -u10 -d 1s URL", "(virtual users): use -c N"),
    ("http --vus 10 URL", "use -c N"),
    ("http --stage 5s:10 URL", "--stages-of connections"),
    ("http --out json=x.json -d 1s URL", "use --json FILE"),
    ("http --summary-export s.json -d 1s URL", "use --json FILE"),
    ("http --threshold 'p(95)<200' -d 1s URL", "use --fail-on 'p95>200ms'"),
    ("http --fail-on 'p(95)>200' -d 1s URL", "'p99>20ms'"),
    ("http --fail-on 'http_req_duration>200ms' -d 1s URL", "'p99>20ms'"),
    ("http --thresholds 'p(95)<200' URL", "use --fail-on 'p95>200ms'"),
    ("http --stages 10s:10,20s:0 URL", "write TIME@VALUE or TIME@FIRST..LAST"),
    ("http --iterations 10 URL", "use --requests N"),
    ("http --rps 10 URL", "use --rate 5k/s"),
    ("http --insecure-skip-tls-verify URL", "use --insecure"),
    # vegeta
    ("http -rate 100 -duration 1s URL", TWO_DASHES + "--rate"),
    ("http -rate=100 URL", TWO_DASHES + "--rate"),
    ("http -duration 1s -c 2 URL", TWO_DASHES + "--duration"),
    ("http -duration=1s URL", TWO_DASHES + "--duration"),
    ("http -d 1s -connections 5 URL", TWO_DASHES + "--connections"),
    ("http -method POST URL", TWO_DASHES + "--method"),
    ("http -requests 10 URL", TWO_DASHES + "--requests"),
    ("http -header 'A: b' URL", TWO_DASHES + "--header"),
    ("http -timeout 5s URL", TWO_DASHES + "--timeout"),
    ("http -insecure URL", TWO_DASHES + "--insecure"),
    ("http -help", TWO_DASHES + "--help"),
    ("http -hepl", TWO_DASHES + "did you mean --help?"),
    ("http -durtion 1s URL", TWO_DASHES + "did you mean --duration?"),
    ("http -conections 5 URL", TWO_DASHES + "did you mean --connections?"),
    ("http -frobnicate 5 URL", SEE),
    ("http -body body.txt URL", "use --body-file FILE, or --body TEXT"),
    ("attack -rate=50/1s -targets=vegeta.txt", "use `trueload http URL --rate 50/s`"),
    ("http --rate 100 -max-workers 10 URL", "-max-workers of vegeta (most workers): use -c N"),
    ("http --rate 100 -workers 10 URL", "use -c N (--connections) or --threads N"),
    ("http -root-certs ca.pem URL", "use --cacert FILE"),
    ("http -targets targets.txt URL", TWO_DASHES + "--targets"),
    ("http -output results.bin URL", TWO_DASHES + "--output"),
    ("http -keepalive=false URL", "leave it out, or use --close"),
    ("http -redirects 0 URL", "use --follow N"),
    ("http -resolvers 1.1.1.1 URL", "use --resolve HOST:PORT:ADDRESS"),
    ("http -name x URL", "leave it out, each run has an id"),
    ("http -max-body 0 URL", SEE),
    ("http -chunked URL", SEE),
    # h2load, autocannon, bombardier, siege
    ("http --h1 -n 100 URL", "leave it out, or use --http 1.1"),
    ("http -c10 -D 1 URL", "use --duration 10s or --body-file FILE"),
    ("http -n100 -c10 -t1 URL", "use --threads N"),
    ("http -c 10 -p 10 -d 1 URL", "--pipeline N"),
    ("http -m POST -b hello -n 10 URL", "or --body TEXT"),
    ("http -w 2 -d 1 URL", "or --threads N"),
    ("http -w16 -d 1 URL", "use --window SIZE"),
    ("http --renderStatusCodes -d 1 URL", "they are printed"),
    ("http -c 10 -d 1s -l URL", "percentiles are always printed"),
    ("http -c 10 -d 1s -r 100 URL", "--rate 5k/s"),
    ("http -m POST -f body.txt -n 10 URL", "use --body-file FILE"),
    ("http --fasthttp -n 10 URL", "leave it out"),
    ("http -c 10 --time 10S URL", "use --duration 10s"),
    ("http -j URL", "use --format json"),
    ("http --overallRate 100 URL", "use --rate 5k/s"),
    ("http --connectionRate 100 URL", "use --rate 5k/s, over all connections"),
    ("http --har session.har URL", "use --replay FILE"),
    ("http --warm-up-time=5 URL", "use --warmup TIME"),
    ("http --clients=5 URL", "use -c N (--connections)"),
    ("http --input-file=urls.txt URL", "use --targets FILE"),
    ("http -n 100 -m 10 URL", "use --http 2 --streams 10"),
    ("http -c 10 --data=body.txt URL", "a body to send is --body TEXT"),
    # locust and hyperfine
    ("-f locustfile.py", "options follow the command, as in `trueload http -c 64 URL`"),
    ("http -u 10 -r 2 --host URL", "(virtual users): use -c N"),
    ("http --headless -d 1s URL", "leave it out"),
    ("http --users 10 URL", "use -c N"),
    ("http --spawn-rate 2 URL", "--stages-of connections"),
    ("--warmup 3 'curl URL'", "options follow the command, as in `trueload http -c 64 URL`"),
    # curl
    ("http -H 'A: b' -d x=1 URL", "to send a body use --body TEXT"),
    ("http -d @file URL", "to send a body use --body TEXT or --body-file FILE"),
    ("http --data x=1 -n 10 URL", "a body to send is --body TEXT"),
    ("http --data-raw x=1 -n 10 URL", "use --body TEXT"),
    ("http --data-binary @f -n 10 URL", "use --body TEXT or --body-file FILE"),
    ("http -k -n 10 https://127.0.0.1:9/", "use --insecure"),
    ("http -n 10 https://127.0.0.1:9/ -k", "use --insecure"),
    ("ws -k wss://127.0.0.1:9/", "use --insecure"),
    ("http -u a:b -n 10 URL", "-u of curl (name and password): use --user NAME:PASSWORD"),
    ("http -ua:b -n 10 URL", "-u of curl (name and password): use --user NAME:PASSWORD"),
    ("http -u :token -n 10 URL", "-u of curl (name and password): use --user NAME:PASSWORD"),
    ("http -I -n 10 URL", "use -X HEAD"),
    ("http --head URL", "use -X HEAD"),
    ("http -v -n 10 URL", "see the whole of a run in its --json FILE"),
    ("http --compressed -n 10 URL", "use -H 'Accept-Encoding: gzip'"),
    ("http -b a=b -n 10 URL", "use -H 'Cookie: name=value'"),
    ("http --cookie a=b URL", "use -H 'Cookie: name=value'"),
    ("http --request POST URL", "use -X POST (--method)"),
    ("http --url URL", "write it without an option"),
    ("http -F a=b URL", "use --form NAME=VALUE"),
    ("http --body @/etc/hostname URL", "use --body-file FILE, without @"),
    ("http --user-agent me URL", "use -H 'User-Agent: …'"),
    ("http --max-time 5 URL", "use --timeout 5s"),
    ("http -w '%{http_code}' URL", "use --format json, or leave it out"),
    # Python's requests, and what other tools, or people, call things
    ("http --verify no URL", "use --insecure"),
    ("http --auth u:p URL", "use --user NAME:PASSWORD"),
    ("http --cookies a=b URL", "use -H 'Cookie: name=value'"),
    ("http --access-log access.log URL", "use --replay FILE"),
    ("http --ramp-up 10s URL", "use --stages '10s@1k..20k'"),
    ("http --max-rate URL", "use --limit 'p99<10ms'"),
    ("http --slo 'p99<50ms' URL", "use --limit 'p99<10ms', or --fail-on 'p99>10ms'"),
    ("http --ttft URL", "use --stream sse"),
    ("http --stream -c 4 URL", "its value is missing: write --stream"),
    ("replay access.log URL", "use `trueload http URL --replay FILE`"),
    ("suite my-api", "`trueload suite run NAME` measures a suite"),
    ("suite init my-api", "`trueload suite new NAME` makes one"),
    ("suite lst", "did you mean list?"),
    ("http --status 200 URL", "use --expect-status 200"),
    ("http --report out.html URL", "use --output FILE, as report.html"),
    ("http --out out.html URL", "--output FILE"),
    ("http --log out.log URL", "use --replay FILE, or --output FILE"),
    ("http --delay 1s URL", "or --scenario FILE, whose steps may pause"),
    ("http --think-time 1s URL", "or --scenario FILE, whose steps may pause"),
    ("http --bearer secret URL", "use -H 'Authorization: Bearer …'"),
    ("http --content-type text/html URL", "use -H 'Content-Type: text/plain'"),
    ("http --payload x URL", "use --body TEXT"),
    ("http --post URL", "use -X POST"),
    ("http -X post URL", "write POST"),
    ("http --method=Get URL", "write GET"),
    ("http --no-warmup URL", "use --warmup 0"),
    ("http --check 'p99<1s' URL", "use --fail-on 'p95>200ms'"),
    ("http --fail-if 'p99>1s' URL", "did you mean --fail-on?"),
    ("http --percentiles 50,99 URL", "--json FILE has the whole distribution"),
    ("http --tls URL", "write https:// in the URL"),
    ("http --ui URL", "use --web"),
    ("http --nodes 3 URL", "use --place ssh:HOST for each"),
    ("http --place load1 URL", SEE),
    ("http -o URL", "its value is missing: write -o FILE"),
    ("list", "`trueload runs list` shows the stored runs"),
    ("show last", "`trueload runs show last` the latest"),
    ("runs ls", "`trueload runs list`"),
    ("runs last", "`trueload runs show last`"),
    ("diff a b", "`trueload runs diff RUN RUN` compares two runs"),
    ("report last -o page.pdf", "add -o report.html; --plots DIR writes charts"),
    ("compare URL URL URL", "`trueload suite new NAME`"),
    ("serve http -p 8080", "use --listen 127.0.0.1:8080"),
    ("serve http --port 8080", "use --listen 127.0.0.1:8080"),
    ("serve ws --host 0.0.0.0", "use --listen 127.0.0.1:8080"),
    ("serve http :8080", "use --listen 127.0.0.1:8080"),
    ("serve 8080", "see `trueload serve --help` for the commands"),
    ("doctor ssh:load1", "use --place for a host"),
    # mistyped names: what a word begins, then at most two mistakes, then nothing
    ("http --dur 1s URL", f"did you mean --duration? {SEE}"),
    ("http --req 1 URL", f"did you mean --requests or --request-log? {SEE}"),
    (
        "http --conn 1 URL",
        "did you mean --connections, --connect-rate, --connect-open or --connection-window?",
    ),
    ("http --re 1 URL", SEE),
    ("http --conections 10 -d 1s URL", f"did you mean --connections? {SEE}"),
    ("http --headers 'A: b' URL", f"did you mean --header? {SEE}"),
    ("http --expect_status 200 URL", f"did you mean --expect-status? {SEE}"),
    ("http --expectBody x URL", f"did you mean --expect-body? {SEE}"),
    ("http --Connections 1 URL", f"did you mean --connections? {SEE}"),
    ("http --warm-up 1s URL", f"did you mean --warmup? {SEE}"),
    ("http --hepl", f"did you mean --help? {SEE}"),
    ("http --raet 5 URL", f"did you mean --rate? {SEE}"),
    ("http --tsl URL", SEE),
    ("http --force URL", SEE),
    ("http --frobnicate URL", SEE),
    ("http --a-b URL", SEE),
    ("http --Z URL", SEE),
    ("--verzion", "did you mean --version? see `trueload --help`"),
    ("-version", TWO_DASHES + "--version"),
    ("htttp URL", "did you mean http? see `trueload --help`"),
    ("run list", "`trueload runs list` shows the runs"),
    ("doc", "did you mean doctor? see `trueload --help`"),
    ("runs lst", "did you mean list? see `trueload runs --help`"),
    ("runs run x", "see `trueload runs --help` for the commands"),
    ("runs frobnicate", "see `trueload runs --help` for the commands"),
    ("attend", "see `trueload --help` for the commands"),
    ("wrk -t2 URL", "`trueload http URL` loads a server"),
    ("example.com", "to load a host of that name: `trueload http example.com`"),
    # words in a wrong place, and values that are missing
    ("-c 10 http URL", "options follow the command, as in `trueload http -c 64 URL`"),
    ("http -d 1s -c 10 URL --requests", "its value is missing: write --requests COUNT"),
    ("http URL -c", "its value is missing: write -c COUNT"),
    ("http -d URL", "its value is missing: write -d TIME"),
    ("http -c URL", "its value is missing: write -c COUNT"),
    ("http URL -c --close", "its value is missing: write -c COUNT"),
    ("http -c -d 10s URL", "its value is missing: write -c COUNT"),
    ("http -c=10 URL", "write -c COUNT, without ="),
    ("http -d=1s URL", "write -d TIME, without ="),
    ("http --close=1 URL", "--close takes no value"),
    ("http URL http://127.0.0.1:9/api", "(--targets FILE); `trueload compare` compares two"),
    ("http ws://127.0.0.1:9/", "use `trueload ws` for it"),
    ("ws URL", "use `trueload http` for it"),
    ("http URL 100", "what follows the URL needs an option, as in `trueload http URL -c 64`"),
    ("http URL -c 4 10s", "what follows the URL needs an option"),
    ("http localhost 8080", "write the port behind a colon, as in localhost:8080"),
    ("http localhost 8080 -c 4", "write the port behind a colon, as in localhost:8080"),
    ("http localhost:80 8080", "what follows the URL needs an option"),
    ("http --c 10 URL", "did you mean --connections (-c)?"),
    ("http --n 10 URL", "did you mean --requests (-n)?"),
    ("http --h", "did you mean -h?"),
    ("http -d 1m30s --dry-run URL", "leave it out, or let it make Pods"),
    # conditions
    ("http --fail-on foo -d 1s URL", "write METRIC, > or <, VALUE"),
    ("http --fail-on 'avg>200ms' URL", "did you mean mean?"),
    ("http --fail-on 'rps<100' URL", "did you mean throughput?"),
    ("http --fail-on 'error_rate>1%' URL", "did you mean errors?"),
    ("http --fail-on 'P99>200ms' URL", "did you mean p99?"),
    ("http --fail-on 'p95>200' URL", "write METRIC, > or <, VALUE"),
    ("http --fail-on 'errors>1' URL", "'errors>0.1%'"),
    ("http --fail-on 'errors>100%' URL", "'errors>0.1%'"),
    ("http --fail-on 'ttft>1s' URL", "write METRIC, > or <, VALUE"),
    ("http --fail-on 'ttft>1s' --stream sse URL", "did you mean first_part_p99?"),
    ("http --fail-on 'itl>1s' --stream sse URL", "did you mean gap_p99?"),
    ("http --limit p99 -d 1s URL", "write METRIC<VALUE"),
    ("http --limit 'avg<100ms' URL", "did you mean mean?"),
    ("http --limit 'rps<100' URL", "write METRIC<VALUE"),
    ("compare URL URL --fail-on 'rps<0.9'", "did you mean throughput?"),
    # files
    ("http --body-file nosuch.txt -d 1s URL", "name a file that can be read"),
    # values
    *((f"http {word} 0 URL", SEE) for word in ("-c", "-d", "-n", "--timeout")),
    *((f"http --rate {word} URL", SEE) for word in ("nan", "inf", "1,000", "0")),
    *((f"http -d '{word}' URL", SEE) for word in ("1 s", "0,5s", "5x", "1m30")),
    ("http -d NaN URL", "-d is --duration, like 10s"),
    ("tcp -d hello 127.0.0.1:9", "see `trueload tcp --help`"),
    ("http -n 99999999999999999999 URL", SEE),
    ("http -H X URL", "write it as -H 'Name: value'"),
    # addresses
    ("http http:/127.0.0.1:9/", "write http://127.0.0.1:9/"),
    ("http http:127.0.0.1:9/", "write http://127.0.0.1:9/"),
    ("http http//127.0.0.1:9/", "write http://127.0.0.1:9/"),
    ("http:/127.0.0.1:9/", "write http://127.0.0.1:9/"),
    ("https//127.0.0.1:9/", "write https://127.0.0.1:9/"),
    ("htp://127.0.0.1:9/", "write it as http://HOST[:PORT]/PATH"),
    ("http http://:9/", "write it as http://HOST[:PORT]/PATH"),
    ("http http://::1:9/", "write IPv6 in brackets"),
    ("http http://127.0.0.1:0/", "ports are numbers from 1 to 65535"),
    ("http :99999", "ports are numbers from 1 to 65535"),
]


@pytest.mark.parametrize(("line", "hint"), REFUSED, ids=[line for line, _ in REFUSED])
def test_what_is_refused_gets_the_right_hint(typed: Typed, line: str, hint: str) -> None:
    found = typed.hint(line)
    assert hint in found
    if hint == SEE:
        assert found == SEE, "nothing is near enough to be sure"


# Line, then the URL that is loaded.
TAKEN = [
    ("http --header 'X-A: b' -d 1s URL", URL),
    ("http --timeout 2s -d 1s URL", URL),
    ("http -n 200 -c 20 URL", URL),
    ("http -z 1s URL", URL),
    ("http -XPOST -n 1 URL", URL),
    ("http --insecure -z 1s https://127.0.0.1:9/", "https://127.0.0.1:9/"),
    ("http --rate 50/1s -d 1s URL", URL),
    ("http --rate 1e3 -d 1m30s URL", URL),
    ("http --rate 1000rps -d 1sec URL", URL),
    ("http -c 1k -n 1e6 URL", URL),
    ("http localhost", "http://localhost"),
    ("http localhost:9/a", "http://localhost:9/a"),
    ("http :18081", "http://localhost:18081"),
    ("http 18081", "http://localhost:18081"),
    ("http :18081/a?b=1", "http://localhost:18081/a?b=1"),
    ("http 127.0.0.1:18081/ -d 1s", "http://127.0.0.1:18081/"),
    ("URL", URL),
    ("URL -c 10 -d 1s", URL),
    ("-c 10 -d 1s URL", URL),
    ("-n 100 -H 'A: b' URL", URL),
    ("https://127.0.0.1:9/ --insecure", "https://127.0.0.1:9/"),
    ("localhost", "http://localhost"),
    ("localhost/a", "http://localhost/a"),
    ("localhost:9", "http://localhost:9"),
    ("some-host:8080/a", "http://some-host:8080/a"),
    ("127.0.0.1", "http://127.0.0.1"),
    ("[::1]:9/", "http://[::1]:9/"),
    (":18081", "http://localhost:18081"),
    ("18081/a", "http://localhost:18081/a"),
    ("ws://127.0.0.1:9/ws -d 1s", "ws://127.0.0.1:9/ws"),
    ("ws :9/ws", "ws://localhost:9/ws"),
    ("tcp://127.0.0.1:9", "tcp://127.0.0.1:9"),
    ("udp://127.0.0.1:9 -c 2", "udp://127.0.0.1:9"),
    ("http -o x.json --output x.md -n 10 URL", URL),
    ("http -n 1 URL", URL),
    ("http --rate 600/m -d 1s URL", URL),
    ("http --rate 10M -d 1s URL", URL),
    ("http -c 1k -n 10 URL", URL),
    ("http --threads=2 -d 30 URL", URL),
    ("http --fail-on 'errors>=1' URL", URL),
    ("http --body @no-such-file URL", URL),
    ("http 'http://[fe80::1%25lo]:9/' -d 1s", "http://[fe80::1%25lo]:9/"),
]


@pytest.mark.parametrize(("line", "url"), TAKEN, ids=[line for line, _ in TAKEN])
def test_what_is_plain_is_done(typed: Typed, line: str, url: str) -> None:
    assert typed.run(line) == (0, "", "")
    (job,) = typed.jobs
    assert job.spec.url == url


def test_the_stored_command_repeats_what_was_meant(typed: Typed) -> None:
    typed.run("URL -c 2")
    assert sys.argv[1:] == ["http", URL, "-c", "2"]


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("help", "--help"),
        ("help http", "http --help"),
        ("help runs list", "runs list --help"),
        ("http help", "http --help"),
        ("runs help", "runs --help"),
        ("version", "--version"),
        ("-v", "--version"),
        # Former names of commands.
        ("ab --help", "compare --help"),
        ("help ab", "compare --help"),
        ("ab -h", "compare -h"),
        ("runs compare --help", "runs diff --help"),
    ],
)
def test_help_and_version_are_words_too(typed: Typed, line: str, same: str) -> None:
    expected = typed.run(same)
    assert expected[0] == 0
    assert typed.run(line) == expected


def test_the_version_is_the_same_everywhere(typed: Typed) -> None:
    assert typed.run("version") == (0, f"trueload {__version__}\n", "")


@pytest.mark.parametrize("row", FOREIGN_FLAGS, ids=lambda row: f"{row.flag}{row.when}")
def test_a_flag_of_another_tool_names_only_flags_of_ours(typed: Typed, row: ForeignFlag) -> None:
    path = "serve http" if "--listen" in row.ours else "http"
    command: Any = app.build_command(path.split()[0])
    for word in path.split():
        command = command.commands[word]
    flags = {flag for each in command.params for flag in each.opts}
    assert row.ours <= flags, f"{row.flag}: {row.ours - flags}"
    assert row.flag not in flags, f"{row.flag} is ours by now: remove its row"
    if not row.when:
        assert row.advice in typed.hint(f"{path} {row.flag} file")


def test_a_data_file_that_is_none_is_told_of_the_body(typed: Typed, tmp_path: Path) -> None:
    assert "--body TEXT" in typed.hint(f"http --data {tmp_path}/x URL")
