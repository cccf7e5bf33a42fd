"""Signals that ask a run to end, noted and acted upon where it is safe."""

import signal
from types import FrameType
from typing import Any, Self

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignals:
    """Notes every signal that asks to stop; the first begins the end, a second one hurries it."""

    def __init__(self) -> None:
        self.received: list[signal.Signals] = []
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in STOPPING:
            # nohup wants the run to outlive its terminal. SIGINT is ignored in any job that a script puts into the
            # background, so that says nothing.
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.received.append(signal.Signals(number))

    @property
    def asked(self) -> bool:
        """Whether to stop."""
        return bool(self.received)

    @property
    def hurried(self) -> bool:
        """Whether to stop at once."""
        return len(self.received) > 1
