from pathlib import Path

import pytest

from epd_operator.api.device import DeviceType
from epd_operator.local.devices import Demand, share_out
from epd_operator.local.errors import LocalError

CUDA, ROCM, XPU, CPU = DeviceType.CUDA, DeviceType.ROCM, DeviceType.XPU, DeviceType.CPU
E = Demand("encode-0", CUDA, 1)
D = Demand("decode-0", CUDA, 2)


@pytest.mark.parametrize(
    ("demands", "environ", "shares"),
    [
        ([], {}, {}),
        ([Demand("encode-0", CPU, 0)], {}, {}),
        (
            [E, D],
            {"CUDA_VISIBLE_DEVICES": "4,GPU-5,6,7"},
            {
                "encode-0": {"CUDA_VISIBLE_DEVICES": "4"},
                "decode-0": {"CUDA_VISIBLE_DEVICES": "GPU-5,6"},
            },
        ),
        (
            [Demand("encode-0", ROCM, 1), Demand("decode-0", XPU, 1), Demand("decode-1", CPU, 0)],
            {"HIP_VISIBLE_DEVICES": "0,1", "ZE_AFFINITY_MASK": "0"},
            {"encode-0": {"HIP_VISIBLE_DEVICES": "0"}, "decode-0": {"ZE_AFFINITY_MASK": "0"}},
        ),
    ],
    ids=["nobody", "no devices on CPU", "each its own", "each type of its own"],
)
def test_shares(demands: list[Demand], environ: dict[str, str], shares: dict[str, dict[str, str]]) -> None:
    assert share_out(demands, environ) == shares


@pytest.mark.parametrize(
    ("demands", "environ", "says"),
    [
        (
            [E, D],
            {"CUDA_VISIBLE_DEVICES": "0"},
            r"3 CUDA devices are needed \(encode-0 1, decode-0 2\) and 1 found \(\$CUDA_VISIBLE_DEVICES\)",
        ),
        ([E], {"CUDA_VISIBLE_DEVICES": ""}, "0 found"),
        ([E], {"PATH": "/nowhere"}, "no nvidia-smi on PATH; set .CUDA_VISIBLE_DEVICES"),
        ([Demand("encode-0", ROCM, 1)], {}, "set .HIP_VISIBLE_DEVICES to the devices"),
    ],
    ids=["too few", "none visible", "no tool", "not looked for"],
)
def test_too_few(demands: list[Demand], environ: dict[str, str], says: str) -> None:
    with pytest.raises(LocalError, match=says):
        share_out(demands, environ)


def tool(folder: Path, script: str) -> dict[str, str]:
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"PATH": str(folder)}


def test_cuda_devices_are_asked_for(tmp_path: Path) -> None:
    environ = tool(tmp_path, "echo GPU-a; echo GPU-b; echo GPU-c")
    assert share_out([E, D], environ) == {
        "encode-0": {"CUDA_VISIBLE_DEVICES": "GPU-a"},
        "decode-0": {"CUDA_VISIBLE_DEVICES": "GPU-b,GPU-c"},
    }


def test_a_tool_that_fails(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="nvidia-smi: no driver"):
        share_out([E], tool(tmp_path, "echo no driver >&2; exit 9"))
