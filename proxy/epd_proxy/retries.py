"""A budget of second tries, so that an outage is not multiplied by them."""

from __future__ import annotations

from epd_proxy.config import Retries

_WINDOW = 10.0


class RetryBudget:
    """Allows second tries up to a share of the requests of the last ten seconds, and always a few."""

    def __init__(self, retries: Retries, share: int = 1) -> None:
        self._ratio = retries.budget_ratio
        self._floor = max(1, retries.budget_floor // share) if retries.budget_floor else 0
        self._started = 0.0
        self.requests = 0
        self._retries = 0
        self._before = 0

    def take(self, now: float) -> bool:
        """Say whether a second try is allowed at `now` (seconds of a monotonic clock), and count it."""
        if now - self._started >= _WINDOW:
            self._before = self.requests if now - self._started < 2 * _WINDOW else 0
            self._started, self.requests, self._retries = now, 0, 0
        if self._retries >= max(self._floor, self._ratio * (self.requests + self._before)):
            return False
        self._retries += 1
        return True
