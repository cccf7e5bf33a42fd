"""maxSurge and maxUnavailable as counts, rounded as Kubernetes' Deployment does it.

https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#rolling-update-deployment
"""


def surge_count(max_surge: int | str, desired: int) -> int:
    """Instances of a role that may exist above `desired`; a percentage is rounded up."""
    return _count(max_surge, desired, round_up=True)


def unavailable_count(max_unavailable: int | str, max_surge: int | str, desired: int) -> int:
    """Instances of a role that may be missing; a percentage is rounded down. 1 where surge and it come to 0."""
    count = _count(max_unavailable, desired, round_up=False)
    if count == 0 and surge_count(max_surge, desired) == 0:
        return 1
    return min(count, desired) if desired else count


def _count(amount: int | str, desired: int, *, round_up: bool) -> int:
    if isinstance(amount, int):
        return amount
    percent = int(amount.removesuffix("%"))
    return (desired * percent + (99 if round_up else 0)) // 100
