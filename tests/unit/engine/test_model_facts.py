import pytest
from hypothesis import given
from hypothesis import strategies as st

from epd_operator.engine.model_facts import FULL_IMAGE_TOKENS, ModelFacts, facts_of, full_image_tokens

CONFIG = {
    "architectures": ["Qwen3VLForConditionalGeneration"],
    "text_config": {"num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 4096},
}


def test_only_the_architecture_is_known_without_a_configuration() -> None:
    assert facts_of("A") == ModelFacts("A")
    assert facts_of(None) == ModelFacts()


def test_a_multimodal_configuration_has_its_language_model_inside() -> None:
    assert facts_of("A", CONFIG) == ModelFacts("Qwen3VLForConditionalGeneration", 32, 8, 4096)


def test_a_text_configuration_is_flat_and_may_leave_kv_heads_out() -> None:
    assert facts_of(None, {"num_attention_heads": 4}) == ModelFacts(None, 4, 4, None)


@pytest.mark.parametrize("rope", [{"rope_scaling": {"type": "yarn"}}, {"rope_parameters": {"rope_type": "yarn"}}])
def test_a_stretched_context_is_not_known(rope: dict[str, object]) -> None:
    assert facts_of(None, {"max_position_embeddings": 4096, **rope}).context is None


@pytest.mark.parametrize("kind", ["default", "mrope"])
def test_rotations_that_stretch_nothing(kind: str) -> None:
    config = {"max_position_embeddings": 4096, "rope_parameters": {"rope_type": kind}}
    assert facts_of(None, config).context == 4096


@pytest.mark.parametrize(
    ("architecture", "max_pixels", "tokens"),
    [
        ("Qwen2VLForConditionalGeneration", None, FULL_IMAGE_TOKENS),
        ("Qwen2VLForConditionalGeneration", 28 * 28 * 100, 100),
        ("Qwen3VLForConditionalGeneration", 10**12, FULL_IMAGE_TOKENS),
        ("Qwen3VLForConditionalGeneration", "many", FULL_IMAGE_TOKENS),
        ("LlavaForConditionalGeneration", None, None),
        (None, None, None),
    ],
)
def test_full_image_tokens(architecture: str | None, max_pixels: object, tokens: int | None) -> None:
    assert full_image_tokens(ModelFacts(architecture), max_pixels) == tokens


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
KEYS = ("architectures", "text_config", "num_attention_heads", "rope_parameters", "max_position_embeddings")


@given(st.dictionaries(st.sampled_from(KEYS), JSON))
def test_never_raises(config: dict[str, object]) -> None:
    facts_of(None, config)
