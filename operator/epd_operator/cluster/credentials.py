"""Where the API server is and who we are to it: a kubeconfig, or the service account of the pod."""

import contextlib
import os
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import load_incluster_config, load_kube_config
from kubernetes.aio.config.config_exception import ConfigException
from yaml import YAMLError

from epd_operator.cluster.errors import ClusterError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True)
class Credentials:
    """One API server and one identity. Tokens are read anew when they are due, as the library does it."""

    configuration: Configuration
    namespace: str
    """Of the pod or of the kubeconfig's context; `default` where neither says."""
    reload: Callable[[], Awaitable[object]] | None = None
    """Reads the kubeconfig anew; None for a service account, whose token the library reads anew by itself."""

    async def renew(self) -> None:
        """Sign in anew, after the API server refused the token. A kubeconfig that became unreadable changes nothing."""
        if self.reload is not None:
            with contextlib.suppress(ConfigException, OSError, YAMLError):
                await self.reload()

    @property
    def server(self) -> str:
        """Base URL."""
        return str(self.configuration.host).rstrip("/")

    def tls(self) -> ssl.SSLContext | bool:
        """What the server must prove, and the client's certificate if it has one."""
        given = self.configuration
        if not given.verify_ssl:
            return False
        context = ssl.create_default_context(cafile=given.ssl_ca_cert, cadata=given.ca_cert_data)
        if given.cert_file:
            context.load_cert_chain(given.cert_file, given.key_file)
        return context

    async def token(self) -> str | None:
        """The value of the Authorization header; None for clients with a certificate."""
        authorization: str | None = await self.configuration.get_api_key_with_prefix("BearerToken", "authorization")
        return authorization


async def load_credentials(kubeconfig: Path | None = None, context: str | None = None) -> Credentials:
    """From the given kubeconfig; else the service account where there is one; else $KUBECONFIG and ~/.kube/config.

    Raises ClusterError: there is none, or it is not readable.
    """
    configuration = Configuration()
    try:
        if kubeconfig is None and context is None and (SERVICE_ACCOUNT / "token").exists():
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
            return Credentials(configuration, (SERVICE_ACCOUNT / "namespace").read_text().strip() or "default")
        file = None if kubeconfig is None else str(kubeconfig)

        async def load() -> Any:
            return await load_kube_config(  # type: ignore[no-untyped-call]
                file, context=context, client_configuration=configuration
            )

        loader = await load()
    except (ConfigException, OSError, YAMLError) as error:
        where = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        raise ClusterError(
            f"{where}: no usable kubeconfig, and no service account in {SERVICE_ACCOUNT}: {error}"
        ) from error
    namespace = str((loader.current_context.get("context") or {}).get("namespace") or "default")
    return Credentials(configuration, namespace, load)
