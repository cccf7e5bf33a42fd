"""Random objects: every pair of role, topology, device, preprocessing, connector and parallelism comes up."""

import json
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epd_operator.engine.capabilities import Capabilities, Flag
from tests.conformance.arguments import random_argument, swept

DEVICES = 8
"""Of the pretended node: how many a real one has is a fact of the cluster."""
TEXT_SHARE = 0.1
"""Of objects with a model that vLLM registers without media; with encode they are always refused."""
MODEL_FLAGS = ("--max-model-len",)

EC_CONNECTORS = ("ECExampleConnector", "ECCPUConnector", "ECMooncakeConnector", "NopeConnector")
NOT_SWEPT_KV = {
    "LMCacheMPConnector": "imports a package that the test machine does not have",
    "MoRIIOConnector": "imports a package that the test machine does not have",
    "HiSparseConnector": "only for some models, which the test models are not",
}
CLAIM = {"persistentVolumeClaim": {"claimName": "shared"}}
DEGREES = (None, None, None, None, 1, 2, 4)
ENV = (
    ("VLLM_WORKER_MULTIPROC_METHOD", ("spawn", "fork", "forkserver")),
    ("VLLM_USE_V2_MODEL_RUNNER", ("0", "1")),
    ("VLLM_MEDIA_FETCH_MAX_RETRIES", ("0", "5")),
    ("VLLM_IMAGE_FETCH_TIMEOUT", ("5", "0")),
    ("VLLM_ATTENTION_BACKEND", ("FLASH_ATTN",)),
    ("NCCL_DEBUG", ("INFO",)),
)
DEVICES_IN_KWARGS = ("cuda", "cuda:1", "CUDA", "cpu", "CPU", "xpu", "junk", "auto", 0, None)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A random object, and whether the operator is given the model's config.json."""

    document: dict[str, Any]
    model: str
    known: bool


def random_object(rng: random.Random, capabilities: Capabilities, models: Mapping[str, str]) -> Drawn:
    """An object of the release. `models`: name of a test model -> its architecture."""
    known = rng.random() < 0.7
    multimodal = sorted(name for name in models if name != "text")
    model = "text" if known and rng.random() < TEXT_SHARE else rng.choice(multimodal)
    # Without the model's configuration nobody can know these.
    flags = [flag for flag in swept(capabilities) if known or flag.name not in MODEL_FLAGS]
    spec: dict[str, Any] = {"model": {"id": f"./{model}", "volume": CLAIM}}
    if rng.random() < 0.5:
        spec["model"]["architecture"] = models[model]
    spec["engine"] = {"version": capabilities.version}
    spec["device"] = {"type": rng.choice(("CUDA", "CUDA", "CUDA", "CPU"))}
    spec["decode"] = _role(rng, capabilities, flags, "decode")
    if rng.random() < 0.75:
        spec["encode"] = _role(rng, capabilities, flags, "encode")
        spec["transfer"] = {"embeddings": _embeddings(rng)}
    if rng.random() < 0.5:
        spec["prefill"] = _role(rng, capabilities, flags, "prefill")
        spec.setdefault("transfer", {})["kv"] = _kv(rng, capabilities)
    if rng.random() < 0.15:
        spec["engine"]["args"] = random_argument(rng, capabilities, flags)
    document = {"apiVersion": "epd.dev/v1alpha1", "kind": "EPDDeployment", "metadata": {"name": "swept"}, "spec": spec}
    return Drawn(document, model, known)


def _role(rng: random.Random, capabilities: Capabilities, flags: list[Flag], role: str) -> dict[str, Any]:
    names = ("tensor", "pipeline", "data")
    degrees = {name: degree for name in names if (degree := rng.choice(DEGREES)) is not None}
    while math.prod(degrees.values()) > DEVICES:
        degrees.popitem()
    spec: dict[str, Any] = {"parallelism": degrees} if degrees else {}
    if rng.random() < (0.7 if role == "encode" else 0.05):
        device = rng.choice((None, "Auto", "CPU", "Accelerator"))
        ipc = rng.choice((None, "torch_shm", "direct_rpc"))
        chosen = {"device": device, "tensorIPC": ipc}
        spec["preprocessing"] = {name: value for name, value in chosen.items() if value is not None}
    if rng.random() < 0.05:
        spec["device"] = {"type": rng.choice(("CUDA", "CPU"))}
    if rng.random() < 0.3:
        spec["args"] = random_argument(rng, capabilities, flags)
    elif rng.random() < 0.05:
        spec["args"] = ["--mm-processor-kwargs", _kwargs(rng)]
    if rng.random() < 0.15:
        name, values = rng.choice(ENV)
        spec["env"] = [{"name": name, "value": rng.choice(values)}]
    return spec


def _kwargs(rng: random.Random) -> str:
    return json.dumps({"device": rng.choice(DEVICES_IN_KWARGS)})


def _embeddings(rng: random.Random) -> dict[str, Any]:
    connector = rng.choice((None, *EC_CONNECTORS[:3] * 4, EC_CONNECTORS[3]))
    embeddings: dict[str, Any] = {}
    if connector is not None:
        embeddings["connector"] = connector
    if connector in (None, "ECExampleConnector"):
        embeddings["volume"] = CLAIM if rng.random() < 0.9 else None
    if connector == "ECMooncakeConnector" and rng.random() < 0.2:
        embeddings["extraConfig"] = {"cross_encoder_cache": True}
    if connector == "ECCPUConnector" and rng.random() < 0.1:
        embeddings["extraConfig"] = rng.choice(
            ({"ec_enable_nixl": False}, {"ec_cpu_bytes": rng.choice((0, -1, 1 << 30))})
        )
    return {name: value for name, value in embeddings.items() if value is not None}


def _kv(rng: random.Random, capabilities: Capabilities) -> dict[str, Any]:
    known = sorted(capabilities.kv_connectors.keys() - NOT_SWEPT_KV.keys())
    connector = rng.choice((None, None, "NixlConnector", "P2pNcclConnector", *known))
    kv: dict[str, Any] = {} if connector is None else {"connector": connector}
    if connector == "ExampleConnector":
        kv["volume"] = CLAIM
    if connector == "MultiConnector":
        kv["extraConfig"] = {"connectors": [{"kv_connector": "NixlConnector", "kv_role": "kv_both"}]}
    return kv
