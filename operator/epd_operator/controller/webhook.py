"""The webhook process: Kopf's admission server, and nothing that watches."""

import asyncio
import base64
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import kopf
import structlog

from epd_operator.cluster.client import ApiServer
from epd_operator.cluster.credentials import load_credentials
from epd_operator.cluster.errors import ApiError, ClusterError
from epd_operator.cluster.resources import SECRETS
from epd_operator.controller import kopf_setup
from epd_operator.controller.admission import review
from epd_operator.controller.certificates import CERTIFICATE, KEY
from epd_operator.controller.health import serve_health
from epd_operator.controller.kinds import EPD_DEPLOYMENTS
from epd_operator.controller.metrics import ADMISSIONS, REGISTRY
from epd_operator.plan.settings import Settings as PlanSettings

LOOK_SECONDS = 30.0
FIRST_LOOK_SECONDS = 1.0

log = structlog.get_logger()


@dataclass(frozen=True)
class WebhookSettings:
    """Settings of one webhook process."""

    kubeconfig: Path | None = None
    context: str | None = None
    address: str = "127.0.0.1"
    port: int = 9443
    certificate: Path | None = None
    """PEM file; with `key`. None: the Secret that the operator's leader keeps."""
    key: Path | None = None
    secret: str = "epd-operator-webhook"  # noqa: S105  a name
    health_port: int = 0
    """For /healthz, /readyz and /metrics; 0 for none."""
    namespaced: bool = False
    """Has no rights beyond namespaces: kinds are looked for once, at the start."""
    plan: PlanSettings = field(default_factory=PlanSettings)


async def run_webhook(settings: WebhookSettings) -> None:
    """Serve until SIGTERM or SIGINT. Raises ClusterError: no API server."""
    credentials = await load_credentials(settings.kubeconfig, settings.context)
    with tempfile.TemporaryDirectory(prefix="epd-webhook-") as private:
        files = _Files(Path(private), settings)
        async with (
            ApiServer(credentials, "epd-operator-webhook") as api,
            _health(settings, files),
            AsyncExitStack() as stack,
        ):
            if files.followed:
                await files.fetch(api, credentials.namespace)
                follower = asyncio.create_task(files.follow(api, credentials.namespace))
                stack.callback(follower.cancel)
            registry = kopf_setup.new_registry(credentials)
            kopf_setup.admit(registry, EPD_DEPLOYMENTS, lambda body, old: _counted(review(body, old, settings.plan)))
            options = kopf_setup.new_settings(scans=not settings.namespaced)
            options.admission.server = kopf.WebhookServer(
                addr=settings.address, port=settings.port, certfile=str(files.certificate), pkeyfile=str(files.key)
            )
            await kopf.operator(registry=registry, settings=options, standalone=True, clusterwide=True)


def _counted(answer: tuple[list[str], list[str]]) -> tuple[list[str], list[str]]:
    ADMISSIONS.labels("refused" if answer[0] else "allowed").inc()
    return answer


@asynccontextmanager
async def _health(settings: WebhookSettings, files: "_Files") -> AsyncIterator[None]:
    """Probes and metrics, if they are asked for. Not ready: there is no certificate, and so no port for questions."""
    if not settings.health_port:
        yield
        return
    runner = await serve_health(
        settings.address, settings.health_port, live=lambda: "", ready=files.lack, registry=REGISTRY
    )
    try:
        yield
    finally:
        await runner.cleanup()


class _Files:
    """Certificate and key as files, which Kopf's server reads again when they change."""

    def __init__(self, private: Path, settings: WebhookSettings) -> None:
        self.followed = settings.certificate is None or settings.key is None
        self.certificate = settings.certificate or private / CERTIFICATE
        self.key = settings.key or private / KEY
        self._secret = settings.secret

    def lack(self) -> str:
        """What is missing to serve, in words."""
        return "" if self.certificate.exists() and self.key.exists() else f"no certificate in Secret {self._secret} yet"

    async def fetch(self, api: ApiServer, namespace: str) -> None:
        """Wait for the Secret and write it down."""
        while not await self._look(api, namespace):  # noqa: ASYNC110  it is another process that writes it
            await asyncio.sleep(FIRST_LOOK_SECONDS)

    async def follow(self, api: ApiServer, namespace: str) -> None:
        """Write the Secret down whenever it changed."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._look(api, namespace)

    async def _look(self, api: ApiServer, namespace: str) -> bool:
        try:
            data = (await api.get(SECRETS, namespace, self._secret)).get("data") or {}
        except ClusterError as error:
            waiting = isinstance(error, ApiError) and error.is_gone
            log.info("waiting for the certificate" if waiting else "the certificate cannot be read", error=str(error))
            return False
        if CERTIFICATE not in data or KEY not in data:
            return False
        for path, name in ((self.key, KEY), (self.certificate, CERTIFICATE)):
            _replace(path, base64.b64decode(data[name]))
        return True


def _replace(path: Path, content: bytes) -> None:
    """Write a file that only this user reads, all at once, if its content changed."""
    if path.exists() and path.read_bytes() == content:
        return
    new = path.with_suffix(".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    new.replace(path)
