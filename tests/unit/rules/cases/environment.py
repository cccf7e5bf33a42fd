"""Cases of the rules about the environment."""

from tests.unit.rules.case import Breaks, Case, Spares

_POD_IP = "valueFrom: {fieldRef: {fieldPath: status.podIP}}"
_V2 = (
    "engine: {{version: 0.32.0}}\ndevice: {{type: CPU}}\nencode: <absent>\n"
    "decode: {{env: [{{name: VLLM_USE_V2_MODEL_RUNNER, value: '{}'}}]}}"
)

CASES = (
    Case(
        "env-clash-with-wiring",
        (
            Breaks(
                "encode: {env: [{name: VLLM_EC_SIDE_CHANNEL_HOST, value: 0.0.0.0}]}",
                "spec.encode.env[0]",
                "VLLM_EC_SIDE_CHANNEL_HOST=0.0.0.0",
            ),
            Breaks(
                "engine: {env: [{name: VLLM_EC_SIDE_CHANNEL_PORT, value: '5601'}]}",
                "spec.engine.env[0]",
                "VLLM_EC_SIDE_CHANNEL_PORT=5601",
            ),
            Breaks(
                "{prefill: {}, engine: {env: [{name: VLLM_NIXL_SIDE_CHANNEL_HOST, value: localhost}]}}",
                "spec.engine.env[0]",
                "VLLM_NIXL_SIDE_CHANNEL_HOST=localhost",
            ),
            Breaks("engine: {env: [{name: VLLM_API_KEY, value: s3cret}]}", "spec.engine.env[0]", "VLLM_API_KEY"),
            Breaks(
                f"engine: {{env: [{{name: VLLM_API_KEY, {_POD_IP}}}]}}",
                "spec.engine.env[0]",
                "VLLM_API_KEY",
            ),
        ),
        (
            Spares("decode: {env: [{name: VLLM_NIXL_SIDE_CHANNEL_HOST, value: localhost}]}"),
            Spares("engine: {env: [{name: VLLM_EC_SIDE_CHANNEL_PORT, value: '5500'}]}"),
            Spares(f"engine: {{env: [{{name: VLLM_EC_SIDE_CHANNEL_HOST, {_POD_IP}}}]}}"),
            Spares("engine: {env: [{name: HF_HOME, value: /elsewhere}]}"),
        ),
    ),
    Case(
        "env-forbidden",
        (
            Breaks("engine: {env: [{name: VLLM_PORT, value: '8000'}]}", "spec.engine.env[0]", "VLLM_PORT=8000"),
            Breaks(
                "decode: {env: [{name: VLLM_SERVER_DEV_MODE, value: '1'}]}",
                "spec.decode.env[0]",
                "VLLM_SERVER_DEV_MODE=1",
            ),
        ),
        (Spares("decode: {env: [{name: VLLM_SERVER_DEV_MODE, value: '0'}]}"),),
    ),
    Case(
        "env-value-and-source",
        (Breaks(f"engine: {{env: [{{name: A, value: a, {_POD_IP}}}]}}", "spec.engine.env[0]", "A"),),
        (Spares(f"engine: {{env: [{{name: A, {_POD_IP}}}]}}"), Spares("engine: {env: [{name: A}]}")),
    ),
    Case(
        "v2-runner-on-cpu",
        (
            Breaks(
                _V2.format(1),
                "spec.decode.env[0]",
                "VLLM_USE_V2_MODEL_RUNNER=1",
            ),
        ),
        (
            Spares("decode: {env: [{name: VLLM_USE_V2_MODEL_RUNNER, value: '1'}]}"),
            Spares(_V2.format(0)),
            Spares(_V2.replace("0.32.0", "0.33.0").format(1)),
        ),
    ),
    Case(
        "env-source-malformed",
        (
            Breaks("decode: {env: [{name: A, valueFrom: {}}]}", "spec.decode.env[0].valueFrom", {}),
            Breaks("engine: {env: [{name: A, valueFrom: {a: b}}]}", "spec.engine.env[0].valueFrom", {"a": "b"}),
            Breaks(
                "decode: {env: [{name: A, valueFrom: {fieldRef: {fieldPath: a}, secretKeyRef: {name: a, key: b}}}]}",
                "spec.decode.env[0].valueFrom",
                {"fieldRef": {"fieldPath": "a"}, "secretKeyRef": {"name": "a", "key": "b"}},
            ),
            Breaks(
                "decode: {env: [{name: A, valueFrom: {secretKeyRef: token}}]}",
                "spec.decode.env[0].valueFrom.secretKeyRef",
                "token",
                remedy="write {name: ..., key: ...}",
            ),
            Breaks(
                "decode: {env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: 1}}}]}",
                "spec.decode.env[0].valueFrom.secretKeyRef",
                {"name": "a", "key": 1},
            ),
        ),
        (
            Spares("decode: {env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b, optional: true}}}]}"),
            Spares("decode: {env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1}}}]}"),
        ),
    ),
    Case(
        "env-unknown",
        (
            Breaks(
                "engine: {env: [{name: VLLM_IMAGE_FETCH_TIMEOT, value: '9'}]}",
                "spec.engine.env[0]",
                "VLLM_IMAGE_FETCH_TIMEOT",
                remedy="VLLM_IMAGE_FETCH_TIMEOUT",
            ),
        ),
        (
            Spares("engine: {env: [{name: VLLM_IMAGE_FETCH_TIMEOUT, value: '9'}]}"),
            Spares("engine: {env: [{name: MY_VLLM_THING, value: '9'}]}"),
        ),
    ),
    Case(
        "env-unknown-refused",
        (
            Breaks(
                "decode: {args: [--fail-on-environ-validation], env: [{name: VLLM_IMAGE_FETCH_TIMEOT, value: '9'}]}",
                "spec.decode.env[0]",
                "VLLM_IMAGE_FETCH_TIMEOT",
                remedy="VLLM_IMAGE_FETCH_TIMEOUT",
            ),
        ),
        (
            Spares(
                "decode: {args: [--fail-on-environ-validation], env: [{name: VLLM_IMAGE_FETCH_TIMEOUT, value: '9'}]}"
            ),
            Spares("decode: {args: [--fail-on-environ-validation], env: [{name: MY_VLLM_THING, value: '9'}]}"),
        ),
    ),
)
