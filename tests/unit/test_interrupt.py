"""Signals as a flag: the first asks to stop, the second ends; handlers are restored."""

from __future__ import annotations

import os
import re
import signal

import pytest
from trueload.ids import record_id, run_id
from trueload.interrupt import SIGNALS, Interrupt


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_asks_and_the_second_ends(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Interrupt() as interrupt:
        assert not interrupt.requested
        os.kill(os.getpid(), number)
        assert interrupt.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupt() as interrupt:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not interrupt.requested
    finally:
        signal.signal(signal.SIGHUP, before)


def test_identities_sort_by_time_and_never_collide() -> None:
    by_time = [record_id(now_ms) for now_ms in range(1_000, 1_100)]
    assert by_time == sorted(by_time)
    assert len({record_id(5) for _ in range(1_000)}) == 1_000
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", record_id()
    )
    assert re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{4}", run_id())
