"""The flags and variables of one simulated instance: vLLM's own, and EPD_SIM_* for what shall go wrong."""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

EC_PORT = 5601
KV_PORT = 5600
BOOTSTRAP_PORT = 8998


@dataclass(frozen=True)
class Options:
    """One instance as it was started."""

    model: str
    served_name: str
    port: int = 8000
    host: str | None = None
    """None: all addresses."""
    key: str = ""
    release: str = "0.33.0"
    ec: Mapping[str, Any] = field(default_factory=dict)
    kv: Mapping[str, Any] = field(default_factory=dict)
    tensor_ipc: str = "direct_rpc"
    ranks: int = 1
    shutdown_timeout: float = 0.0
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def encoder(self) -> bool:
        """Whether it encodes only."""
        return self.ec.get("ec_role") == "ec_producer"

    @property
    def minor(self) -> str:
        """Release without its patch."""
        return ".".join(self.release.split(".")[:2])

    def connector(self, kind: str) -> str:
        """Name of the `ec` or `kv` connector, empty for none."""
        config = self.ec if kind == "ec" else self.kv
        return str(config.get(f"{kind}_connector", ""))

    def extra(self, kind: str) -> Mapping[str, Any]:
        """The connector's own settings."""
        config = self.ec if kind == "ec" else self.kv
        found: Mapping[str, Any] = config.get(f"{kind}_connector_extra_config") or {}
        return found

    def milliseconds(self, name: str) -> float:
        """A delay by its variable, in seconds."""
        return float(self.environ.get(name, "0")) / 1000


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Read the words after `vllm serve`; those without effect here are passed over. SystemExit for what is wrong."""
    parser = argparse.ArgumentParser(prog="vllm serve", allow_abbrev=False)
    parser.add_argument("model")
    parser.add_argument("--served-model-name")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--host")
    parser.add_argument("--ec-transfer-config", type=json.loads, default={})
    parser.add_argument("--kv-transfer-config", type=json.loads, default={})
    parser.add_argument("--mm-tensor-ipc", choices=("direct_rpc", "torch_shm"), default="direct_rpc")
    parser.add_argument("--tensor-parallel-size", type=int, default=1)
    parser.add_argument("--pipeline-parallel-size", type=int, default=1)
    parser.add_argument("--data-parallel-size", type=int, default=1)
    parser.add_argument("--shutdown-timeout", type=float, default=0)
    known, _ = parser.parse_known_args(argv)
    return Options(
        model=known.model,
        served_name=known.served_model_name or known.model,
        port=known.port,
        host=known.host,
        key=environ.get("VLLM_API_KEY", ""),
        release=environ.get("EPD_SIM_RELEASE", Options.release),
        ec=known.ec_transfer_config,
        kv=known.kv_transfer_config,
        tensor_ipc=known.mm_tensor_ipc,
        ranks=known.tensor_parallel_size * known.pipeline_parallel_size * known.data_parallel_size,
        shutdown_timeout=known.shutdown_timeout,
        environ=environ,
    )
