"""The observer of trials: what it keeps, to whom it reports, and that it is cheap when unused."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from client_samples import good_client_record
from samples import good_record
from trueload.metrics import otlp
from trueload.metrics.exports import KEPT, Exports, exporting
from trueload.metrics.families import make_families
from trueload.metrics.options import NO_METRICS, MetricsOptions
from trueload.metrics.outlets import Announce
from trueload.report.heading import Heading
from trueload.report.live import NO_LABELS, unwatched
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.trial.spec import OnProgress, Progress, TrialSpec

SPEC = TrialSpec(
    url="http://h/", addresses=("127.0.0.1:1",), traffic=Traffic(request=Request(host="h"))
)
END = Progress("ended", 0, None, record=good_record())


class Outlet:
    """An outlet that only counts calls; its thread waits until it is closed."""

    def __init__(self, trouble: str | None = None) -> None:
        self.trouble = trouble
        self.finished = self.closed = 0
        self._ended = threading.Event()
        self.thread = threading.Thread(target=self._ended.wait, daemon=True)
        self.thread.start()

    def finish(self, stopped: Callable[[], bool], announce: Announce) -> None:
        self.finished += 1

    def close(self) -> str | None:
        self.closed += 1
        self._ended.set()
        return self.trouble


def observed(*outlets: Outlet) -> Exports:
    exports = Exports({"command": "http"})
    for outlet in outlets or (Outlet(),):
        exports.add(outlet)
    return exports


def trials_of(exports: Exports) -> list[str]:
    return [dict(tally.labels)["trial"] for tally in exports.tallies()]


def test_without_a_way_out_the_live_view_is_left_alone() -> None:
    exports = Exports({})
    assert exports.beside(unwatched) is unwatched
    exports.measured({"trial": "1"}, good_record())
    assert exports.tallies() == ()


def test_the_live_view_is_told_the_same_and_with_the_same_labels() -> None:
    shown: list[Progress] = []
    asked: list[tuple[str, Mapping[str, str]]] = []

    @contextmanager
    def view(
        spec: TrialSpec, heading: Heading, labels: Mapping[str, str] = NO_LABELS
    ) -> Iterator[OnProgress]:
        asked.append((heading.title, labels))
        yield shown.append

    exports = observed()
    with exports.beside(view)(SPEC, Heading("a title"), {"trial": "7"}) as on_progress:
        assert on_progress is not None
        on_progress(END)
    assert asked == [("a title", {"trial": "7"})]
    assert shown == [END]
    (tally,) = exports.tallies()
    assert tally.outcome is not None
    assert tally.is_over


def test_the_last_trials_that_are_over_are_kept_and_no_more() -> None:
    exports = observed()
    for number in range(1, KEPT + 6):
        with exports.beside(unwatched)(SPEC, Heading(""), {"trial": str(number)}) as on_progress:
            assert on_progress is not None
            on_progress(END)
        exports.measured({"trial": f"client {number}"}, good_client_record())
    assert len(exports.tallies()) <= KEPT + 1
    assert trials_of(exports)[-2:] == [str(KEPT + 5), f"client {KEPT + 5}"]


def test_a_trial_that_ends_by_a_mistake_is_over() -> None:
    exports = observed()
    with pytest.raises(RuntimeError), exports.beside(unwatched)(SPEC, Heading(""), {"trial": "1"}):
        raise RuntimeError
    assert [tally.is_over for tally in exports.tallies()] == [True]


def test_a_client_is_told_of_at_its_end() -> None:
    exports = observed()
    record = good_client_record()
    exports.measured({"trial": "1", "subject": "python/urllib3"}, record)
    found = {
        family.metric.name: family.samples[0].value for family in make_families(exports.tallies())
    }
    assert found["trueload.requests.ok"] == record.counts.ok
    assert found["trueload.throughput"] == record.throughput.ok_per_s


def test_the_same_object_is_given_until_something_is_new() -> None:
    exports = observed()
    with exports.beside(unwatched)(SPEC, Heading(""), {"trial": "1"}) as on_progress:
        assert on_progress is not None
        before = exports.tallies()
        assert exports.tallies() is before
        on_progress(END)
        assert exports.tallies() is not before


def test_threads_of_ways_out_keep_off_the_cpus_that_the_front_keeps_off() -> None:
    outlet = Outlet()
    allowed = os.sched_getaffinity(0)
    some = {min(allowed)}
    os.sched_setaffinity(0, some)
    try:
        with observed(outlet).beside(unwatched)(SPEC, Heading(""), {"trial": "1"}):
            status = Path(f"/proc/self/task/{outlet.thread.native_id}/status").read_text()
    finally:
        os.sched_setaffinity(0, allowed)
    assert f"Cpus_allowed_list:\t{min(allowed)}\n" in status
    outlet.close()


class Running:
    requested = False


def test_an_export_that_breaks_is_told_and_not_the_end_of_the_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("of a library")

    monkeypatch.setattr(otlp, "make_data", fail)
    exports = observed()
    exports.measured({"trial": "1"}, good_record())
    outlet = otlp.OtlpOutlet("http://127.0.0.1:1/v1/metrics", exports.tallies)
    assert outlet.close() == (
        "--otlp: 1 of 1 exports to http://127.0.0.1:1/v1/metrics failed: KeyError"
    )


def test_nothing_wanted_is_nothing_done() -> None:
    notes: list[str] = []
    with exporting(NO_METRICS, {}, Running(), notes.append) as exports:
        assert exports.beside(unwatched) is unwatched
    assert notes == []


def test_at_the_end_all_are_finished_and_closed_and_trouble_is_told() -> None:
    notes: list[str] = []
    good, bad = Outlet(), Outlet("it failed")
    with exporting(MetricsOptions(), {}, Running(), notes.append) as exports:
        exports.add(good)
        exports.add(bad)
    assert [(each.finished, each.closed) for each in (good, bad)] == [(1, 1)] * 2
    assert notes == ["warning: it failed"]
