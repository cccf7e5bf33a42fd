"""How instances end."""

import pytest

from epd_operator.api.role import Role
from epd_operator.engine.drain import MARGIN, ROUTING, drain_of
from tests.unit.objects import wiring

FILES = "transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}"


@pytest.mark.parametrize(
    ("spec", "role", "linger", "shutdown"),
    [
        ("", Role.ENCODE, 60, 120),
        (FILES, Role.ENCODE, 0, 120),
        ("transfer: {embeddings: {connector: ECMooncakeConnector}}", Role.ENCODE, 60, 120),
        ("", Role.DECODE, 0, 600),
        ("prefill: {}", Role.PREFILL, 30, 120),
        ("{prefill: {}, transfer: {kv: {extraConfig: {kv_lease_duration: 90}}}}", Role.PREFILL, 90, 120),
        ("{prefill: {}, transfer: {kv: {extraConfig: {kv_lease_duration: forever}}}}", Role.PREFILL, 30, 120),
        ("{prefill: {}, transfer: {kv: {extraConfig: {kv_lease_duration: 99999}}}}", Role.PREFILL, 30, 120),
        ("{prefill: {}, transfer: {kv: {connector: MooncakeConnector}}}", Role.PREFILL, 60, 120),
        ("{prefill: {}, transfer: {kv: {connector: LMCacheConnectorV1}}}", Role.PREFILL, 60, 120),
        ("prefill: {}", Role.DECODE, 0, 600),
        ("decode: {drainTimeoutSeconds: 7}", Role.DECODE, 0, 7),
        ("decode: {drainTimeoutSeconds: 0}", Role.DECODE, 0, 1),
    ],
)
def test_times(spec: str, role: Role, linger: int, shutdown: int) -> None:
    drain = drain_of(wiring(spec), role)
    assert drain.pre_stop_seconds == ROUTING + linger
    assert drain.shutdown_timeout_seconds == shutdown
    assert drain.grace_seconds == ROUTING + linger + shutdown + MARGIN
