"""Who may ask: API keys of clients, read from a directory such as a mounted Secret."""

from __future__ import annotations

import secrets
from hashlib import blake2b
from pathlib import Path

from epd_proxy import log

MAX_FILE = 64 * 1024
MAX_KNOWN = 10_000


class SecretError(Exception):
    """A file with a secret cannot be used; the message names it and never its content."""


def read_secret(path: str | Path) -> bytes:
    """Return a file's content without surrounding blanks; raises SecretError."""
    try:
        data = Path(path).read_bytes()[:MAX_FILE].strip()
    except OSError as error:
        raise SecretError(f"{path}: cannot be read: {error.strerror}") from None
    if not data:
        raise SecretError(f"{path}: is empty; it must hold the secret")
    return data


class ApiKeys:
    """The keys that clients may use. Looked up by a keyed digest, so that timing says nothing about them."""

    def __init__(self, directory: str | None = None, file: str | None = None) -> None:
        self._directory = directory
        self._file = file
        self._secret = secrets.token_bytes(32)
        self._tenants: dict[bytes, str] = {}
        self._known: dict[bytes, str] = {}
        """Headers that were right. A dict's hash is keyed and secret, so that looking up tells nothing either."""
        self.required = directory is not None or file is not None
        self.reload()

    def reload(self) -> None:
        """Read the keys again. What cannot be read now leaves the keys as they were; at first it raises SecretError."""
        if not self.required:
            return
        try:
            found = {self._digest(key): tenant for tenant, key in self._read()}
        except SecretError as error:
            if not self._tenants:
                raise
            log.warning("api keys kept", reason=str(error))
            return
        if found != self._tenants:
            self._tenants = found
            self._known = {}
            log.info("api keys read", keys=len(found))

    def tenant(self, authorization: bytes) -> str | None:
        """Return whose key it is, None when it is nobody's. `authorization` is the header's value."""
        known = self._known.get(authorization)
        if known is not None:
            return known
        scheme, _, key = authorization.partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        tenant = self._tenants.get(self._digest(key.strip()))
        if tenant is not None and len(self._known) < MAX_KNOWN:
            self._known[authorization] = tenant
        return tenant

    def _digest(self, key: bytes) -> bytes:
        return blake2b(key, key=self._secret, digest_size=16).digest()

    def _read(self) -> list[tuple[str, bytes]]:
        if self._file:
            lines = read_secret(self._file).split()
            return [(f"{number}", key) for number, key in enumerate(lines, 1)]
        folder = Path(self._directory or "")
        try:
            files = sorted(p for p in folder.iterdir() if not p.name.startswith(".") and p.is_file())
        except OSError as error:
            raise SecretError(f"{folder}: cannot be read: {error.strerror}") from None
        return [(p.name, read_secret(p)) for p in files]
