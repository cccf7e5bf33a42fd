"""Names of media, derived from their content and a secret.

vLLM takes the uuid of an item as its sole cache key, so a client must not be able to make two contents share one, nor
to guess another's. The key is secret, hence a keyed universal hash (GHASH, by AES-GCM over data that is authenticated
only) is enough for the megabytes; its tag goes through a keyed PRF (BLAKE2b) together with what else tells items apart.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MIN_KEY: Final = 16
"""Bytes of a uuid key below which it is refused."""

_NONCE: Final = bytes(12)  # always the same: the tags never leave this module


class ContentNamer:
    """Names contents for one tenant of one deployment."""

    __slots__ = ("_hash", "_prf")

    def __init__(self, key: bytes, tenant: str = "") -> None:
        scope = tenant.encode()
        self._hash = AESGCM(blake2b(b"hash\0" + scope, key=key[:64], digest_size=32).digest())
        self._prf = blake2b(b"prf\0" + scope, key=key[:64], digest_size=64).digest()

    def name(self, content: memoryview | bytes, about: bytes) -> str:
        """Return 32 hex digits for a content (any length below 2 GiB) and what else makes an item what it is."""
        tag = self._hash.encrypt(_NONCE, b"", content)
        return blake2b(tag + len(content).to_bytes(8, "big") + about, key=self._prf, digest_size=16).hexdigest()


class ContentNames:
    """The namers of all tenants, made when first needed."""

    def __init__(self, key: bytes) -> None:
        if len(key) < MIN_KEY:
            raise ValueError(f"the uuid key has {len(key)} bytes; it needs at least {MIN_KEY}")
        self._key = blake2b(key, digest_size=64).digest()
        self._namers: dict[str, ContentNamer] = {}

    def of(self, tenant: str) -> ContentNamer:
        """Return the namer of a tenant; "" stands for the whole deployment."""
        namer = self._namers.get(tenant)
        if namer is None:
            namer = self._namers[tenant] = ContentNamer(self._key, tenant)
        return namer


def random_key() -> bytes:
    """Return a key for a proxy that was given none."""
    return secrets.token_bytes(32)
