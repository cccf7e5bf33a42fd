"""What goes wrong with a request, in the shape that OpenAI clients and vLLM share."""

from __future__ import annotations

import json
from http import HTTPStatus

_TYPES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    404: "NotFoundError",
    405: "MethodNotAllowedError",
    408: "RequestTimeoutError",
    411: "BadRequestError",
    413: "RequestTooLargeError",
    431: "BadRequestError",
    501: "NotImplementedError",
    502: "BadGatewayError",
    503: "ServiceUnavailableError",
    504: "GatewayTimeoutError",
}


class ProxyError(Exception):
    """A request ends with this status; `body` is an engine's own error body where there is one.

    `retry_after` is in seconds and becomes the header of that name.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        retry_after: int | None = None,
        body: bytes | None = None,
        close: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.retry_after = retry_after
        self.body = body
        self.close = close

    def to_json(self) -> bytes:
        """Return the response body."""
        if self.body is not None:
            return self.body
        return error_json(self.status, self.message, self.param)


def error_json(status: int, message: str, param: str | None = None) -> bytes:
    """Return `{"error": {message, type, param, code}}`, the shape of vLLM's ErrorResponse."""
    kind = _TYPES.get(status) or ("InternalServerError" if status >= 500 else "BadRequestError")
    error = {"message": message, "type": kind, "param": param, "code": status}
    return json.dumps({"error": error}, separators=(",", ":")).encode()


def passed_on(status: int, body: bytes, where: str) -> ProxyError:
    """Return an engine's error for the client: its own body if that has the shape, else its text put into the shape."""
    try:
        error = json.loads(body)["error"]
        shaped = isinstance(error, dict) and {"message", "type", "code"} <= error.keys()
    except (ValueError, KeyError, TypeError, RecursionError):
        shaped = False
    if shaped:
        return ProxyError(status, f"the {where} engine answered {status}", body=bytes(body))
    text = " ".join(body[:500].decode(errors="replace").split()) or phrase(status)
    return ProxyError(status, f"the {where} engine answered {status}: {text}")


def sse_error(status: int, message: str, path: bytes = b"") -> bytes:
    """Return the events that end a broken stream: for Anthropic's API as vLLM does (0.33 anthropic/serving.py)."""
    if path == b"/v1/messages":
        error = {"type": "error", "error": {"type": "api_error", "message": message}}
        return b"event: error\ndata: " + json.dumps(error, separators=(",", ":")).encode() + b"\n\n"
    return b"data: " + error_json(status, message) + b"\n\ndata: [DONE]\n\n"


def phrase(status: int) -> str:
    """Return the reason phrase of a status."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Status"
