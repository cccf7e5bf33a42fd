import pytest

from epd_operator.engine.secrets import is_secret


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "S3_SECRET_ACCESS_KEY", "VLLM_API_KEY", "PASSWORD", "db-password", "AWS_CREDENTIALS", "token"]
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name", ["VLLM_MAX_BAD_WORDS_TOTAL_TOKENS", "MONKEY", "TOKENIZERS_PARALLELISM", "S3_REGION", ""]
)
def test_other_names(name: str) -> None:
    assert not is_secret(name)
