"""The client over HTTP: requests, refusals, watches and tokens, against a server of the test's own."""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml
from aiohttp import web
from kubernetes.aio.client import Configuration

from epd_operator.cluster.client import ApiServer
from epd_operator.cluster.credentials import Credentials
from epd_operator.cluster.errors import ApiError, Unreachable
from epd_operator.cluster.resources import CONFIG_MAPS, DEPLOYMENTS, NODES


class Renewing(Credentials):
    """A token that is wrong until it is renewed."""

    async def renew(self) -> None:
        self.configuration.api_key["BearerToken"] = "Bearer new"


@contextlib.asynccontextmanager
async def serving(handler: Any, token: str = "Bearer new") -> AsyncIterator[ApiServer]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    configuration = Configuration(host=f"http://{host}:{port}")
    configuration.api_key["BearerToken"] = token
    try:
        async with ApiServer(Renewing(configuration, "n")) as server:
            yield server
    finally:
        await runner.cleanup()


async def test_paths_and_questions() -> None:
    seen = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.method, request.path, dict(request.query), request.headers.get("Content-Type")))
        return web.json_response({"metadata": {}})

    body = {"metadata": {"name": "x", "namespace": "n"}}
    async with serving(handler) as server:
        await server.get(NODES, None, "x")
        await server.create(CONFIG_MAPS, body)
        await server.apply(DEPLOYMENTS, body, force=True)
        await server.patch(DEPLOYMENTS, "n", "x", {}, "status")
        await server.delete(CONFIG_MAPS, "n", "x", "u")
    manager = {"fieldManager": "epd-operator"}
    assert seen == [
        ("GET", "/api/v1/nodes/x", {}, None),
        ("POST", "/api/v1/namespaces/n/configmaps", manager, "application/json"),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/n/deployments/x",
            {**manager, "force": "true"},
            "application/apply-patch+yaml",
        ),
        ("PATCH", "/apis/apps/v1/namespaces/n/deployments/x/status", manager, "application/merge-patch+json"),
        ("DELETE", "/api/v1/namespaces/n/configmaps/x", {}, "application/json"),
    ]


async def test_an_apply_is_json_and_yaml() -> None:
    text = 'a\U0001f600\x7f\x85\u2028\ufeff\uffff\\ud83d"/\t'
    seen = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(await request.text())
        return web.json_response({"metadata": {}})

    async with serving(handler) as server:
        await server.apply(DEPLOYMENTS, {"metadata": {"name": "x", "namespace": "n"}, "a": text}, force=True)
    assert json.loads(seen[0])["a"] == text
    assert yaml.load(seen[0], Loader=yaml.CSafeLoader)["a"] == text


async def test_lists_come_in_pages() -> None:
    async def handler(request: web.Request) -> web.Response:
        page = int(request.query.get("continue", "0"))
        more = {"continue": str(page + 1)} if page < 2 else {}
        return web.json_response({"metadata": {"resourceVersion": "7", **more}, "items": [{"page": page}]})

    async with serving(handler) as server:
        pages = [page async for page in server.pages(CONFIG_MAPS, "n", "a=b")]
    assert [([item["page"] for item in page.items], page.version) for page in pages] == [
        ([0], "7"),
        ([1], "7"),
        ([2], "7"),
    ]


async def test_a_refusal_has_the_servers_own_words() -> None:
    async def handler(_: web.Request) -> web.Response:
        status = {"kind": "Status", "reason": "TooManyRequests", "message": "slow down", "code": 429}
        return web.json_response(status, status=429, headers={"Retry-After": "3"})

    async with serving(handler) as server:
        with pytest.raises(ApiError, match="429 TooManyRequests: slow down") as caught:
            await server.get(CONFIG_MAPS, "n", "x")
    assert caught.value.retry_after == 3
    assert caught.value.is_passing


async def test_a_refusal_in_an_ending_namespace_says_so() -> None:
    async def handler(_: web.Request) -> web.Response:
        causes = [{"reason": "NamespaceTerminating", "message": "going", "field": "metadata.namespace"}, "?"]
        status = {"kind": "Status", "reason": "Forbidden", "message": "no", "details": {"causes": causes}}
        return web.json_response(status, status=403)

    async with serving(handler) as server:
        with pytest.raises(ApiError) as caught:
            await server.create(CONFIG_MAPS, {"metadata": {"name": "x", "namespace": "n"}})
    assert caught.value.is_of_ending_namespace


async def test_a_refusal_that_is_not_json() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=502, text="<html>bad gateway</html>")

    async with serving(handler) as server:
        with pytest.raises(ApiError, match="bad gateway"):
            await server.get(CONFIG_MAPS, "n", "x")


async def test_a_token_that_ran_out_is_renewed_once() -> None:
    seen = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        if request.headers["Authorization"] != "Bearer new":
            return web.json_response({"message": "no"}, status=401)
        return web.json_response({"metadata": {}})

    async with serving(handler, token="Bearer old") as server:
        await server.get(CONFIG_MAPS, "n", "x")
    assert seen == ["Bearer old", "Bearer new"]


async def test_a_watch_has_lines_of_any_length_and_ends_with_the_servers_error() -> None:
    big = "x" * 300_000
    lines = [
        {"type": "ADDED", "object": {"metadata": {"resourceVersion": "1"}, "data": big}},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "2"}}},
        {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}},
    ]

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        for start in range(0, len(text), 50_000):
            await response.write(text[start : start + 50_000])
        return response

    seen = []

    async def follow(server: ApiServer) -> None:
        async for event in server.watch(CONFIG_MAPS, "0"):
            seen.append(event.type)  # noqa: PERF401  what came before the error counts

    async with serving(handler) as server:
        with pytest.raises(ApiError, match="too old") as caught:
            await follow(server)
    assert seen == ["ADDED", "BOOKMARK"]
    assert caught.value.is_expired


async def test_no_answer_is_told_with_the_request() -> None:
    async def handler(request: web.Request) -> web.Response:
        transport = request.transport
        assert transport is not None
        transport.close()
        return web.Response()

    async with serving(handler) as server:
        with pytest.raises(Unreachable, match="GET /api/v1/nodes/x"):
            await server.get(NODES, None, "x")
