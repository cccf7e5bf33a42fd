"""Rules about how large an object may be."""

from collections import Counter
from collections.abc import Iterator

from epd_operator.api.finding import Severity
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

KEPT_AT_MOST = 1 << 20
"""Bytes of what users add to all roles together. etcd takes 1.5 MiB (--max-request-bytes); the rest is for the objects
round it and for managed fields."""


@rule(
    id="object-too-large",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="Args, env and templates of all roles together are at most 1 MiB.",
    why="The operator keeps all that it made of an object in one ControllerRevision, which etcd would refuse.",
    source="etcd: --max-request-bytes is 1.5 MiB",
)
def too_large(wiring: Wiring) -> Iterator[Broken]:
    """More than etcd takes; told at the place that has most of it."""
    sizes: Counter[str] = Counter()
    for role, instance in wiring.instances.items():
        for word, path in zip(instance.words, instance.arg_paths, strict=True):
            sizes[path.partition("[")[0]] += len(word.encode())
        for entry in instance.env.values():
            sizes[entry.path.partition("[")[0]] += len((entry.variable.value or "").encode())
        if instance.spec.template is not None:
            sizes[f"spec.{role}.template"] += len(instance.spec.template.model_dump_json(exclude_none=True))
    if sizes.total() > KEPT_AT_MOST:
        path, size = sizes.most_common(1)[0]
        message = f"together with the other roles it is {sizes.total() >> 10} KiB, more than etcd takes in one object"
        yield Broken(path, f"{size >> 10} KiB", message, "move long values into a ConfigMap, or the image")


RULES = (too_large,)
