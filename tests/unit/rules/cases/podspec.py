"""Cases of the rules about the fields of the overlays on pods."""

from tests.unit.rules.case import Breaks, Case, Spares

_SPEC = "spec.decode.template.spec"


def _template(spec: str) -> str:
    return f"decode: {{template: {{spec: {spec}}}}}"


_PROBE = "{containers: [{name: engine, readinessProbe: {httpGet: {path: /ready}}}]}"

CASES = (
    Case(
        "template-field-misspelled",
        (
            Breaks(_template("{nodeSelektor: {a: b}}"), f"{_SPEC}.nodeSelektor", {"a": "b"}, remedy="nodeSelector"),
            Breaks(
                _template("{containers: [{name: log, image: x, enviroment: []}]}"),
                f"{_SPEC}.containers[0].enviroment",
                [],
                remedy="env",
            ),
            Breaks("proxy: {template: {spec: {toleration: []}}}", "spec.proxy.template.spec.toleration", []),
        ),
        (
            Spares(_template("{nodeSelector: {nodeSelektor: b}}")),
            Spares(_template("{volumes: [{name: a, csi: {driver: d, volumeAttributes: {any: thing}}}]}")),
        ),
    ),
    Case(
        "template-field-unknown",
        (Breaks(_template("{quux: 1}"), f"{_SPEC}.quux", 1, remedy="newer"),),
        (Spares(_template("{priorityClassName: x, hostAliases: null}")),),
    ),
    Case(
        "template-field-value",
        (
            Breaks(_template("{nodeSelector: a}"), f"{_SPEC}.nodeSelector", "a", remedy="object"),
            Breaks(_template("{nodeSelector: {a: true}}"), f"{_SPEC}.nodeSelector.a", True, remedy="text"),
            Breaks(_template("{priority: high}"), f"{_SPEC}.priority", "high", remedy="whole number"),
            Breaks(_template("{tolerations: {}}"), f"{_SPEC}.tolerations", {}, remedy="list"),
            Breaks(_template("{containers: [{name: log}]}"), f"{_SPEC}.containers[0]", {"name": "log"}, remedy="image"),
            Breaks(
                _template("{containers: [{name: log, image: x, livenessProbe: {httpGet: {path: /}}}]}"),
                f"{_SPEC}.containers[0].livenessProbe.httpGet",
                {"path": "/"},
                remedy="port",
            ),
        ),
        (
            Spares(_template("{priority: 1, containers: [{name: log, image: x}]}")),
            Spares(_template("{volumes: [{name: a, emptyDir: {sizeLimit: 1}}]}")),
            Spares(_template("{containers: [{name: log, image: x, livenessProbe: {httpGet: {port: web}}}]}")),
            Spares(_template(_PROBE)),
        ),
    ),
)
