"""How KV connectors are told, through the proxy, where a prefill left its blocks."""

from __future__ import annotations

import json
import uuid
from typing import Any, Final

from epd_proxy.endpoints import Endpoint

_REMOTE_DECODE: Final = (
    b'{"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,'
    b'"remote_block_ids":null,"remote_host":null,"remote_port":null}'
)


class KvTransfer:
    """The params of one attempt. A transfer id is never used for a second one.

    NixlConnector and most others: the prefill's answer carries what decode is sent. MooncakeConnector: an id names the
    transfer on both sides and decode is pointed at the prefill's bootstrap server. ExampleConnector: nothing is told,
    the decoder finds files by the tokens.
    """

    def __init__(self, prefill: Endpoint, rank: int) -> None:
        self._prefill = prefill
        self._rank = rank
        self._mooncake = prefill.kv_connector == "MooncakeConnector"
        self._transfer_id = f"xfer-{uuid.uuid4().hex}" if self._mooncake else ""

    def for_prefill(self) -> bytes:
        """Return the JSON of `kv_transfer_params` for the prefill."""
        if self._mooncake:
            return json.dumps(
                {"do_remote_decode": True, "do_remote_prefill": False, "transfer_id": self._transfer_id}
            ).encode()
        return _REMOTE_DECODE

    def for_decode(self, answer: dict[str, Any]) -> bytes | None:
        """Return the JSON of `kv_transfer_params` for decode, None when no blocks wait for it."""
        if self._mooncake:
            engine_id = self._prefill.bootstrap_ids.get(self._rank)
            if engine_id is None:
                return None
            host = f"[{self._prefill.host}]" if ":" in self._prefill.host else self._prefill.host
            params: dict[str, Any] = {
                "do_remote_prefill": True,
                "do_remote_decode": False,
                "remote_bootstrap_addr": f"http://{host}:{self._prefill.bootstrap_port}",
                "remote_engine_id": engine_id,
                "transfer_id": self._transfer_id,
            }
            return json.dumps(params).encode()
        reported = answer.get("kv_transfer_params")
        if not isinstance(reported, dict) or not reported.get("do_remote_prefill"):
            return None
        return json.dumps(reported).encode()
