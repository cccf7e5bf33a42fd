"""Images of vLLM's own releases, by device."""

from epd_operator.api.device import DeviceType
from epd_operator.engine.release import Release

_REPOSITORIES = {
    DeviceType.CUDA: "vllm/vllm-openai",
    DeviceType.ROCM: "vllm/vllm-openai-rocm",
    DeviceType.CPU: "vllm/vllm-openai-cpu",
}


def default_image(release: Release, device: DeviceType) -> str | None:
    """VLLM's published image for a release and device; None where vLLM publishes none (XPU)."""
    repository = _REPOSITORIES.get(device)
    return f"{repository}:v{release}" if repository else None


def repository_of(image: str) -> str:
    """An image reference without tag and digest."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    return head + slash + last.partition(":")[0]
