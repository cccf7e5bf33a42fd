"""The kubelet's words, as release 1.37 says them."""

from hack.cluster.kubectl import Object


def pull_error(image: str, message: str) -> str:
    """Why an image could not be pulled."""
    return message or (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{image}": '
        f'failed to resolve reference "{image}": {image}: not found'
    )


def pull_back_off(image: str, message: str) -> str:
    """What is shown while the next try is awaited."""
    return f'Back-off pulling image "{image}": ErrImagePull: {pull_error(image, message)}'


def restart_back_off(pod: Object, container: str) -> str:
    """What is shown while the next start of a crashed container is awaited."""
    return f"back-off 10s restarting failed container={container} pod={_full_name(pod)}"


def restart_event(pod: Object, container: str) -> str:
    """The event about that."""
    return f"Back-off restarting failed container {container} in pod {_full_name(pod)}"


def mount_failure(volume: str, complaint: str) -> str:
    """Why a volume could not be mounted."""
    return f'MountVolume.SetUp failed for volume "{volume}" : {complaint}'


def unready(condition: str, containers: list[str]) -> Object:
    """The fields of a condition that is False for the sake of some containers."""
    return {
        "type": condition,
        "status": "False",
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{' '.join(containers)}]",
    }


EVICTED = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "


def _full_name(pod: Object) -> str:
    meta = pod["metadata"]
    return f"{meta['name']}_{meta['namespace']}({meta['uid']})"
