"""The API server over HTTP: aiohttp alone costs a third of the CPU that generated clients do."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp

from epd_operator.cluster.api import FIELD_MANAGER, Page, WatchEvent
from epd_operator.cluster.credentials import Credentials
from epd_operator.cluster.errors import ApiError, Unreachable
from epd_operator.cluster.resources import Object, Resource

PAGE = 50
"""Objects of one answer to a list: a page is in memory as text and as objects at once, so it decides about the peak."""
REQUEST_SECONDS = 30.0
CONNECT_SECONDS = 5.0
WATCH_SECONDS = 300
"""How long the server keeps one watch open."""
SILENCE_SECONDS = 90.0
"""A watch without a word for so long is dead: bookmarks come each minute."""
UNAUTHORIZED = 401
APPLY = "application/apply-patch+yaml"
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
MERGE = "application/merge-patch+json"


class ApiServer:
    """One API server and one identity. To be entered as an asynchronous context."""

    def __init__(self, credentials: Credentials, user_agent: str = FIELD_MANAGER, connections: int = 32) -> None:
        self._credentials = credentials
        self._user_agent = user_agent
        self._connections = connections
        given = credentials.configuration
        self._options: dict[str, Any] = {
            name: value for name, value in (("proxy", given.proxy), ("server_hostname", given.tls_server_name)) if value
        }

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            self._credentials.server,
            headers={"User-Agent": self._user_agent, "Accept": "application/json"},
            # Watches hold a connection each: the limit is for requests.
            connector=aiohttp.TCPConnector(ssl=self._credentials.tls(), limit=self._connections + 32),
            timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS, connect=CONNECT_SECONDS),
            json_serialize=_dumps,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session.connector is not None:
            await self._session.connector.close(abort_ssl=True)  # else TLS ends in the background, later than the loop
        await self._session.close()

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object:
        """Read one object."""
        return await self._request("GET", resource.path(namespace, name))

    async def pages(self, resource: Resource, namespace: str | None = None, labels: str = "") -> AsyncIterator[Page]:
        """Read a collection, page by page."""
        query = {"limit": str(PAGE)} | ({"labelSelector": labels} if labels else {})
        while True:
            page = await self._request("GET", resource.collection(namespace), query=query)
            metadata = page["metadata"]
            yield Page(page.get("items") or [], metadata["resourceVersion"])
            if not metadata.get("continue"):
                return
            query["continue"] = metadata["continue"]

    async def watch(
        self, resource: Resource, version: str, namespace: str | None = None, labels: str = ""
    ) -> AsyncIterator[WatchEvent]:
        """Changes after a version, until the server ends the watch."""
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_SECONDS),
        } | ({"labelSelector": labels} if labels else {})
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
        path = resource.collection(namespace)
        try:
            async with self._session.get(
                path, params=query, timeout=timeout, headers=await self._authorization(), **self._options
            ) as response:
                if response.status >= 400:
                    raise _refusal(response, await response.read())
                connection = response.connection
                try:
                    async for line in _lines(response):
                        yield _event(line)
                finally:  # left in its midst, it would end TLS in the background
                    if connection is not None and connection.transport is not None:
                        connection.transport.abort()
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise Unreachable(f"watch of {path}: {error!r}") from error

    async def create(self, resource: Resource, body: Object) -> Object:
        """Create an object."""
        path = resource.collection(body["metadata"].get("namespace"))
        return await self._request("POST", path, body, query={"fieldManager": FIELD_MANAGER})

    async def apply(self, resource: Resource, body: Object, *, force: bool) -> Object:
        """Server-side apply."""
        metadata = body["metadata"]
        query = {"fieldManager": FIELD_MANAGER, "force": "true" if force else "false"}
        return await self._request(
            "PATCH", resource.path(metadata.get("namespace"), metadata["name"]), body, query=query, content_type=APPLY
        )

    async def patch(
        self, resource: Resource, namespace: str | None, name: str, body: Object, subresource: str = ""
    ) -> Object:
        """JSON merge patch."""
        path = resource.path(namespace, name, subresource)
        return await self._request("PATCH", path, body, query={"fieldManager": FIELD_MANAGER}, content_type=MERGE)

    async def delete(self, resource: Resource, namespace: str | None, name: str, uid: str) -> None:
        """Delete one object, in the background what it owns."""
        options = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        await self._request("DELETE", resource.path(namespace, name), options)

    async def _authorization(self) -> dict[str, str]:
        token = await self._credentials.token()
        return {} if token is None else {"Authorization": token}

    async def _request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        headers = {} if body is None else {"Content-Type": content_type}
        data = None if body is None else _dumps(body).encode()
        try:
            status, content, refusal = await self._send(method, path, query, data, headers)
            if status == UNAUTHORIZED:  # the token ran out: never more than one new one for one request
                await self._credentials.renew()
                status, content, refusal = await self._send(method, path, query, data, headers)
            if refusal is not None:
                raise refusal
            answer: Object = json.loads(content)
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            raise Unreachable(f"{method} {path}: {error!r}") from error
        return answer

    async def _send(
        self, method: str, path: str, query: Mapping[str, str] | None, data: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes, ApiError | None]:
        headers = headers | await self._authorization()
        async with self._session.request(
            method, path, params=query, data=data, headers=headers, **self._options
        ) as response:
            content = await response.read()
            return response.status, content, _refusal(response, content) if response.status >= 400 else None


def _dumps(value: Any) -> str:
    """JSON that is YAML too, as which the API server reads an apply.

    YAML joins no pair of surrogates, so characters beyond U+FFFF are written as they are; those that YAML does not
    print are escaped.
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return _NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _event(line: bytes) -> WatchEvent:
    event = json.loads(line)
    kind, body = event["type"], event["object"]
    if kind == "ERROR":
        raise ApiError(body.get("code", 500), body.get("reason", ""), body.get("message", ""))
    return WatchEvent(kind, body)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Lines of any length, which `readline` would refuse."""
    parts: list[bytes] = []
    async for chunk in response.content.iter_any():
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            whole = b"".join((*parts, line))
            parts.clear()
            if whole:
                yield whole
        parts.append(rest)


def _refusal(response: aiohttp.ClientResponse, content: bytes) -> ApiError:
    try:
        answer = json.loads(content)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        answer = {"message": content[:2000].decode(errors="replace").strip()}
    retry_after = response.headers.get("Retry-After", "")
    details = answer.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return ApiError(
        response.status,
        str(answer.get("reason", "")),
        str(answer.get("message", "")),
        float(retry_after) if retry_after.isdigit() else None,
        tuple(str(cause.get("reason", "")) for cause in causes or () if isinstance(cause, dict)),
    )
