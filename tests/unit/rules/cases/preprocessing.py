"""Cases of the rules about where media become tensors."""

from tests.unit.rules.case import Breaks, Case, Spares

_ON_CPU = "device: {type: CPU}, transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}"

CASES = (
    Case(
        "torch-shm-single-rank",
        (
            Breaks(
                "encode: {parallelism: {tensor: 2}, preprocessing: {tensorIPC: torch_shm}}",
                "spec.encode.parallelism.tensor",
                2,
                remedy="direct_rpc",
            ),
            Breaks(
                "encode: {parallelism: {pipeline: 4}, preprocessing: {tensorIPC: torch_shm}}",
                "spec.encode.parallelism.pipeline",
                4,
            ),
            Breaks(
                "encode: {parallelism: {data: 2}, preprocessing: {tensorIPC: torch_shm}}",
                "spec.encode.parallelism.data",
                2,
            ),
            Breaks(
                "encode: {parallelism: {tensor: 2, pipeline: 2}, preprocessing: {tensorIPC: torch_shm}}",
                "spec.encode.parallelism.tensor",
                2,
                remedy="tensor and pipeline to 1",
            ),
        ),
        (
            Spares("encode: {parallelism: {tensor: 2}}"),
            Spares("encode: {parallelism: {tensor: 2}, preprocessing: {tensorIPC: direct_rpc}}"),
            Spares("encode: {parallelism: {tensor: 1}, preprocessing: {tensorIPC: torch_shm}}"),
        ),
    ),
    Case(
        "torch-shm-spawn",
        (
            Breaks(
                "encode: {env: [{name: VLLM_WORKER_MULTIPROC_METHOD, value: fork}]}",
                "spec.encode.env[0]",
                "VLLM_WORKER_MULTIPROC_METHOD=fork",
            ),
            Breaks(
                "engine: {env: [{name: A, value: b}, {name: VLLM_WORKER_MULTIPROC_METHOD, value: forkserver}]}",
                "spec.engine.env[1]",
                "VLLM_WORKER_MULTIPROC_METHOD=forkserver",
            ),
        ),
        (
            Spares("encode: {env: [{name: VLLM_WORKER_MULTIPROC_METHOD, value: spawn}]}"),
            Spares("decode: {env: [{name: VLLM_WORKER_MULTIPROC_METHOD, value: fork}]}"),
            Spares(
                "encode: {preprocessing: {tensorIPC: direct_rpc},"
                " env: [{name: VLLM_WORKER_MULTIPROC_METHOD, value: fork}]}"
            ),
        ),
    ),
    Case(
        "preprocessing-off-encoder",
        (
            Breaks("decode: {preprocessing: {}}", "spec.decode.preprocessing", {}),
            Breaks("decode: {preprocessing: {device: CPU}}", "spec.decode.preprocessing", {"device": "CPU"}),
            Breaks(
                "prefill: {preprocessing: {tensorIPC: direct_rpc}}",
                "spec.prefill.preprocessing",
                {"tensorIPC": "direct_rpc"},
            ),
            Breaks(
                "prefill: {parallelism: {tensor: 2}, preprocessing: {tensorIPC: torch_shm}}",
                "spec.prefill.preprocessing.tensorIPC",
                "torch_shm",
            ),
            Breaks(
                "{model: {architecture: Qwen2ForCausalLM}, encode: <absent>, "
                "decode: {preprocessing: {device: Accelerator}}}",
                "spec.decode.preprocessing",
                {"device": "Accelerator"},
            ),
        ),
        (Spares("encode: {preprocessing: {device: CPU}}"),),
    ),
    Case(
        "accelerator-preprocessing-off-encoder",
        (
            Breaks("decode: {preprocessing: {device: Accelerator}}", "spec.decode.preprocessing.device", "Accelerator"),
            Breaks(
                "{encode: <absent>, decode: {preprocessing: {device: Accelerator, tensorIPC: torch_shm}}}",
                "spec.decode.preprocessing.device",
                "Accelerator",
            ),
        ),
        (
            Spares("encode: {preprocessing: {device: Accelerator}}"),
            Spares("encode: {preprocessing: {device: Accelerator, tensorIPC: direct_rpc}}"),
        ),
    ),
    Case(
        "accelerator-preprocessing-on-cpu",
        (
            Breaks(
                f"{{encode: {{preprocessing: {{device: Accelerator}}}}, {_ON_CPU}}}",
                "spec.encode.preprocessing.device",
                "Accelerator",
            ),
            Breaks(
                "encode: {device: {type: CPU}, preprocessing: {device: Accelerator}}",
                "spec.encode.preprocessing.device",
                "Accelerator",
            ),
        ),
        (Spares(f"{{encode: {{preprocessing: {{device: Auto}}}}, {_ON_CPU}}}"),),
    ),
    Case(
        "auto-preprocessing-on-cpu",
        (
            Breaks(
                "encode: {preprocessing: {device: Auto, tensorIPC: direct_rpc}}",
                "spec.encode.preprocessing.device",
                "Auto",
            ),
            Breaks(
                "encode: {parallelism: {tensor: 2}, preprocessing: {device: Auto}}",
                "spec.encode.preprocessing.device",
                "Auto",
            ),
        ),
        (
            Spares("encode: {preprocessing: {device: Auto}}"),
            Spares("encode: {preprocessing: {tensorIPC: direct_rpc}}"),
            Spares("encode: {preprocessing: {device: CPU, tensorIPC: direct_rpc}}"),
        ),
    ),
)
