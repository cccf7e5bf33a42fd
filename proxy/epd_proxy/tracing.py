"""Spans of the proxy's own, for OpenTelemetry: one for a request and one for each of its stages.

Off by default. A request that is sampled notes the times of its stages; the rest happens when it has ended, and in
the background, where spans are gathered and sent as OTLP over HTTP in JSON (opentelemetry-proto 1.x, `/v1/traces`).
Trace context of clients is passed on to the engines in any case; with spans, as the span's child.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import secrets
import ssl
import time
from collections import deque
from typing import Any, Final
from urllib.parse import urlsplit

from epd_proxy import __version__, log
from epd_proxy.config import Tracing
from epd_proxy.request import Request

_PARENT: Final = re.compile(rb"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})\Z")
_SEND_SECONDS: Final = 2.0
_TIMEOUT_SECONDS: Final = 10.0
_MOST: Final = 4096
_SERVER, _CLIENT, _ERROR = 2, 3, 2


class Trace:
    """The ids of a sampled request, and when it entered each stage (nanoseconds of the epoch)."""

    __slots__ = ("parent", "span", "stages", "started", "trace")

    def __init__(self, trace: str, parent: str) -> None:
        self.trace = trace
        self.parent = parent
        self.span = secrets.token_hex(8)
        self.started = time.time_ns()
        self.stages: list[tuple[str, int]] = []

    def enter(self, stage: str) -> None:
        """Note the beginning of a stage, and so the end of the one before."""
        self.stages.append((stage, time.time_ns()))

    def header(self) -> bytes:
        """Return the `traceparent` for engines."""
        return f"00-{self.trace}-{self.span}-01".encode()


class Tracer:
    """Samples requests, and sends their spans."""

    def __init__(self, tracing: Tracing) -> None:
        self._url = urlsplit((tracing.endpoint or "").rstrip("/") + "/v1/traces")
        self._ratio = tracing.sample_ratio
        self._random = random.Random()  # noqa: S311  a sample, not a secret
        self._spans: deque[dict[str, Any]] = deque(maxlen=_MOST)

    def sample(self, request: Request) -> None:
        """Decide whether a request is traced: as its parent says, else by chance."""
        given = _PARENT.match(request.headers.get(b"traceparent", b""))
        if given:
            if int(given[3], 16) & 1:
                request.trace = Trace(given[1].decode(), given[2].decode())
        elif self._random.random() < self._ratio:
            request.trace = Trace(secrets.token_hex(16), "")

    def finish(self, request: Request) -> None:
        """Keep the spans of a request that has ended."""
        trace = request.trace
        if trace is None:
            return
        now = time.time_ns()
        name = f"{request.method.decode()} {request.path.decode()}"
        root = _span(trace, name, (trace.started, now), span=trace.span, parent=trace.parent)
        root["kind"] = _SERVER
        root["attributes"] = [
            _attribute("http.response.status_code", request.status),
            _attribute("epd.request_id", request.id.decode("latin-1")),
        ]
        if request.status >= 500 or not request.status:
            root["status"] = {"code": _ERROR}
        self._spans.append(root)
        ends = [at for _, at in trace.stages[1:]] + [now]
        for (stage, start), end in zip(trace.stages, ends, strict=True):
            child = _span(trace, stage, (start, end), span=secrets.token_hex(8), parent=trace.span)
            child["kind"] = _CLIENT
            self._spans.append(child)

    async def run(self) -> None:
        """Send what was gathered, for ever."""
        failing = False
        while True:
            await asyncio.sleep(_SEND_SECONDS)
            if not self._spans:
                continue
            spans = list(self._spans)
            self._spans.clear()
            try:
                async with asyncio.timeout(_TIMEOUT_SECONDS):
                    await self._send(spans)
                failing = False
            except (OSError, TimeoutError, ValueError) as error:
                if not failing:
                    log.warning("spans lost", endpoint=self._url.geturl(), reason=str(error) or "no answer in time")
                failing = True

    async def _send(self, spans: list[dict[str, Any]]) -> None:
        resource = {"attributes": [_attribute("service.name", "epd-proxy"), _attribute("service.version", __version__)]}
        scope = {"scope": {"name": "epd_proxy"}, "spans": spans}
        body = json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}).encode()
        url = self._url
        secure = url.scheme == "https"
        context = ssl.create_default_context() if secure else None
        reader, writer = await asyncio.open_connection(url.hostname, url.port or (443 if secure else 4318), ssl=context)
        try:
            head = f"POST {url.path} HTTP/1.1\r\nhost: {url.netloc}\r\ncontent-type: application/json\r\n"
            writer.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
            status = (await reader.readline()).split()
            if len(status) < 2 or not status[1].startswith(b"2"):
                raise ValueError(f"the collector says {b' '.join(status)[:80].decode(errors='replace')}")
        finally:
            writer.close()


def _span(trace: Trace, name: str, times: tuple[int, int], *, span: str, parent: str) -> dict[str, Any]:
    return {
        "traceId": trace.trace,
        "spanId": span,
        "parentSpanId": parent,
        "name": name,
        "startTimeUnixNano": str(times[0]),
        "endTimeUnixNano": str(times[1]),
    }


def _attribute(name: str, value: str | int) -> dict[str, Any]:
    return {"key": name, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
