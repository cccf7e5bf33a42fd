from typing import Any

import pytest
from pydantic import ValidationError

from epd_proxy.config import Discovery, Media, MediaForwarding, ProxyConfig, Role


def test_the_empty_document_is_a_configuration() -> None:
    config = ProxyConfig.model_validate({})
    assert config.media_forwarding is MediaForwarding.METADATA
    assert config.media.allowed_domains == ()


def test_what_is_written_is_what_is_read() -> None:
    config = ProxyConfig(
        served_names=("m",),
        roles=(Role.ENCODE, Role.DECODE),
        media_forwarding=MediaForwarding.RAW,
        discovery=Discovery(namespace="n", instance="i"),
    )
    document = config.to_document()
    assert document == {
        "apiVersion": "proxy.epd.dev/v1alpha1",
        "kind": "ProxyConfig",
        "servedNames": ["m"],
        "roles": ["encode", "decode"],
        "mediaForwarding": "Raw",
        "discovery": {"namespace": "n", "instance": "i"},
    }
    assert ProxyConfig.model_validate(document) == config


@pytest.mark.parametrize(
    "document",
    [
        {"apiVersion": "proxy.epd.dev/v1"},
        {"kind": "Proxy"},
        {"endpoints": []},
        {"limits": {"bodySize": 0}},
        {"timeouts": {"connectSeconds": -1}},
        {"media": {"allowedDomains": ["https://example.com/"]}},
        {"media": {"allowedDomains": ["*.example.com"]}},
        {"discovery": {"namespace": "", "instance": "x"}},
        {"mediaForwarding": "metadata"},
    ],
)
def test_wrong_documents_are_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ProxyConfig.model_validate(document)


def test_domains_are_lower_case() -> None:
    assert Media(allowed_domains=("Images.Example.COM",)).allowed_domains == ("images.example.com",)
