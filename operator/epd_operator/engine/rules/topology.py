"""Rules about which roles and transfers go together."""

from collections.abc import Iterator

from epd_operator.api.finding import Severity
from epd_operator.api.role import Role
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring


def _written(wiring: Wiring, role: Role) -> object:
    spec = wiring.deployment.spec.role(role)
    return spec.model_dump(mode="json", by_alias=True, exclude_none=True) if spec else None


@rule(
    id="encode-without-consumer",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="encode needs decode, or prefill and decode, to consume its embeddings.",
    why="An encoder answers no request by itself.",
    source="vLLM docs/features/disagg_encoder.md",
)
def encode_without_consumer(wiring: Wiring) -> Iterator[Broken]:
    """Encode alone."""
    if set(wiring.instances) == {Role.ENCODE}:
        message = "an encoder only makes embeddings, and no role consumes them"
        yield Broken("spec.encode", _written(wiring, Role.ENCODE), message, "add decode")


@rule(
    id="prefill-without-decode",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="prefill needs decode to consume its KV blocks.",
    why="A prefill instance produces one token and holds KV blocks that nobody fetches.",
    source="vLLM docs/features/disagg_prefill.md",
)
def prefill_without_decode(wiring: Wiring) -> Iterator[Broken]:
    """Prefill, with or without encode, and no decode."""
    if Role.PREFILL in wiring.instances and Role.DECODE not in wiring.instances:
        message = "prefill instances fill a KV cache that no role reads"
        yield Broken("spec.prefill", _written(wiring, Role.PREFILL), message, "add decode, or name this role decode")


@rule(
    id="decode-required",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="decode is required.",
    why="No other role answers requests.",
    source="the API of EPDDeployment",
)
def decode_required(wiring: Wiring) -> Iterator[Broken]:
    """No role at all."""
    if not wiring.instances:
        yield Broken("spec.decode", None, "is required: no other role answers requests", "add decode, {} for defaults")


@rule(
    id="kv-without-prefill",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="transfer.kv goes only with prefill.",
    why="There is no KV transfer without a prefill role; the setting would do nothing.",
    source="the API of EPDDeployment",
)
def kv_without_prefill(wiring: Wiring) -> Iterator[Broken]:
    """KV settings without a prefill role."""
    transfer = wiring.deployment.spec.transfer
    if transfer is None or transfer.kv is None or Role.PREFILL in wiring.instances:
        return
    connector = transfer.kv.connector
    path = "spec.transfer.kv.connector" if connector else "spec.transfer.kv"
    message = "without a prefill role nothing transfers KV blocks"
    value = connector or transfer.kv.model_dump(mode="json", by_alias=True, exclude_none=True)
    yield Broken(path, value, message, "add prefill or remove transfer.kv")


@rule(
    id="embeddings-without-encode",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="transfer.embeddings goes only with encode.",
    why="There is no embedding transfer without an encode role; the setting would do nothing.",
    source="the API of EPDDeployment",
)
def embeddings_without_encode(wiring: Wiring) -> Iterator[Broken]:
    """Embedding settings without an encode role; a volume alone may serve the KV transfer."""
    transfer = wiring.deployment.spec.transfer
    embeddings = transfer.embeddings if transfer else None
    if embeddings is None or Role.ENCODE in wiring.instances:
        return
    if embeddings.model_fields_set == {"volume"} and Role.PREFILL in wiring.instances:
        return
    path = "spec.transfer.embeddings.connector" if embeddings.connector else "spec.transfer.embeddings"
    value = embeddings.connector or embeddings.model_dump(mode="json", by_alias=True, exclude_none=True)
    message = "without an encode role nothing transfers embeddings"
    yield Broken(path, value, message, "add encode or remove transfer.embeddings")


@rule(
    id="role-scaled-to-zero",
    severity=Severity.WARNING,
    kind=Kind.ADVICE,
    what="A role with 0 replicas keeps the deployment from serving.",
    why="Every request visits every role; text visits all but encode.",
    source="the proxy's request path",
)
def role_scaled_to_zero(wiring: Wiring) -> Iterator[Broken]:
    """Replicas 0 as written, without suspend."""
    if wiring.deployment.spec.suspend:
        return
    for role, instance in wiring.instances.items():
        if instance.spec.replicas == 0:
            what = "requests with media" if role is Role.ENCODE else "requests"
            remedy = "set suspend: true to stop everything, or scaling to let an autoscaler decide"
            yield Broken(f"spec.{role}.replicas", 0, f"no {what} can be answered without this role", remedy)


RULES = (
    encode_without_consumer,
    prefill_without_decode,
    decode_required,
    kv_without_prefill,
    embeddings_without_encode,
    role_scaled_to_zero,
)
