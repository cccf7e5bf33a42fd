"""Measurements side by side, as a Markdown table. Pure."""

from collections.abc import Callable, Mapping

from benchmarks.operator.phase import Cost

Costs = Mapping[str, Cost]
Row = tuple[str, Callable[[Costs, int], str]]


def table(runs: Mapping[str, tuple[int, Costs]]) -> str:
    """`runs`: by title the number of objects and what each phase cost."""
    rows = ["| | " + " | ".join(runs) + " |", "|---" * (len(runs) + 1) + "|"]
    for title, cell in (*_ROWS, *_requests(runs)):
        cells = [cell(costs, count) for count, costs in runs.values()]
        rows.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _each(phase: str, of: Callable[[Cost], float], form: str = ".1f") -> Callable[[Costs, int], str]:
    return lambda costs, count: format(of(costs[phase]) / count, form)


def _time(phase: str, what: str) -> Callable[[Costs, int], str]:
    return lambda costs, _: "{p50:.2f} / {p99:.2f} / {max:.2f}".format(**costs[phase].times[what])


def _total(cost: Cost) -> int:
    return sum(cost.requests.values())


def _requests(runs: Mapping[str, tuple[int, Costs]]) -> list[Row]:
    """A row for each verb and resource of the creation."""
    found: dict[str, None] = {}
    for _, costs in runs.values():
        found |= dict.fromkeys(costs["create"].requests)

    def row(what: str) -> Row:
        return f"... {what}", lambda costs, count: f"{costs['create'].requests.get(what, 0) / count:.2f}"

    return [row(what) for what in found]


_ROWS: tuple[Row, ...] = (
    ("create: CPU, ms an object", _each("create", lambda cost: cost.cpu_s * 1000, ".0f")),
    ("create: all ready and quiet, s", lambda costs, _: f"{costs['create'].seconds:.0f}"),
    ("create: apply to ready, s, p50 / p99 / max", _time("create", "ready")),
    ("create: peak RSS, MiB", lambda costs, _: f"{costs['create'].peak_mib:.0f}"),
    ("idle: CPU, ms a minute", lambda costs, _: f"{costs['idle'].cpu_s / costs['idle'].seconds * 60e3:.0f}"),
    ("idle: writes but for the Lease", lambda costs, _: str(costs["idle"].writes)),
    ("change: to the first write, s, p50 / p99 / max", _time("change", "first write")),
    ("change: to ready, s, p50 / p99 / max", _time("change", "ready")),
    ("restart: CPU, s", lambda costs, _: f"{costs['restart'].cpu_s:.1f}"),
    ("restart: requests; writes", lambda costs, _: f"{_total(costs['restart'])}; {costs['restart'].writes}"),
    ("restart: peak RSS, MiB", lambda costs, _: f"{costs['restart'].peak_mib:.0f}"),
    ("delete: CPU, ms an object", _each("delete", lambda cost: cost.cpu_s * 1000, ".0f")),
    ("delete: requests an object", _each("delete", _total)),
    ("delete: all gone and quiet, s", lambda costs, _: f"{costs['delete'].seconds:.0f}"),
    ("load at the create's begin and end", lambda costs, _: "{:.1f} {:.1f}".format(*costs["create"].load)),
    ("create: requests an object", _each("create", _total)),
    ("... refused", _each("create", lambda cost: cost.refused)),
)
