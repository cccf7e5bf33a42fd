import os
import signal

import pytest

from epd_operator.local.signals import STOPPING, StopSignals


@pytest.mark.parametrize("number", STOPPING, ids=lambda number: number.name)
def test_one_asks_two_hurry(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with StopSignals() as signals:
        assert (signals.asked, signals.hurried) == (False, False)
        os.kill(os.getpid(), number)
        assert (signals.asked, signals.hurried) == (True, False)
        os.kill(os.getpid(), number)
        assert (signals.asked, signals.hurried) == (True, True)
        assert signals.received == [number, number]
    assert signal.getsignal(number) is before


def test_nohup_is_respected() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not signals.asked
    finally:
        signal.signal(signal.SIGHUP, before)
