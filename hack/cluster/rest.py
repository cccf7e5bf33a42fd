"""A thin asynchronous client of the API server: paths and JSON objects, as they are in the API's reference."""

import asyncio
import json
import ssl
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import aiohttp
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import load_kube_config

from hack.cluster.kubectl import Object

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
WATCH_SECONDS = 600
RETRY_SECONDS = 0.5
CLOSE_SECONDS = 0.25

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class ApiError(Exception):
    """The API server refused; `status` is its HTTP code and the message its own words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


@dataclass(frozen=True)
class Event:
    """A change that a watch saw."""

    type: EventType
    object: Object


class Rest:
    """One cluster and one user agent. To be entered as an asynchronous context."""

    def __init__(self, kubeconfig: Path, user_agent: str) -> None:
        self._kubeconfig = kubeconfig
        self._user_agent = user_agent

    async def __aenter__(self) -> Self:
        configuration = Configuration()
        await load_kube_config(  # type: ignore[no-untyped-call]  # the library's loader has no annotations
            str(self._kubeconfig), client_configuration=configuration
        )
        headers = {"User-Agent": self._user_agent}
        if token := await configuration.get_api_key_with_prefix("BearerToken", "authorization"):
            headers["Authorization"] = token
        self._session = aiohttp.ClientSession(
            configuration.host.rstrip("/"),
            headers=headers,
            connector=aiohttp.TCPConnector(ssl=_tls(configuration), limit=32),
            timeout=aiohttp.ClientTimeout(total=60),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session.connector is not None:
            await self._session.connector.close(abort_ssl=True)  # else TLS ends in the background, later than the loop
        await self._session.close()
        await asyncio.sleep(CLOSE_SECONDS)

    async def get(self, path: str, **query: str) -> Object:
        """Read one object, or a list. Raises ApiError."""
        return await self._request("GET", path, query=query)

    async def create(self, path: str, body: Object) -> Object:
        """Create an object in a collection. Raises ApiError."""
        return await self._request("POST", path, body)

    async def patch(self, path: str, body: Object, content_type: str = MERGE) -> Object:
        """Change an object. Raises ApiError."""
        return await self._request("PATCH", path, body, content_type=content_type)

    async def delete(self, path: str, body: Object | None = None) -> Object:
        """Delete an object. Raises ApiError."""
        return await self._request("DELETE", path, body or {})

    async def watch(self, path: str, **query: str) -> AsyncIterator[Event]:
        """The objects of a collection as ADDED, then every change, for ever.

        After a gap the collection is listed again: changes in between appear as MODIFIED, losses as DELETED.
        """
        known: dict[str, Object] = {}
        while True:
            try:
                listed = await self.get(path, **query)
                found = {item["metadata"]["uid"]: item for item in listed["items"] or []}
                for uid in known.keys() - found.keys():
                    yield Event("DELETED", known.pop(uid))
                for uid, item in found.items():
                    yield Event("MODIFIED" if uid in known else "ADDED", item)
                known = found
                async for event in self._changes(path, query, listed["metadata"]["resourceVersion"]):
                    uid = event.object["metadata"]["uid"]
                    if event.type == "DELETED":
                        known.pop(uid, None)
                    else:
                        known[uid] = event.object
                    yield event
            except (ApiError, aiohttp.ClientError, TimeoutError) as error:
                print(f"watch of {path}: {error!r}; listing again", file=sys.stderr)
                await asyncio.sleep(RETRY_SECONDS)

    async def _changes(self, path: str, query: Mapping[str, str], version: str) -> AsyncIterator[Event]:
        """One watch connection after the other from a version on, until the server says that it is too old."""
        while True:
            asked = {
                **query,
                "watch": "1",
                "allowWatchBookmarks": "true",
                "timeoutSeconds": str(WATCH_SECONDS),
                "resourceVersion": version,
            }
            timeout = aiohttp.ClientTimeout(total=None, sock_read=WATCH_SECONDS + 60)
            async with self._session.get(path, params=asked, timeout=timeout) as response:
                if response.status >= 400:
                    raise ApiError(response.status, await response.text())
                async for line in _lines(response):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise ApiError(event["object"].get("code", 0), event["object"].get("message", ""))
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        yield Event(event["type"], event["object"])

    async def _request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Object:
        headers = {"Content-Type": content_type} if body is not None else {}
        data = None if body is None else json.dumps(body)
        async with self._session.request(method, path, params=query, data=data, headers=headers) as response:
            text = await response.text()
            if response.status >= 400:
                raise ApiError(response.status, _message(text))
            answer: Object = json.loads(text)
            return answer


def _tls(configuration: Configuration) -> ssl.SSLContext | bool:
    if not configuration.verify_ssl:
        return False
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Lines of any length, which `readline` would refuse."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line


def _message(text: str) -> str:
    try:
        answer: Any = json.loads(text)
    except ValueError:
        return text
    return str(answer.get("message", text)) if isinstance(answer, dict) else text
