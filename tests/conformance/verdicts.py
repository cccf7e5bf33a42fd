"""Combinations whose verdict is known for every release, as the real vLLM gave it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

RELEASES = ("0.28", "0.29", "0.30", "0.31", "0.32", "0.33")
SPAWN = {"VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
SHM = ("--mm-tensor-ipc", "torch_shm")
ON_CUDA = ("--mm-processor-device", "cuda")


def since(release: str) -> frozenset[str]:
    """This release and the later ones."""
    return frozenset(RELEASES[RELEASES.index(release) :])


EVERY = since("0.28")
NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Case:
    """One combination on CUDA devices."""

    name: str
    args: tuple[str, ...]
    accepted: frozenset[str] = EVERY
    """Releases that accept it."""
    says: str = ""
    """Part of what the newest release that refuses it says."""
    env: Mapping[str, str] = field(default_factory=dict)
    model: str = "qwen2-vl"


def ec(role: str | None, connector: str | None = "ECExampleConnector", /, **config: Any) -> tuple[str, ...]:
    """An embeddings configuration; `extra` is the connector's own part."""
    extra = config.pop("extra", None)
    given = {"ec_role": role, "ec_connector": connector, **config, "ec_connector_extra_config": extra}
    return ("--ec-transfer-config", json.dumps({key: value for key, value in given.items() if value is not None}))


def kv(role: str | None, connector: str = "NixlConnector", **config: Any) -> tuple[str, ...]:
    """A KV configuration."""
    given = {"kv_role": role, "kv_connector": connector, **config}
    return ("--kv-transfer-config", json.dumps({key: value for key, value in given.items() if value is not None}))


PRODUCER = ec("ec_producer")
CONSUMER = ec("ec_consumer")
MOONCAKE = "ECMooncakeConnector"
CROSS = {"cross_encoder_cache": True}
CPU = {"ec_cpu_bytes": 1 << 30}
ALSO_RUNS = "this instance also runs the language model"
SINGLE = "mm_tensor_ipc='torch_shm' is not supported with"

CASES = (
    Case("mono", ()),
    Case("encoder plain", PRODUCER),
    Case("encoder, prefix caching left on", (*PRODUCER, "--enable-prefix-caching")),
    Case("encoder torch_shm no spawn", (*PRODUCER, *SHM), NONE, "torch_shm is known to fail without VLLM_WORKER"),
    Case("encoder torch_shm spawn", (*PRODUCER, *SHM), env=SPAWN),
    Case("encoder torch_shm spawn device=cuda", (*PRODUCER, *SHM, *ON_CUDA), env=SPAWN),
    Case("encoder direct_rpc device=cuda", (*PRODUCER, *ON_CUDA)),
    Case("encoder device=gpu", (*PRODUCER, "--mm-processor-device", "gpu"), NONE, "invalid choice: 'gpu'"),
    Case("mono device=cuda", ON_CUDA, NONE, ALSO_RUNS),
    Case("mono kwargs device=cuda", ("--mm-processor-kwargs", '{"device":"cuda"}'), NONE, ALSO_RUNS),
    Case("mono kwargs device=junk", ("--mm-processor-kwargs", '{"device":"junk"}'), NONE, 'Invalid "device"'),
    Case("consumer device=cuda", (*CONSUMER, *ON_CUDA), NONE, ALSO_RUNS),
    Case("ec_both device=cuda", (*ec("ec_both"), *ON_CUDA), NONE, ALSO_RUNS),
    Case("torch_shm TP2", (*PRODUCER, *SHM, "-tp", "2"), NONE, SINGLE, SPAWN),
    Case("torch_shm DP2", (*PRODUCER, *SHM, "-dp", "2"), NONE, SINGLE, SPAWN),
    Case("torch_shm PP2", (*PRODUCER, *SHM, "-pp", "2"), NONE, SINGLE, SPAWN),
    Case("torch_shm api-server-count 2", (*PRODUCER, *SHM, "--api-server-count", "2"), env=SPAWN),
    Case("bad mm-tensor-ipc", ("--mm-tensor-ipc", "cuda_ipc"), NONE, "invalid choice: 'cuda_ipc'"),
    Case("TP2 mono", ("-tp", "2")),
    Case("TP4 mono (2 heads)", ("-tp", "4"), NONE, "must be divisible by tensor parallel size"),
    Case("ec connector without role", ec(None), NONE, "Please specify ec_role"),
    Case("ec role without connector", ec("ec_producer", None)),
    Case("ec bad role", ec("encoder"), NONE, "Input should be 'ec_producer'"),
    Case("ec unknown field", ec("ec_producer", foo=1), NONE, "foo Unexpected keyword argument"),
    Case("ec widths set by a user", ec("ec_producer", mm_encoder_output_widths={}), NONE, "Unexpected keyword"),
    Case("ec not json", ("--ec-transfer-config", "{ec_role}"), NONE, "Invalid JSON"),
    Case("ec unknown connector", ec("ec_producer", "NopeConnector"), NONE, "Unsupported connector type"),
    Case("ec rank", ec("ec_producer", ec_rank=0), EVERY - since("0.32"), "Unexpected keyword argument"),
    Case("kv rank", kv("kv_both", kv_rank=0), EVERY - since("0.32"), "Unexpected keyword argument"),
    Case("ECCPU no ec_cpu_bytes", ec("ec_producer", "ECCPUConnector"), NONE, "ec_cpu_bytes must be specified"),
    Case("ECCPU ok", ec("ec_producer", "ECCPUConnector", extra=CPU)),
    Case(
        "ECCPU with V2 off",
        ec("ec_producer", "ECCPUConnector", extra=CPU),
        EVERY - since("0.30"),
        "requires the V2 model runner",
        {"VLLM_USE_V2_MODEL_RUNNER": "0"},
    ),
    Case("Mooncake ok", ec("ec_producer", MOONCAKE), since("0.30")),
    Case("Mooncake consumer TP2", (*ec("ec_consumer", MOONCAKE), "-tp", "2"), since("0.30")),
    Case("Mooncake producer TP2", (*ec("ec_producer", MOONCAKE), "-tp", "2"), NONE, "require tensor_parallel_size=1"),
    Case("Mooncake producer DP2", (*ec("ec_producer", MOONCAKE), "-dp", "2"), NONE, "require data_parallel_size=1"),
    Case("Mooncake producer PP2", (*ec("ec_producer", MOONCAKE), "-pp", "2"), NONE, "do not support pipeline"),
    Case("Mooncake port 0", ec("ec_producer", MOONCAKE, ec_port=0), NONE, "ec_port must be in 1..65535"),
    Case(
        "Mooncake cross_encoder_cache on consumer",
        ec("ec_consumer", MOONCAKE, extra=CROSS),
        frozenset({"0.30"}),
        "cross_encoder_cache requires an Encoder-only producer",
    ),
    Case(
        "Mooncake cross_encoder_cache, no processor cache",
        (*ec("ec_producer", MOONCAKE, extra=CROSS), "--mm-processor-cache-gb", "0"),
        frozenset({"0.30"}),
        "cross_encoder_cache requires mm_processor_cache_gb > 0",
    ),
    Case("text model ec_producer", PRODUCER, frozenset({"0.28"}), "requires a multimodal model", model="text"),
    Case("text model ec_consumer", CONSUMER, model="text"),
    Case("text model mm-encoder-only", ("--mm-encoder-only",), model="text"),
    Case("mm-encoder-only without ec", ("--mm-encoder-only",)),
    Case("language-model-only + ec_producer", (*PRODUCER, "--language-model-only")),
    Case("image limit 0 + ec_producer", (*PRODUCER, "--limit-mm-per-prompt", '{"image":0}')),
    Case("video only", ("--limit-mm-per-prompt", '{"image":0,"video":1}')),
    Case("kv unknown connector", kv("kv_both", "Nope"), NONE, "Unsupported connector type: Nope"),
    Case("kv no role", kv(None), NONE, "Please specify kv_role"),
    Case("kv bad role", kv("prefill"), NONE, "Input should be 'kv_producer'"),
    Case("kv nixl producer", kv("kv_producer")),
    Case("P2pNccl", kv("kv_both", "P2pNcclConnector"), NONE, "Unsupported connector type"),
    Case("MooncakeConnector kv", kv("kv_both", "MooncakeConnector")),
    Case("Multi", (*CONSUMER, *kv("kv_both", "MultiConnector", kv_connector_extra_config={"connectors": []}))),
    Case("ec consumer + kv producer", (*CONSUMER, *kv("kv_producer"))),
    Case("ec producer + kv consumer", (*PRODUCER, *kv("kv_consumer"))),
    Case("ec_both + kv_both nixl", (*ec("ec_both"), *kv("kv_both"))),
    Case("kv_consumer only", kv("kv_consumer")),
    Case("kv_consumer language-model-only", (*kv("kv_consumer"), "--language-model-only")),
    Case("PP2 mono", ("-pp", "2")),
    Case("NixlConnector PP2", (*kv("kv_both"), "-pp", "2")),
    Case("DP2 encoder", (*PRODUCER, "-dp", "2")),
    Case("TP2 encoder", (*PRODUCER, "-tp", "2")),
    Case("encoder PP2", (*PRODUCER, "-pp", "2")),
    Case("enable-mm-embeds on encoder", (*PRODUCER, "--enable-mm-embeds")),
    Case("encoder with dbo", (*PRODUCER, "--enable-dbo"), NONE, "Microbatching currently only supports"),
    Case(
        "small budget without chunks",
        ("--max-model-len", "2048", "--max-num-batched-tokens", "64", "--no-enable-chunked-prefill"),
        NONE,
        "is smaller than max_model_len (2048)",
    ),
    Case("encoder, small budget", (*PRODUCER, "--max-num-batched-tokens", "64")),
    Case("no chunked media, small budget", ("--disable-chunked-mm-input", "--max-num-batched-tokens", "64")),
    Case("cache gb 0 + shm", ("--mm-processor-cache-gb", "0", "--mm-processor-cache-type", "shm")),
    Case("shm size without shm", ("--mm-shm-cache-max-object-size-mb", "64"), NONE, "should only be set when"),
    Case("max-model-len above the model's", ("--max-model-len", "100000"), NONE, "is greater than the derived"),
    Case("gpu-memory-utilization 1.2", ("--gpu-memory-utilization", "1.2"), NONE, "less than or equal to 1"),
    Case("unknown flag", ("--no-such-flag",), NONE, "unrecognized arguments: --no-such-flag"),
    Case("mm-encoder-tp-mode data TP2", ("--mm-encoder-tp-mode", "data", "-tp", "2")),
    Case("TP16 on 8 devices", ("-tp", "16"), NONE, "larger than the number of available GPUs (8)", model="qwen2-vl-16"),
)
