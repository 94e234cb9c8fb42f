"""The live panel of a client at work, as text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trueload.protocol.client import ClientSetup
from trueload.protocol.client_progress import ClientProgress
from trueload.protocol.plan import Served
from trueload.report.client_panel import ClientCourse, client_lines
from trueload.report.panel import POINTS

SETUP = ClientSetup(
    url="http://127.0.0.1:1/wait/10",
    concurrency=1_024,
    pools=4,
    pool_size=256,
    timeout_ms=1_000,
    pipelining=1,
    keep_alive=True,
)


def served(at_s: float, responses: int, **changes: int) -> Served:
    fields = dict.fromkeys(
        ("malformed", "aborted", "waiting", "bytes_in", "bytes_out", "open_peak"), 0
    )
    fields |= {"accepted": 1_024, "open": 1_000, "open_peak": 1_024, "requests": responses}
    fields |= {"at_ns": int(at_s * 1e9), "responses": responses, **changes}
    return Served.model_validate({"type": "served", **fields})


NOW = ClientProgress(
    setup=SETUP,
    stage="window",
    elapsed_ns=2_000_000_000,
    requests=2_000,
    answered=500,
    served=served(2.0, 4_500),
    failed={},
)


def shown(progress: ClientProgress, *earlier: Served) -> dict[str, str]:
    """Each line's rest, by its label."""
    course = ClientCourse()
    for one in (*earlier, progress.served):
        course.add(one)
    return {line[:13].strip(): line[13:].strip() for line in client_lines(progress, course)}


def test_the_panel_shows_how_far_the_order_is_and_what_the_server_sees() -> None:
    found = shown(NOW, served(1.0, 2_000))
    assert found["window"] == "█" * 7 + "░" * 21 + " 500 of 2,000, about 6 s left"
    assert found["cell"] == "4 pools of 256, 1,024 at once"
    assert found["throughput"] == "█  2,500 answers/s"
    assert found["server"] == "4,500 answered, 0 not due yet"
    assert found["connections"] == "1,000 open of 1,024, 1,024 at most, 1,024 opened"
    assert "failures" not in found
    assert "server saw" not in found


@pytest.mark.parametrize(
    ("progress", "label", "said"),
    [
        (replace(NOW, stage="start", requests=None), "start", "2.00 s"),
        (replace(NOW, answered=0), "window", "░" * 28 + " 0 of 2,000"),
        (replace(NOW, answered=2_100), "window", "█" * 28 + " 2,100 of 2,000, about 0 s left"),
        (replace(NOW, failed={"reset": 1, "empty": 1_200}), "failures", "empty 1,200, reset 1"),
        (
            replace(NOW, served=served(2.0, 9, aborted=3, malformed=1)),
            "server saw",
            "3 ended before the answer, 1 malformed",
        ),
    ],
)
def test_the_panel_has_something_to_say_of_whatever_happens(
    progress: ClientProgress, label: str, said: str
) -> None:
    assert shown(progress)[label] == said


def test_without_a_second_word_of_the_server_no_throughput_is_known() -> None:
    assert "throughput" not in shown(NOW)
    assert "throughput" not in shown(NOW, NOW.served), "no time has passed"


def test_a_course_keeps_so_many_points() -> None:
    course = ClientCourse()
    for at in range(200):
        course.add(served(at / 4, at * 25))
    assert len(course.per_s) == POINTS
    assert course.per_s[-1] == 100
