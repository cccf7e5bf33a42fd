"""Kopf as the informer of EPDDeployments and EPDRoleScales, and as the admission server.

It is not the state machine: handlers write nothing and keep nothing.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Any, cast

import kopf

from epd_operator.cluster.credentials import Credentials
from epd_operator.cluster.errors import ClusterError
from epd_operator.cluster.informer import Informer
from epd_operator.cluster.resources import Resource

REQUEST_SECONDS = 30.0
WATCH_SECONDS = 300


def new_registry(credentials: Credentials) -> kopf.OperatorRegistry:
    """A registry that signs in as the rest of the process does."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        await credentials.renew()
        return await _connection(credentials)

    return registry


async def _connection(credentials: Credentials) -> kopf.ConnectionInfo:
    given = credentials.configuration
    scheme, _, token = (await credentials.token() or "").partition(" ")
    return kopf.ConnectionInfo(
        server=credentials.server,
        ca_path=given.ssl_ca_cert,
        ca_data=given.ca_cert_data,
        insecure=not given.verify_ssl,
        scheme=scheme.capitalize() or None,
        token=token or None,
        certificate_path=given.cert_file,
        private_key_path=given.key_file,
        default_namespace=credentials.namespace,
        proxy_url=given.proxy,
    )


def watch(
    registry: kopf.OperatorRegistry, resource: Resource, informer: Informer[Any], loop: asyncio.AbstractEventLoop
) -> None:
    """Let an informer be told by Kopf's watch of a resource, in the informer's own loop."""

    @kopf.on.event(resource.group, resource.version, resource.plural, registry=registry, id=resource.plural)
    async def told(event: Mapping[str, Any], **_: Any) -> None:
        body = cast("dict[str, Any]", event["object"])
        loop.call_soon_threadsafe(informer.forget if event["type"] == "DELETED" else informer.feed, body)


def new_settings(*, scans: bool = True) -> kopf.OperatorSettings:
    """Settings for watches that end and begin anew, and for no word about each event.

    `scans`: watch CustomResourceDefinitions, to notice kinds that come and go. Rights in namespaces do not allow it.
    """
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = not scans
    settings.networking.request_timeout = REQUEST_SECONDS
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.client_timeout = WATCH_SECONDS + 30
    settings.watching.connect_timeout = 5.0
    settings.watching.chunk_size = 500
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.process.ultimate_exiting_timeout = 30.0
    return settings


Answer = Callable[[Mapping[str, Any], Mapping[str, Any] | None], tuple[list[str], list[str]]]
"""From the object and the one before it to what forbids it and what warns."""


def admit(registry: kopf.OperatorRegistry, resource: Resource, answer: Answer) -> None:
    """Let `answer` decide about creations and updates of a resource."""

    @kopf.on.validate(
        resource.group,
        resource.version,
        resource.plural,
        registry=registry,
        id="validate",
        operations=["CREATE", "UPDATE"],
    )
    async def validate(*, body: kopf.Body, warnings: list[str], old: Any = None, **_: Any) -> None:
        errors, told = answer(dict(body), None if old is None else dict(old))
        warnings.extend(told)
        if errors:
            raise kopf.AdmissionError("\n".join(errors), code=422)


class KopfThread:
    """Kopf in a thread and loop of its own: it ends by cancelling every task of its loop, and takes the signals."""

    def __init__(self, registry: kopf.OperatorRegistry, namespaces: Collection[str]) -> None:
        self._registry = registry
        self._namespaces = namespaces
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: Future[None] = Future()

    async def run(self) -> None:
        """Run until cancelled. Raises ClusterError: Kopf gave up, for example over what it was answered."""
        # That signals are not its business is known.
        logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
        threading.Thread(target=self._main, name="kopf", daemon=True).start()
        try:
            await asyncio.wrap_future(self._ended)
        except Exception as error:
            raise ClusterError(f"the watch of EPDDeployments gave up: {error!r}") from error

    def stop(self) -> None:
        """Ask it to end; nothing waits for it, since it writes nothing."""
        if self._loop is not None and not self._ended.done():
            self._loop.call_soon_threadsafe(self._stop.set)

    def _main(self) -> None:
        try:
            asyncio.run(self._operate())
        except BaseException as error:
            if not self._ended.cancelled():
                self._ended.set_exception(error)
        else:
            if not self._ended.cancelled():
                self._ended.set_result(None)

    async def _operate(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await kopf.operator(
            registry=self._registry,
            settings=new_settings(scans=not self._namespaces),
            standalone=True,
            clusterwide=not self._namespaces,
            namespaces=self._namespaces,
            stop_flag=self._stop,
        )
