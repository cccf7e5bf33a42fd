"""What the pod of an engine needs beyond the plan's own words: the start script, escaped arguments, resources."""

import shlex
from typing import Any

from epd_operator.api.pod import Resources
from epd_operator.api.role import Role
from epd_operator.plan.plan import RolePlan

STALE = ("vllm_*", "VLLM_*", "psm_*", "sem.*", "torch_*", "nccl-*", "ucx_*")
"""Shared memory that a killed engine leaves in /dev/shm, which outlives the container: vLLM's own regions, Python's
segments and semaphores, torch's, NCCL's and UCX's. In a pod the engine is alone there."""
_LITERAL_FLAGS = frozenset({"--served-model-name", "--revision"})
"""Flags with a name as their value. Other words may hold $(NAME), which kubelet replaces by the variable."""


def start_script(role: RolePlan) -> str:
    """Shell text that clears what a killed engine left, makes its directories and becomes `vllm serve` with "$@".

    A shared directory that an encoder cannot write to, or whose volume is full, ends the container with the words of
    the command that failed; vLLM would start, and fail each request.
    """
    stale = " ".join(f"/dev/shm/{pattern}" for pattern in STALE)  # noqa: S108  (it is what is cleaned)
    directories = " ".join(('"$HOME"', *map(shlex.quote, role.directories)))
    script = f"rm -rf {stale} && mkdir -p {directories}"
    if role.role is Role.ENCODE:
        for directory in map(shlex.quote, role.directories):
            file = f'{directory}/."$HOSTNAME"'
            script += f" && dd status=none if=/proc/version of={file} && rm {file}"
    return f'{script} && exec vllm serve "$@"'


def arguments(role: RolePlan) -> list[str]:
    """The words after `vllm serve`, as kubelet must be given them.

    Kubelet replaces $(NAME) and turns $$ into $. Names of the model are meant as they are, so their dollars are
    doubled; what the user wrote as args or extraConfig follows Kubernetes' rule.
    """
    words = [_literal(role.command.model)]
    for arg in role.command.args:
        literal = arg.flag in _LITERAL_FLAGS and arg.wired
        words += [arg.flag, *(map(_literal, arg.values) if literal else arg.values)]
    return words


def _literal(text: str) -> str:
    return text.replace("$", "$$")


def resources(written: Resources, device: str | None = None, count: int = 0) -> dict[str, Any]:
    """Kubernetes' ResourceRequirements: as written, and the devices among the limits. Empty where there is nothing."""
    requirements: dict[str, Any] = written.model_dump(mode="json", by_alias=True, exclude_none=True)
    if device is not None and count:
        requirements["limits"] = {**requirements.get("limits", {}), device: str(count)}
    return {kind: amounts for kind, amounts in requirements.items() if amounts}
