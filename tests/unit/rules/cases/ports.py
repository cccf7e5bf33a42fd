"""Cases of the rules about the ports of a pod."""

from tests.unit.rules.case import Breaks, Case, Spares

_ON = '"enable_kv_cache_events":true'
_PATH = "spec.prefill.args[0]"


def _events(fields: str, more: str = "") -> str:
    return f"prefill: {{args: ['{_value(fields)}']{more}}}"


def _value(fields: str) -> str:
    return f"--kv-events-config={{{fields}}}"


_NIXL = f'{_ON},"endpoint":"tcp://*:5600"'
_HTTP = f'{_ON},"replay_endpoint":"tcp://0.0.0.0:8000"'
_SECOND = f'{_ON},"endpoint":"tcp://*:5599"'
_SIDECAR = "prefill: {{template: {{spec: {{containers: [{{name: log, image: x, ports: [{{containerPort: {}}}]}}]}}}}}}"

CASES = (
    Case(
        "port-taken",
        (
            Breaks(_events(_NIXL), _PATH, _value(_NIXL), remedy="another port"),
            Breaks(_events(_HTTP), _PATH, _value(_HTTP)),
            Breaks(_events(_SECOND, ", parallelism: {data: 2}"), _PATH, _value(_SECOND)),
            Breaks(
                "decode: {env: [{name: VLLM_DP_MASTER_PORT, value: '8000'}]}",
                "spec.decode.env[0]",
                "VLLM_DP_MASTER_PORT=8000",
            ),
            Breaks(
                _SIDECAR.format(5600),
                "spec.prefill.template.spec.containers[0].ports[0]",
                {"containerPort": 5600},
            ),
        ),
        (
            Spares(_events(_ON)),
            Spares(_events(_SECOND)),
            Spares(_events('"enable_kv_cache_events":false,"endpoint":"tcp://*:5600"')),
            Spares(_events(f'{_ON},"endpoint":"tcp://collector:5600"')),
            Spares(_SIDECAR.format(9090)),
            Spares("decode: {env: [{name: VLLM_DP_MASTER_PORT, value: '29500'}]}"),
        ),
    ),
)
