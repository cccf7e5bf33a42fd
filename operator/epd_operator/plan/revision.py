"""The two hashes: the revision, of what all roles must agree on; the template hash, of everything else in a pod.

E, P and D of different revisions refuse each other or, worse, do not notice: vLLM's hand-shakes compare release, model
string, dtype, block size, attention backend and KV layout, but not the model's revision (vLLM 0.33 nixl/metadata.py,
ec_connector/cpu/protocol.py).
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from epd_operator.api.names import REVISION_LENGTH
from epd_operator.api.role import Role
from epd_operator.engine.command import model_argument, served_name
from epd_operator.engine.site import POD
from epd_operator.engine.transfer import embeddings_config, kv_config
from epd_operator.engine.wiring import Wiring
from epd_operator.plan.storage import embeddings_volume, kv_volume

COMPARED_FLAGS = (
    "--attention-backend",
    "--attention-config",
    "--block-size",
    "--config",
    "--disable-hybrid-kv-cache-manager",
    "--dtype",
    "--enable-lora",
    "--hf-config-path",
    "--hf-overrides",
    "--kv-cache-dtype",
    "--max-model-len",
    "--media-io-kwargs",
    "--mm-hasher-algorithm",
    "--mm-processor-kwargs",
    "--model-impl",
    "--quantization",
    "--speculative-config",
    "--tokenizer",
    "--tokenizer-mode",
    "--tokenizer-revision",
)
"""Flags whose value enters a hand-shake, a cache key or the numbers themselves: a change of one is a new revision."""
COMPARED_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "VLLM_KV_CACHE_LAYOUT", "VLLM_MM_HASHER_ALGORITHM")
"""Variables of the same kind; HF_HUB_OFFLINE turns a model id into a path, which is compared."""


def revision_of(wiring: Wiring, images: Mapping[Role, str]) -> str:
    """The revision: 8 hex digits. Replicas, proxy settings, labels and pod templates do not enter it."""
    return digest(compatibility(wiring, images))[:REVISION_LENGTH]


def compatibility(wiring: Wiring, images: Mapping[Role, str]) -> dict[str, Any]:
    """What all roles must agree on, as JSON."""
    volumes = [
        volume.persistent_volume_claim.claim_name if volume is not None else None
        for volume in (embeddings_volume(wiring), kv_volume(wiring))
    ]
    return {
        "release": str(wiring.release),
        "images": dict(images),
        "model": [model_argument(wiring), wiring.deployment.spec.model.revision, served_name(wiring)],
        "volumes": volumes,
        "roles": {role: _compared(wiring, role) for role in wiring.instances},
    }


def _compared(wiring: Wiring, role: Role) -> dict[str, Any]:
    instance = wiring.instances[role]
    written = {name: instance.env[name].variable for name in COMPARED_VARIABLES if name in instance.env}
    return {
        "device": instance.device_type,
        "embeddings": embeddings_config(wiring, instance, POD),
        "kv": kv_config(wiring, instance, POD),
        "flags": {name: value for name in COMPARED_FLAGS if (value := instance.user_value(name)) is not None},
        "env": {name: [variable.value, variable.value_from] for name, variable in written.items()},
    }


def digest(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form, as hex digits."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
