"""Kopf as the informer of EPDDeployments and EPDRoleScales, and as the admission server.

It is not the state machine: handlers write nothing and keep nothing.
"""

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any, cast

import kopf

from epd_operator.cluster.credentials import Credentials
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


def watch(registry: kopf.OperatorRegistry, resource: Resource, informer: Informer[Any]) -> None:
    """Let an informer be told by Kopf's watch of a resource."""

    @kopf.on.event(resource.group, resource.version, resource.plural, registry=registry, id=resource.plural)
    async def told(event: Mapping[str, Any], **_: Any) -> None:
        body = cast("dict[str, Any]", event["object"])
        if event["type"] == "DELETED":
            informer.forget(body)
        else:
            informer.feed(body)


def new_settings() -> kopf.OperatorSettings:
    """Settings for watches that end and begin anew, and for no word about each event."""
    settings = kopf.OperatorSettings()
    settings.networking.request_timeout = REQUEST_SECONDS
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.client_timeout = WATCH_SECONDS + 30
    settings.watching.connect_timeout = 5.0
    settings.watching.chunk_size = 500
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.process.ultimate_exiting_timeout = 30.0
    return settings


def quiet(level: int = logging.WARNING) -> None:
    """Kopf logs each call of each handler."""
    for name in ("kopf", "kopf.objects", "kopf.activities"):
        logging.getLogger(name).setLevel(level)


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


run = functools.partial(kopf.operator, standalone=True)
