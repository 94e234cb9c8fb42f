"""The live view of a running client, at each width of a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trueload.protocol.client import ClientSetup
from trueload.protocol.client_progress import ClientProgress
from trueload.protocol.cpu_time import CpuTime
from trueload.protocol.plan import Served
from trueload.report.client_panel import ClientCourse, client_rows
from trueload.report.course import POINTS
from trueload.report.draw import inside
from trueload.report.heading import Heading
from trueload.report.rows import Size, row_text, row_width

SETUP = ClientSetup(
    url="http://127.0.0.1:1/wait/10",
    concurrency=1_024,
    pools=4,
    pool_size=256,
    timeout_ms=1_000,
    pipelining=1,
    keep_alive=True,
)
HEADING = Heading("python/aiohttp", 2, 9, ", about 3 min left")
NARROW = Size(56, 40)


def served(at_s: float, responses: int, **changes: int) -> Served:
    fields = dict.fromkeys(
        ("malformed", "aborted", "waiting", "bytes_in", "bytes_out", "open_peak"), 0
    )
    fields |= {"accepted": 1_024, "open": 1_000, "open_peak": 1_024, "requests": responses}
    fields |= {"at_ns": int(at_s * 1e9), "responses": responses, **changes}
    return Served.model_validate({"type": "served", **fields})


NOW = ClientProgress(
    setup=SETUP,
    phase="window",
    elapsed_ns=2_000_000_000,
    requests=2_000,
    answered=500,
    served=served(2.0, 4_500),
    failed={},
    client_cpu=CpuTime(2 * 10**9, 10**9),
    server_cpu=CpuTime(2 * 10**9, 5 * 10**8),
)
BEFORE = replace(
    NOW, served=served(1.0, 2_000), client_cpu=CpuTime(10**9, 0), server_cpu=CpuTime(10**9, 0)
)


def followed(*progress: ClientProgress) -> ClientCourse:
    course = ClientCourse()
    for one in progress:
        course.receive(one)
    return course


def shown(*progress: ClientProgress) -> dict[str, str]:
    """The text of each row by its label; of equal labels the first."""
    found: dict[str, str] = {}
    for row in client_rows(progress[-1], followed(*progress), HEADING, NARROW):
        label, _, rest = row_text(row).partition("  ")
        found.setdefault(label.strip(), rest.strip())
    return found


def test_the_view_shows_how_far_the_order_is_what_the_server_sees_and_both_ends_cpus() -> None:
    found = shown(BEFORE, NOW)
    assert found["trial"].endswith("2 of 9, about 3 min left")
    assert found["window"].endswith("500 of 2,000, about 6 s left")
    assert found["pools"] == "4 pools of 256"
    assert found["requests"] == "1,024 at once"
    assert found["throughput"] == "2,500 answers/s"
    assert found["answered"] == "4,500, 0 not due yet"
    assert found["connections"] == "1,000 open of 1,024"
    assert found["client CPU"].endswith("1.00 CPUs")
    assert found["server CPU"].endswith("0.50 CPUs")
    assert found["rate"].endswith("2,500/s")
    assert "aborted" not in found


@pytest.mark.parametrize(
    ("progress", "label", "expected"),
    [
        (replace(NOW, phase="start", requests=None), "start", "2.00 s"),
        (replace(NOW, answered=0), "window", "0 of 2,000"),
        (replace(NOW, answered=2_100), "window", "2,100 of 2,000, about 0 s left"),
        (replace(NOW, failed={"reset": 1, "empty": 1_200}), "empty", "1,200"),
        (replace(NOW, client_cpu=None), "client CPU", "not known"),
        (
            replace(NOW, served=served(2.0, 9, aborted=3, malformed=1)),
            "aborted",
            "3, malformed 1",
        ),
    ],
)
def test_the_view_has_something_to_say_of_whatever_happens(
    progress: ClientProgress, label: str, expected: str
) -> None:
    assert shown(progress)[label].endswith(expected)


def test_without_a_second_word_of_the_server_no_throughput_is_known() -> None:
    assert "throughput" not in shown(NOW)
    assert "throughput" not in shown(NOW, NOW), "no time has passed"


def test_what_a_client_used_in_the_order_before_is_not_of_this_one() -> None:
    course = followed(BEFORE, replace(NOW, client_cpu=None, server_cpu=None))
    assert not course.client
    assert not course.server


def test_a_course_keeps_so_many_points() -> None:
    course = followed(*(replace(NOW, served=served(at / 4, at * 25)) for at in range(300)))
    assert len(course.per_s) == POINTS
    assert course.per_s[-1] == 100


@pytest.mark.parametrize("width", [20, 40, 80, 120, 200])
@pytest.mark.parametrize("height", [1, 5, 12, 24, 50])
def test_no_row_is_too_wide_and_there_are_never_too_many(width: int, height: int) -> None:
    size = inside(width, height, alone=False)
    many = {f"class.{number}": number + 1 for number in range(20)}
    progress = replace(NOW, failed=many, served=served(2.0, 4_500, aborted=10**9, malformed=10**9))
    rows = client_rows(progress, followed(BEFORE, progress), HEADING, size)
    assert len(rows) <= size.height
    assert {row_width(row) for row in rows} == {width - 4}
