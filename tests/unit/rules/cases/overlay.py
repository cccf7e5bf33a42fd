"""Cases of the rules about the overlays on pods."""

from tests.unit.rules.case import Breaks, Case, Spares

_SPEC = "spec.decode.template.spec"

CASES = (
    Case(
        "template-clash-with-wiring",
        (
            Breaks("decode: {template: {spec: {hostNetwork: true}}}", f"{_SPEC}.hostNetwork", True),
            Breaks(
                "decode: {template: {spec: {containers: [{name: engine, command: [sh]}]}}}",
                f"{_SPEC}.containers[0].command",
                ["sh"],
            ),
            Breaks(
                "decode: {template: {metadata: {labels: {app.kubernetes.io/instance: x}}}}",
                "spec.decode.template.metadata.labels",
                "app.kubernetes.io/instance",
            ),
            Breaks(
                "proxy: {template: {spec: {serviceAccountName: x}}}", "spec.proxy.template.spec.serviceAccountName", "x"
            ),
        ),
        (
            Spares("decode: {template: {spec: {nodeSelector: {a: b}, containers: [{name: sidecar, image: x}]}}}"),
            Spares("decode: {template: {metadata: {labels: {team: vision}}}}"),
        ),
    ),
    Case(
        "template-malformed",
        (
            Breaks("decode: {template: {spec: {volumes: {a: b}}}}", f"{_SPEC}.volumes", {"a": "b"}),
            Breaks("decode: {template: {spec: {containers: [{image: x}]}}}", f"{_SPEC}.containers[0]", {"image": "x"}),
        ),
        (Spares("decode: {template: {spec: {volumes: [{name: a, emptyDir: {}}]}}}"),),
    ),
)
