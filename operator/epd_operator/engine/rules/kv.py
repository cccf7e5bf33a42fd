"""Rules about the transfer of KV blocks."""

from collections.abc import Iterator

from epd_operator.api.finding import Severity
from epd_operator.api.role import Role
from epd_operator.engine.rules.known import unknown_connector
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring


@rule(
    id="kv-connector-unknown",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="The KV connector must exist in the release.",
    why='The engine ends with "Unsupported connector type", after the image pull.',
    source="vLLM distributed/kv_transfer/kv_connector/factory.py, each release",
    proved=True,
    needs_release=True,
)
def connector_unknown(wiring: Wiring) -> Iterator[Broken]:
    """A connector that the release's factory does not register."""
    choice = wiring.kv
    known = wiring.capabilities.kv_connectors
    if choice is None or choice.chosen or choice.connector in known:
        return
    words = unknown_connector(wiring, choice.connector, "KV", known)
    yield Broken("spec.transfer.kv.connector", choice.connector, *words)


@rule(
    id="prefill-decode-device",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="prefill and decode run on the same type of device.",
    why="KV blocks are device memory, laid out for one platform; the hand-shake fails or the output is wrong.",
    source="vLLM 0.33 kv_connector/v1/nixl/metadata.py (attention backend in the compatibility hash)",
)
def prefill_decode_device(wiring: Wiring) -> Iterator[Broken]:
    """Two types of device."""
    prefill, decode = wiring.instances.get(Role.PREFILL), wiring.instances.get(Role.DECODE)
    if prefill is None or decode is None or prefill.device_type is decode.device_type:
        return
    own = prefill if prefill.device_path.startswith("spec.prefill") else decode
    other = decode if own is prefill else prefill
    message = f"KV blocks are device memory, and {other.role} runs on {other.device_type}"
    yield Broken(own.device_path, own.device_type, message, "give prefill and decode the same device type")


@rule(
    id="kv-handshake-check-off",
    severity=Severity.WARNING,
    kind=Kind.SILENT,
    what="enforce_handshake_compat stays on.",
    why="Instances that do not fit then exchange blocks all the same: the output is wrong, without any error.",
    source="vLLM 0.28 to 0.33 kv_connector/v1/nixl/base_worker.py",
    proved=True,
)
def handshake_check_off(wiring: Wiring) -> Iterator[Broken]:
    """The check of NIXL's hand-shake, switched off."""
    choice = wiring.kv
    if choice is not None and choice.extra.get("enforce_handshake_compat") is False and "Nixl" in choice.connector:
        message = "blocks of instances that do not fit are then used all the same, and the output is wrong"
        yield Broken(f"{choice.path}.extraConfig.enforce_handshake_compat", False, message, "remove it")


RULES = (connector_unknown, prefill_decode_device, handshake_check_off)
