"""The directory of one run: keys, logs, shared directories and temporary files, all removed at the end."""

import os
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from epd_operator.local.errors import LocalError

_MAX_SOCKET_PATH = 107
"""Bytes of a Unix socket's path on Linux, without the final zero."""
_SOCKET_NAME = 36
"""vLLM names its sockets by uuid4, in the temporary directory (VLLM_RPC_BASE_PATH, vllm/envs.py)."""
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Workspace:
    """A directory that only its owner can read."""

    root: Path
    logs: Path
    """Where the logs are: inside, or where the user wants them to stay."""

    @classmethod
    def create(cls, logs: Path | None = None) -> "Workspace":
        """Make a new one below $TMPDIR, or below /tmp where that path is too long for sockets.

        Raises LocalError where `logs` cannot be made.
        """
        root = Path(tempfile.mkdtemp(prefix="epd-run-"))
        longest = len(os.fsencode(root / "tmp" / "decode-9999")) + 1 + _SOCKET_NAME
        if longest > _MAX_SOCKET_PATH:
            root.rmdir()
            try:
                root = Path(tempfile.mkdtemp(prefix="epd-run-", dir="/tmp"))
            except OSError as error:
                raise LocalError(f"$TMPDIR is too long for sockets, and /tmp: {error.strerror}") from error
        for name in ("tmp", "logs", "embeddings", "kv"):
            (root / name).mkdir(mode=0o700)
        workspace = cls(root, (logs or root / "logs").absolute())
        try:
            workspace.logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            workspace.remove()
            raise LocalError(f"--logs {logs}: {error.strerror}") from error
        return workspace

    @property
    def embeddings(self) -> Path:
        """Shared directory of ECExampleConnector."""
        return self.root / "embeddings"

    @property
    def kv(self) -> Path:
        """Shared directory of ExampleConnector."""
        return self.root / "kv"

    def log(self, instance: str) -> Path:
        """The log of an instance."""
        return self.logs / f"{instance}.log"

    def temporary(self, instance: str) -> Path:
        """An instance's own temporary directory: vLLM leaves sockets and rendezvous files behind."""
        path = self.root / "tmp" / instance
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    def new_key(self, name: str) -> tuple[str, Path]:
        """Make a random key; returns it and the file that holds it, which only the owner can read."""
        key = secrets.token_hex(_KEY_BYTES)
        return key, self.write(name, key)

    def write(self, name: str, text: str) -> Path:
        """Write a file that only the owner can read."""
        path = self.root / name
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(text, encoding="utf-8")
        return path

    def remove(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.root, ignore_errors=True)
