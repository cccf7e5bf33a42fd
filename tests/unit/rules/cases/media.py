"""Cases of the rules about how roles treat media."""

from tests.unit.rules.case import Breaks, Case, Spares

_ENCODE, _DECODE = "spec.encode.args[0]", "spec.decode.args[0]"
_IO = '--media-io-kwargs={"video":{"num_frames":8}}'
_GRAPHS = '--compilation-config={"cudagraph_mm_encoder":true}'
_LIMIT = '--limit-mm-per-prompt={"image":0}'


def _args(role: str, word: str, version: str = "0.33.0") -> str:
    return f"engine: {{version: {version}}}\n{role}: {{args: ['{word}']}}"


def _old(text: str) -> str:
    """The same with files as the connector of embeddings, which every release has."""
    return text + "\ntransfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: c}}}}"


CASES = (
    Case(
        "encoder-takes-no-media",
        (
            Breaks(_args("encode", "--language-model-only"), _ENCODE, "--language-model-only"),
            Breaks(_args("encode", _LIMIT), _ENCODE, _LIMIT, remedy="raise image"),
        ),
        (
            Spares(f"encode: {{args: ['{_LIMIT}']}}\ndecode: {{args: ['{_LIMIT}']}}"),
            Spares("encode: {args: ['--limit-mm-per-prompt={\"image\":4}']}"),
            Spares(_args("encode", "--no-language-model-only")),
        ),
    ),
    Case(
        "decode-language-model-only",
        (Breaks(_args("decode", "--language-model-only") + "\nprefill: {}", _DECODE, "--language-model-only"),),
        (
            Spares(_args("decode", "--language-model-only", "0.32.0") + "\nprefill: {}"),
            Spares(_args("decode", "--language-model-only") + "\nencode: <absent>"),
        ),
    ),
    Case(
        "consumer-language-model-only",
        (
            Breaks(_args("decode", "--language-model-only"), _DECODE, "--language-model-only"),
            Breaks("prefill: {args: [--language-model-only]}", "spec.prefill.args[0]", "--language-model-only"),
        ),
        (Spares(_args("decode", "--no-language-model-only")),),
    ),
    Case(
        "media-io-differs",
        (
            Breaks(_args("encode", _IO), _ENCODE, _IO, remedy="engine.args"),
            Breaks(_args("decode", _IO), _DECODE, _IO),
            Breaks(_args("decode", _IO, "0.30.0"), _DECODE, _IO),
            Breaks("prefill: {args: ['" + _IO + "']}", "spec.prefill.args[0]", _IO),
        ),
        (
            Spares("engine: {args: ['" + _IO + "']}"),
            Spares(_args("decode", _IO) + "\nencode: <absent>"),
            Spares(_old(_args("encode", _IO, "0.29.0"))),
        ),
    ),
    Case(
        "hasher-differs",
        (Breaks(_args("decode", "--mm-hasher-algorithm=sha256"), _DECODE, "--mm-hasher-algorithm=sha256"),),
        (
            Spares("engine: {args: [--mm-hasher-algorithm=sha256]}"),
            Spares(_args("decode", "--mm-hasher-algorithm=blake3")),
        ),
    ),
    Case(
        "trust-differs",
        (
            Breaks(_args("decode", "--trust-request-mm-kwargs"), _DECODE, "--trust-request-mm-kwargs"),
            Breaks(_args("decode", "--trust-request-mm-kwargs", "0.31.0"), _DECODE, "--trust-request-mm-kwargs"),
        ),
        (Spares("engine: {args: [--trust-request-mm-kwargs]}"),),
    ),
    Case(
        "encoder-shm-processor-cache",
        (Breaks(_args("encode", "--mm-processor-cache-type=shm"), _ENCODE, "--mm-processor-cache-type=shm"),),
        (Spares(_args("decode", "--mm-processor-cache-type=shm")),),
    ),
    Case(
        "encoder-replaces-uuids",
        (Breaks(_old(_args("encode", "--mm-processor-cache-gb=0", "0.29.0")), _ENCODE, "--mm-processor-cache-gb=0"),),
        (
            Spares(_args("encode", "--mm-processor-cache-gb=0", "0.30.0")),
            Spares(_old(_args("encode", "--mm-processor-cache-gb=1", "0.29.0"))),
        ),
    ),
    Case(
        "encoder-graph-wrong-output",
        (Breaks(_args("encode", _GRAPHS, "0.30.0"), _ENCODE, _GRAPHS),),
        (Spares(_args("encode", _GRAPHS, "0.31.0")),),
    ),
    Case(
        "hub-offline-differs",
        (Breaks("decode: {env: [{name: HF_HUB_OFFLINE, value: '1'}]}", "spec.decode.env[0]", "HF_HUB_OFFLINE=1"),),
        (
            Spares("engine: {env: [{name: HF_HUB_OFFLINE, value: '1'}]}"),
            Spares(
                "model: {id: ./m, volume: {persistentVolumeClaim: {claimName: c}}}\n"
                "decode: {env: [{name: HF_HUB_OFFLINE, value: '1'}]}"
            ),
        ),
    ),
)
