"""Cases of the rule about the size of an object."""

from tests.unit.rules.case import Breaks, Case, Spares


def _affinity(terms: int) -> str:
    """A template that repeats itself: 10 KiB for each term."""
    expression = f"&e {{key: zone, operator: In, values: [&v {'z' * 256}, *v, *v, *v]}}"
    term = f"&t {{matchExpressions: [{expression}{', *e' * 9}]}}"
    required = f"{{nodeSelectorTerms: [{term}{', *t' * (terms - 1)}]}}"
    return (
        f"decode: {{template: {{spec: {{affinity: {{nodeAffinity: "
        f"{{requiredDuringSchedulingIgnoredDuringExecution: {required}}}}}}}}}}}"
    )


CASES = (
    Case(
        "object-too-large",
        (Breaks(_affinity(100), "spec.decode.template", "1055 KiB", remedy="ConfigMap"),),
        (Spares(_affinity(90)),),
    ),
)
