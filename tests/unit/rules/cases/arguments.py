"""Cases of the rules about the flags that a user adds."""

from tests.unit.rules.case import Breaks, Case, Spares


def _args(*words: str) -> str:
    return "decode: {args: [" + ", ".join(f"'{word}'" for word in words) + "]}"


_PATH = "spec.decode.args[0]"

CASES = (
    Case(
        "args-clash-with-wiring",
        (
            Breaks(_args("--port=9000"), _PATH, "--port=9000"),
            Breaks(_args("--port", "9000"), _PATH, "--port 9000"),
            Breaks(_args("--max-model-len=4096", "--host", "0.0.0.0"), "spec.decode.args[1]", "--host 0.0.0.0"),
            Breaks(_args("--ec_transfer_config={}"), _PATH, "--ec_transfer_config={}", remedy="transfer.embeddings"),
            Breaks(_args("--ec-transfer-config.ec_role", "ec_both"), _PATH, "--ec-transfer-config.ec_role ec_both"),
            Breaks(_args("--kv_transfer_config.kv_role=kv_both"), _PATH, "--kv_transfer_config.kv_role=kv_both"),
            Breaks(_args("-tp", "2"), _PATH, "-tp 2", remedy="decode.parallelism.tensor"),
            Breaks(_args("--tensor_parallel_size", "2"), _PATH, "--tensor_parallel_size 2"),
            Breaks(_args("--tensor-par", "2"), _PATH, "--tensor-par 2"),
            Breaks(_args("-dp=2"), _PATH, "-dp=2"),
            Breaks(_args("--port"), _PATH, "--port"),
            Breaks(_args("--tensor-parallel-size=two"), _PATH, "--tensor-parallel-size=two"),
            Breaks(_args("--no-mm-encoder-only"), _PATH, "--no-mm-encoder-only"),
            Breaks(_args("--served-model-name", "a", "b"), _PATH, "--served-model-name a b"),
            Breaks(_args("--api-key=s3cret"), _PATH, "--api-key", remedy="apiKeysSecretRef"),
            Breaks("engine: {args: [--shutdown-timeout=3]}", "spec.engine.args[0]", "--shutdown-timeout=3"),
            Breaks("engine: {args: [-pp, '2']}", "spec.engine.args[0]", "-pp 2", remedy="<role>.parallelism.pipeline"),
            Breaks("encode: {args: [--mm-tensor-ipc=torch_shm]}", "spec.encode.args[0]", "--mm-tensor-ipc=torch_shm"),
        ),
        (
            Spares(_args("--max-model-len=4096", "--gpu-memory-utilization", "0.8")),
            Spares("encode: {args: [--max-num-batched-tokens=32768]}"),
            Spares(_args("--enable-prefix-caching")),
        ),
    ),
)
