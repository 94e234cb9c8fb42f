"""A run over fifty hosts that stand-ins play (bench/standin.py): every sum is exact, and the clock
of each host is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness import Server
from trueload.trial.spec import Progress

HOSTS, VARIANTS = 50, 3


def test_what_fifty_hosts_say_is_added_up_exactly(
    bench: Any, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_hosts, news = bench["many_hosts"], list[str]()

    class Listening(many_hosts.Watch):  # type: ignore[misc, name-defined]
        def __call__(self, progress: Progress) -> None:
            news.extend(progress.news)
            super().__call__(progress)

    monkeypatch.setattr(many_hosts, "Watch", Listening)
    monkeypatch.setattr("trueload.trial.run.MANY_HOSTS", HOSTS)
    work = bench["engine"].Work(port=server.port, connections=2, depth=1, duration_s=0.6)
    recording = bench["recording"].record(work)
    variants = [bench["recording"].scaled(recording, times + 1) for times in range(VARIANTS)]
    outcome = many_hosts.measure(tmp_path, variants, HOSTS)
    assert outcome.off == ()
    assert news[-1] == f"adding up what {HOSTS} hosts have reported"
