"""What an operator is started with."""

import os
import socket
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from epd_operator.plan.settings import Settings as PlanSettings


def _identity() -> str:
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4().hex[:8]}"


@dataclass(frozen=True)
class Settings:
    """Settings of one operator process."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespaces: tuple[str, ...] = ()
    """Namespaces that are served; empty for all."""
    operator_class: str | None = None
    """Serves objects with this spec.operatorClass; None serves those without one."""
    plan: PlanSettings = field(default_factory=PlanSettings)
    workers: int = 8
    resync_seconds: float = 600.0
    leader_election: bool = True
    lease_name: str = "epd-operator"
    lease_namespace: str | None = None
    """Default: the operator's own namespace."""
    lease_seconds: float = 15.0
    address: str = "127.0.0.1"
    """For probes and metrics."""
    port: int = 8080
    """For probes and metrics; 0 for none."""
    webhook_configuration: str | None = None
    """ValidatingWebhookConfiguration whose caBundle the leader keeps; None for none."""
    webhook_secret: str = "epd-operator-webhook"  # noqa: S105  a name
    """Secret of the webhook's certificate, in the operator's namespace."""
    webhook_names: tuple[str, ...] = ()
    """DNS names and addresses in the certificate."""
    identity: str = field(default_factory=_identity)
