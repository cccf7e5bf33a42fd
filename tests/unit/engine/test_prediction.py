"""What vLLM derives; the sweep of the conformance tests compares it with the real one."""

import pytest

from epd_operator.api.role import Role
from epd_operator.engine.prediction import Prediction, predict
from tests.unit.objects import wiring

FILES = "transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: c}}}}\n"
ENCODER = Prediction(
    encode_only=True,
    allow_missing_mm_embeddings=False,
    enable_mm_embeds=False,
    mm_processor_device="cuda",
    prefix_caching=False,
    v2_model_runner=True,
)
CONSUMER = Prediction(
    encode_only=False,
    allow_missing_mm_embeddings=True,
    enable_mm_embeds=True,
    mm_processor_device="cpu",
    prefix_caching=True,
    v2_model_runner=True,
)


def predicted(spec: str, role: Role) -> Prediction:
    wired = wiring(spec)
    return predict(wired, wired.instances[role])


def test_an_encoder_and_its_consumer() -> None:
    assert predicted("", Role.ENCODE) == ENCODER
    assert predicted("", Role.DECODE) == CONSUMER


def test_decode_behind_prefill_takes_metadata_too() -> None:
    assert predicted("prefill: {}", Role.PREFILL) == CONSUMER
    assert predicted("prefill: {}", Role.DECODE) == CONSUMER


def test_a_single_role_takes_only_media() -> None:
    alone = predicted("encode: <absent>", Role.DECODE)
    assert not alone.allow_missing_mm_embeddings
    assert not alone.enable_mm_embeds


@pytest.mark.parametrize(("release", "takes"), [("0.32.0", True), ("0.33.0", False)])
def test_a_language_model_alone_takes_no_metadata_from_0_33(release: str, takes: bool) -> None:
    spec = f"engine: {{version: {release}}}\nprefill: {{}}\ndecode: {{args: [--language-model-only]}}"
    assert predicted(spec, Role.DECODE).allow_missing_mm_embeddings is takes


def test_a_text_model_has_no_encoder() -> None:
    spec = "model: {architecture: Qwen2ForCausalLM}\nencode: <absent>\nprefill: {}"
    decode = predicted(spec, Role.DECODE)
    assert (decode.encode_only, decode.allow_missing_mm_embeddings, decode.enable_mm_embeds) == (False, False, False)


@pytest.mark.parametrize(
    ("spec", "device"),
    [
        ("", "cuda"),
        ("encode: {preprocessing: {device: CPU}}", "cpu"),
        ("encode: {preprocessing: {tensorIPC: direct_rpc}}", "cpu"),
        ("encode: {preprocessing: {tensorIPC: direct_rpc, device: Accelerator}}", "cuda"),
        ("encode: {parallelism: {tensor: 2}}", "cpu"),
        ('encode: {args: [\'--mm-processor-kwargs={"device": "cuda:0"}\']}', "cuda"),
        ("device: {type: CPU}\n" + FILES, "cpu"),
    ],
)
def test_where_media_become_tensors(spec: str, device: str) -> None:
    assert predicted(spec, Role.ENCODE).mm_processor_device == device


@pytest.mark.parametrize(
    ("spec", "on"),
    [("decode: {args: [--no-enable-prefix-caching]}", False), ("decode: {args: [--enable-prefix-caching]}", True)],
)
def test_prefix_caching_as_the_user_says(spec: str, on: bool) -> None:
    assert predicted(spec, Role.DECODE).prefix_caching is on


@pytest.mark.parametrize(("release", "on"), [("0.28.0", True), ("0.29.0", False)])
def test_prefix_caching_of_an_encoder_is_off_for_good_from_0_29(release: str, on: bool) -> None:
    spec = FILES + f"engine: {{version: {release}}}\nencode: {{args: [--enable-prefix-caching]}}"
    assert predicted(spec, Role.ENCODE).prefix_caching is on


@pytest.mark.parametrize(
    ("spec", "v2"),
    [
        (FILES + "decode: {env: [{name: VLLM_USE_V2_MODEL_RUNNER, value: '0'}]}", False),
        (FILES + "decode: {env: [{name: VLLM_USE_V2_MODEL_RUNNER, value: '1'}]}", True),
        (FILES + "device: {type: CPU}", False),
        (FILES, True),
        (FILES + "engine: {version: 0.31.0}\ndecode: {args: [--enable-elastic-ep]}", False),
        (FILES + "engine: {version: 0.32.0}\ndecode: {args: [--enable-elastic-ep]}", True),
        (FILES + "engine: {version: 0.28.0}\ndecode: {args: [--runner, draft]}", False),
        (FILES + "engine: {version: 0.29.0}\ndecode: {args: [--runner, draft]}", True),
        (FILES + "engine: {version: 0.28.0}\ndecode: {args: [--convert, embed]}", False),
        (FILES + "engine: {version: 0.29.0}\ndecode: {args: [--mamba-cache-mode, all]}", True),
        (FILES + "engine: {version: 0.30.0}\ndecode: {args: [--mamba-cache-mode, all]}", False),
        (FILES + "engine: {version: 0.31.0}\ndecode: {args: [--mamba-cache-mode, align]}", True),
    ],
)
def test_model_runner(spec: str, v2: bool) -> None:
    assert predicted(spec, Role.DECODE).v2_model_runner is v2
