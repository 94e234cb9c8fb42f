"""Errors of functions name their arguments, not options of the command line."""

from __future__ import annotations

import pytest
from trueload.api.wording import in_python
from trueload.errors import UserError

NAMES = (
    "header",
    "method",
    "rate",
    "connections",
    "requests",
    "expect_status",
    "limit",
    "threads",
    "wait",
    "search",
)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("--connections cannot be True", "connections= cannot be True"),
        (
            "--connections and --requests cannot be used together",
            "connections= and requests= cannot be used together",
        ),
        ("invalid value for '-c' / '--connections': 'x'", "invalid value for connections=: 'x'"),
        ("invalid value for '--connections' / '-c': 'x'", "invalid value for connections=: 'x'"),
        ("add for example --limit 'p99<10ms'", "add for example limit='p99<10ms'"),
        ("use --threads N", "use threads=N"),
        ("use --threads 4 instead", "use threads=4 instead"),
        ("longer than --wait 10m", "longer than wait='10m'"),
        ("use --rate 5k/s", "use rate='5k/s'"),
        ("use --rate 50/s or --rate 50", "use rate='50/s' or rate=50"),
        ("use -c N (--connections)", "use connections=N"),
        ("use -H 'Cookie: a=b' (--header)", "use header='Cookie: a=b'"),
        ("use -X HEAD (--method)", "use method='HEAD'"),
        ("trueload http has no option --vus", "trueload.http has no argument vus="),
        ("trueload suite run has no option --a-b", "trueload.suite has no argument a_b="),
        ("did you mean --connections (-c)?", "did you mean connections= (-c)?"),
        ("--expect-status is for", "expect_status= is for"),
        ("(--search connections)", "(search= connections)"),
        # What is no argument, and what a shell would get, stays.
        ("write it to --json FILE", "write it to --json FILE"),
        ("`trueload runs list --connections` shows", "`trueload runs list --connections` shows"),
        ("see `trueload http --help`", "see help(trueload.http)"),
        ("see `trueload suite run --help`", "see help(trueload.suite)"),
        ("see `trueload compare --help`", "see help(trueload.ab)"),
    ],
)
def test_an_option_is_named_as_an_argument(said: str, expected: str) -> None:
    error = in_python(UserError(said, said), NAMES)
    assert error.message.startswith(expected)
    assert (str(error), error.hint) == (error.message, error.message)
    assert error.__notes__ == [f"hint: {error.hint}"]
