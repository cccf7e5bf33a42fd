"""Rules about the settings of ECMooncakeConnector, which vLLM checks when the engine starts."""

import math
from collections.abc import Iterator
from typing import Any

from epd_operator.api.finding import Severity
from epd_operator.api.role import Role
from epd_operator.engine import connectors
from epd_operator.engine.release import Release
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

SOURCE = "vLLM 0.30 to 0.33 ec_connector/mooncake/config.py"
_EXTRA = "spec.transfer.embeddings.extraConfig"
CROSS = "cross_encoder_cache"
CROSS_SINCE = Release(0, 31)
SECONDS = ("control_timeout_s", "push_wait_timeout_s")
COUNTS = ("store_max_pending_items", "store_max_pending_bytes")


def _positive_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        return math.isfinite(float(value)) and float(value) > 0
    except (ValueError, OverflowError):
        return False


def _positive_integer(value: Any) -> bool:
    return _positive_number(value) and float(value).is_integer()


@rule(
    id="mooncake-setting",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="Times and sizes among the settings of ECMooncakeConnector are above 0.",
    why="vLLM refuses to start.",
    source=SOURCE,
    since=Release(0, 30),
    proved=True,
    needs_release=True,
)
def setting(wiring: Wiring) -> Iterator[Broken]:
    """A time or a size that is none."""
    choice = wiring.embeddings_by(connectors.EC_MOONCAKE)
    known = wiring.capabilities.ec_connectors.get(connectors.EC_MOONCAKE, frozenset())
    for key in (*SECONDS, *COUNTS) if choice is not None else ():
        if choice is None or key not in choice.extra or key not in known:
            continue
        value = choice.extra[key]
        right = _positive_number(value) if key in SECONDS else _positive_integer(value)
        if not right:
            kind = "a number of seconds" if key in SECONDS else "a whole number"
            message = f"must be {kind} above 0 (vLLM refuses to start)"
            yield Broken(f"{_EXTRA}.{key}", value, message, "use another value, or remove it")


@rule(
    id="cross-encoder-cache",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="cross_encoder_cache is true or false, and true only with the V2 model runner, a processor cache and no LoRA.",
    why="vLLM refuses to start.",
    source=SOURCE,
    since=CROSS_SINCE,
    proved=True,
    needs_release=True,
)
def cross_encoder_cache(wiring: Wiring) -> Iterator[Broken]:
    """What the encoder lacks for it."""
    choice, encode = wiring.embeddings_by(connectors.EC_MOONCAKE), wiring.instances.get(Role.ENCODE)
    if choice is None or encode is None or CROSS not in choice.extra:
        return
    value = choice.extra[CROSS]
    runner = encode.env.get("VLLM_USE_V2_MODEL_RUNNER")
    reason = None
    if not isinstance(value, bool):
        reason = "must be true or false"
    elif value and runner is not None and runner.variable.value == "0":
        reason = "needs the V2 model runner, which VLLM_USE_V2_MODEL_RUNNER=0 switches off"
    elif value and encode.torch_device == "cpu":
        reason = "needs the V2 model runner, which a CPU device does not have"
    elif value and encode.user_value("--enable-lora"):
        reason = "does not go with --enable-lora"
    elif value and encode.user_value("--mm-processor-cache-gb") == 0:
        reason = "needs a processor cache, which --mm-processor-cache-gb 0 switches off"
    if reason is not None:
        yield Broken(f"{_EXTRA}.{CROSS}", value, f"{reason} (vLLM refuses to start)", "remove it, or what it excludes")


RULES = (setting, cross_encoder_cache)
