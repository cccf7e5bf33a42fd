"""What the outcomes of requests say about one fault. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.e2e.faults.load import Outcome

SPREAD_SECONDS = 3.0
"""How long after a proxy was killed its Service may still lead to it: until the kubelet and kube-proxy have noticed."""
HEAD = ("fault", "sent", "failed", "wrong", "longest gap, s", "p99, s")


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    name: str
    sent: int
    failed: int
    wrong: int
    gap: float
    """Longest time without a good answer, in seconds."""
    p99: float
    """Of the good answers' times, in seconds."""
    complaints: tuple[str, ...] = ()
    """What should not have been seen."""

    @property
    def cells(self) -> tuple[str, ...]:
        """As text, in the order of HEAD."""
        return (self.name, str(self.sent), str(self.failed), str(self.wrong), f"{self.gap:.1f}", f"{self.p99:.1f}")


def judge(
    name: str, outcomes: Sequence[Outcome], strike: tuple[float, float], *, may_fail: bool, may_break: bool
) -> Result:
    """Count, and complain: of wrong answers, of failures without a kill, and of others than those in flight then.

    `strike`: when the kill began and was done, on the outcomes' clock. Raises ValueError: there are no good answers.
    """
    failed = [outcome for outcome in outcomes if outcome.error]
    wrong = sum(outcome.wrong for outcome in outcomes)
    good = sorted((one for one in outcomes if not one.error and not one.wrong), key=lambda one: one.ended)
    if len(good) < 2:
        raise ValueError(f"{name}: {len(good)} good answers of {len(outcomes)}")
    ends = [outcome.ended for outcome in good]
    times = sorted(outcome.ended - outcome.begun for outcome in good)
    complaints = [f"{wrong} answers are wrong"] if wrong else []
    for text, count in Counter(_complaint(outcome, strike, may_fail, may_break) for outcome in failed).items():
        complaints += [f"{count}: {text}"] if text else []
    return Result(
        name,
        sent=len(outcomes),
        failed=len(failed),
        wrong=wrong,
        gap=max(after - before for before, after in pairwise(ends)),
        p99=times[min(len(times) - 1, len(times) * 99 // 100)],
        complaints=tuple(complaints),
    )


def _complaint(outcome: Outcome, strike: tuple[float, float], may_fail: bool, may_break: bool) -> str:
    if not may_fail:
        return f"a planned change failed a request: {outcome.error}"
    if not outcome.told and not may_break:
        return f"an error without OpenAI's words: {outcome.error}"
    begun, done = strike
    if outcome.ended < begun or outcome.begun > done + (SPREAD_SECONDS if may_break else 0):
        return f"a request failed that was not in flight at the kill: {outcome.error}"
    return ""


def table(results: Sequence[Result]) -> str:
    """Markdown."""
    lines = [HEAD, tuple("---" for _ in HEAD), *(result.cells for result in results)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
