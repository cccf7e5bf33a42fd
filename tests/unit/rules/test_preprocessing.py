"""Where two settings name a device, the verdict is on the one that vLLM heeds."""

from tests.unit.objects import findings


def test_the_processors_own_device_wins_over_the_flag() -> None:
    clash = 'decode: {preprocessing: {device: Accelerator}, args: [--mm-processor-kwargs, \'{"device": "xpu"}\']}'
    rules = {finding.rule for finding in findings(clash)}
    assert "accelerator-preprocessing-off-encoder" not in rules
    assert "preprocessing-off-encoder" in rules
