"""Engines as EndpointSlices tell them: list, then watch, and list again after any gap."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from typing import Any, Final

from epd_proxy import log
from epd_proxy.config import Discovery, Role
from epd_proxy.endpoints import Fleet
from epd_proxy.kube import KubeClient, KubeError
from epd_proxy.members import Member, Members

LABEL_INSTANCE: Final = "app.kubernetes.io/instance"
LABEL_ROLE: Final = "epd.dev/role"
LABEL_REVISION: Final = "epd.dev/revision"
LABEL_TRAFFIC: Final = "epd.dev/traffic"
"""On the slices of a revision's decoders; "false" where it gets no new requests. Absent where it does."""
NO_TRAFFIC: Final = "false"
LABEL_VERSION: Final = "epd.dev/engine-version"
LABEL_EMBEDDINGS: Final = "epd.dev/embeddings-connector"
LABEL_KV: Final = "epd.dev/kv-connector"
LABEL_DATA_PARALLEL: Final = "epd.dev/data-parallel-size"
LABEL_TENSOR_PARALLEL: Final = "epd.dev/tensor-parallel-size"

LIST_SECONDS: Final = 30.0
WATCH_SECONDS: Final = 240
"""How long the server is asked to keep a watch. A list comes after it, so that nothing stays wrong for longer."""
SILENCE_SECONDS: Final = WATCH_SECONDS + 60.0
BACK_OFF: Final = (0.2, 1.0, 2.0, 5.0, 10.0)


class Watcher:
    """Keeps members in step with the EndpointSlices of one deployment.

    While the API server can't be asked, what was known last stays: the health checks go on.
    """

    def __init__(self, client: KubeClient, discovery: Discovery, members: Members, fleet: Fleet) -> None:
        self._client = client
        self._path = f"/apis/discovery.k8s.io/v1/namespaces/{discovery.namespace}/endpointslices"
        self._selector = f"{LABEL_INSTANCE}={discovery.instance},{LABEL_ROLE}"
        self._members = members
        self._fleet = fleet
        self._slices: dict[str, dict[str, Any]] = {}
        self._revisions: set[str] = set()

    async def run(self) -> None:
        """Watch for ever."""
        failures = 0
        while True:
            try:
                version = await self._list()
                failures = 0
                await self._watch(version)
            except KubeError as error:
                if error.status != 410:  # a resource version that is too old is no failure
                    failures += 1
                    log.warning("discovery", reason=str(error))
            pause = BACK_OFF[min(failures, len(BACK_OFF) - 1)]
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311  keeps replicas apart

    async def _list(self) -> str:
        found = await self._client.list(self._path, LIST_SECONDS, labelSelector=self._selector)
        self._slices = {_name(slice_): slice_ for slice_ in found.get("items") or ()}
        self._apply()
        return str(found.get("metadata", {}).get("resourceVersion", ""))

    async def _watch(self, version: str) -> None:
        events = self._client.watch(
            self._path,
            SILENCE_SECONDS,
            labelSelector=self._selector,
            resourceVersion=version,
            timeoutSeconds=str(WATCH_SECONDS),
        )
        async for event in events:
            slice_ = event.get("object") or {}
            match event.get("type"):
                case "ADDED" | "MODIFIED":
                    self._slices[_name(slice_)] = slice_
                case "DELETED":
                    self._slices.pop(_name(slice_), None)
                case "BOOKMARK":
                    continue
                case _:
                    raise KubeError(int(slice_.get("code") or 0), f"the watch ended: {slice_.get('message')}")
            self._apply()

    def _apply(self) -> None:
        self._fleet.close(closed_in(self._slices.values()))
        self._members.set(members_of(self._slices.values()))
        roles = roles_of(self._slices.values())
        for revision in self._revisions - roles.keys():
            self._fleet.set_roles(revision, ())
        for revision, known in roles.items():
            self._fleet.set_roles(revision, known)
        self._revisions = set(roles)


def roles_of(slices: Iterable[dict[str, Any]]) -> dict[str, set[Role]]:
    """Return the roles of each revision: those for which there is a Service, with or without engines."""
    out: dict[str, set[Role]] = {}
    for slice_ in slices:
        known = _role_and_revision(slice_)
        if known:
            out.setdefault(known[1], set()).add(known[0])
    return out


def closed_in(slices: Iterable[dict[str, Any]]) -> set[str]:
    """Return the revisions that get no new requests. A Service may have several slices: the first that says it does."""
    out = set()
    for slice_ in slices:
        known = _role_and_revision(slice_)
        if known and _labels(slice_).get(LABEL_TRAFFIC) == NO_TRAFFIC:
            out.add(known[1])
    return out


def members_of(slices: Iterable[dict[str, Any]]) -> list[Member]:
    """Return the engines that are ready and not about to end."""
    out: dict[Member, None] = {}
    for slice_ in slices:
        known = _role_and_revision(slice_)
        port = next((p["port"] for p in slice_.get("ports") or () if p.get("name") in ("http", "", None)), None)
        if known is None or not port:
            continue
        labels = _labels(slice_)
        for endpoint in slice_.get("endpoints") or ():
            conditions = endpoint.get("conditions") or {}
            # An absent `ready` is to be taken as true (discovery.k8s.io/v1).
            if conditions.get("ready") is False or conditions.get("terminating"):
                continue
            for address in endpoint.get("addresses", ())[:1]:
                member = Member(
                    role=known[0],
                    host=address,
                    port=port,
                    revision=known[1],
                    version=labels.get(LABEL_VERSION, ""),
                    embeddings_connector=labels.get(LABEL_EMBEDDINGS, ""),
                    kv_connector=labels.get(LABEL_KV, ""),
                    data_parallel=_number(labels.get(LABEL_DATA_PARALLEL)),
                    tensor_parallel=_number(labels.get(LABEL_TENSOR_PARALLEL)),
                    uid=str((endpoint.get("targetRef") or {}).get("uid", "")),
                )
                out[member] = None
    return list(out)


def _role_and_revision(slice_: dict[str, Any]) -> tuple[Role, str] | None:
    labels = _labels(slice_)
    try:
        return Role(labels.get(LABEL_ROLE, "")), labels.get(LABEL_REVISION, "")
    except ValueError:
        return None


def _labels(slice_: dict[str, Any]) -> dict[str, str]:
    return slice_.get("metadata", {}).get("labels") or {}


def _name(slice_: dict[str, Any]) -> str:
    return str(slice_.get("metadata", {}).get("name", ""))


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() and int(text) > 0 else 1
