"""The leader's part: the Secret with the certificate, and the trust in the webhook's configuration."""

import asyncio
import base64
from collections.abc import Sequence

import structlog

from epd_operator.cluster.api import Cluster
from epd_operator.cluster.errors import ApiError, ClusterError
from epd_operator.cluster.resources import SECRETS, VALIDATING_WEBHOOKS, Object
from epd_operator.controller.certificates import decoded, encoded, rotate
from epd_operator.controller.metrics import WRITES

LOOK_SECONDS = 60.0
RETRY_SECONDS = 5.0

log = structlog.get_logger()


class CertificateKeeper:
    """Keeps certificate and trust."""

    def __init__(self, cluster: Cluster, namespace: str, secret: str, configuration: str, names: Sequence[str]) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._secret = secret
        self._configuration = configuration
        self._names = names

    async def run(self) -> None:
        """Look after both for ever."""
        while True:
            try:
                await self.look()
            except ClusterError as error:
                log.warning("the webhook's certificate cannot be kept; trying again", error=str(error))
                await asyncio.sleep(RETRY_SECONDS)
            else:
                await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Renew what is due. Trust comes before use."""
        secret = await self._read(self._secret)
        held = decoded(secret.get("data")) if secret else None
        rotation = rotate(held, self._names)
        if secret is None or not held:
            await self._write(secret, encoded(rotation.data))
            await self._trust(rotation.trusted)
            return
        await self._trust(rotation.trusted)
        if rotation.data != held:
            await self._write(
                secret, encoded(rotation.data) | {name: None for name in held if name not in rotation.data}
            )

    async def _read(self, name: str) -> Object | None:
        try:
            return await self._cluster.get(SECRETS, self._namespace, name)
        except ApiError as error:
            if error.is_gone:
                return None
            raise

    async def _write(self, secret: Object | None, data: Object) -> None:
        log.info("webhook certificate renewed", secret=f"{self._namespace}/{self._secret}")
        WRITES.labels(SECRETS.kind, "create" if secret is None else "patch").inc()
        if secret is None:
            metadata = {
                "name": self._secret,
                "namespace": self._namespace,
                "labels": {"app.kubernetes.io/name": "epd-operator"},
            }
            body = {"apiVersion": "v1", "kind": SECRETS.kind, "metadata": metadata, "type": "kubernetes.io/tls"}
            await self._cluster.create(SECRETS, {**body, "data": data})
            return
        version = {"uid": secret["metadata"]["uid"], "resourceVersion": secret["metadata"]["resourceVersion"]}
        await self._cluster.patch(SECRETS, self._namespace, self._secret, {"metadata": version, "data": data})

    async def _trust(self, certificates: bytes) -> None:
        """Put the certificates into every webhook of the configuration, if they are not there yet."""
        bundle = base64.b64encode(certificates).decode()
        configuration = await self._cluster.get(VALIDATING_WEBHOOKS, None, self._configuration)
        webhooks = configuration.get("webhooks") or []
        if all((webhook.get("clientConfig") or {}).get("caBundle") == bundle for webhook in webhooks):
            return
        WRITES.labels(VALIDATING_WEBHOOKS.kind, "patch").inc()
        trusting = [{**each, "clientConfig": {**each["clientConfig"], "caBundle": bundle}} for each in webhooks]
        version = {"resourceVersion": configuration["metadata"]["resourceVersion"]}
        await self._cluster.patch(
            VALIDATING_WEBHOOKS, None, self._configuration, {"metadata": version, "webhooks": trusting}
        )
