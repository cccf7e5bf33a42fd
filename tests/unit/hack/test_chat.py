import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from hack.chat import Answer, RefusedError, ask, body, metric

METRICS = r"""# HELP requests_total Requests
requests_total{role="encode",outcome="200"} 2.0
requests_total{role="encode",outcome="500"} 1
requests_total{role="decode",outcome="200",note="a \"quoted\" word, and more"} 1e3
other{role="encode"} 7
plain 4
"""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.answer(200, METRICS.encode())

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != "Bearer key":
            self.answer(401, b"no key")
            return
        content: dict[str, Any] = {
            "choices": [{"message": {"content": request["model"]}, "token_ids": [1, 2]}],
            "usage": {"prompt_tokens": 3},
        }
        self.answer(200, json.dumps(content).encode())

    def answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("requests_total", {"role": "encode"}, 3),
        ("requests_total", {"role": "encode", "outcome": "500"}, 1),
        ("requests_total", {"role": "decode"}, 1000),
        ("requests_total", {}, 1003),
        ("plain", {}, 4),
        ("requests", {}, 0),
    ],
)
def test_metric(url: str, name: str, labels: dict[str, str], value: float) -> None:
    assert metric(url, name, **labels) == value


def test_ask(url: str) -> None:
    assert ask(url, body("tiny", "What?"), "key") == Answer("tiny", (1, 2), 3)
    with pytest.raises(RefusedError, match="401: no key"):
        ask(url, body("tiny", "What?"))


def test_pictures_come_before_the_question() -> None:
    [message] = body("tiny", "What?", [b"a", b"b"])["messages"]
    assert [part["type"] for part in message["content"]] == ["image_url", "image_url", "text"]
