"""A stand-in for `vllm`: it starts, serves the model's name, and fails as asked. It never sees a model.

Like the real one it is two processes in one session, maps shared memory that both use, and litters its temporary
directory. FAULT, in its environment, says what goes wrong.
"""

# ruff: noqa: T201  (a program that prints)
import http.server
import json
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

VERSION = "0.32.0"


def option(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/v1/models" and self.headers["Authorization"] != f"Bearer {os.environ['VLLM_API_KEY']}":
            self.answer(401, {"error": "Unauthorized"})
            return
        name = "another" if os.environ.get("FAULT") == "wrong-model" else option("--served-model-name")
        answers: dict[str, Any] = {
            "/v1/models": {"object": "list", "data": [{"id": name, "object": "model"}]},
            "/version": {"version": VERSION},
            "/health": {},
        }
        known = self.path in answers
        self.answer(200 if known else 404, answers.get(self.path, {}))

    def answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def share_memory() -> mmap.mmap:
    """Map a segment; the engine's process inherits the name and maps it too."""
    path = Path(os.environ.setdefault("FAKE_SEGMENT", f"/dev/shm/fake_vllm_{os.getpid()}"))
    with path.open("a+b") as file:
        file.truncate(4096)
        return mmap.mmap(file.fileno(), 4096)


def engine() -> None:
    """The second process: lives until its parent asks it to end."""
    memory = share_memory()
    if os.environ.get("FAULT") == "ignores-sigterm":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while memory:
        time.sleep(1)


def end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    child.wait()
    Path(os.environ["FAKE_SEGMENT"]).unlink(missing_ok=True)
    os._exit(0)


def serve() -> None:
    fault = os.environ.get("FAULT", "")
    if fault == "dies-at-start":
        print("Traceback (most recent call last):\nValueError: the flag is wrong\nsee above", file=sys.stderr)
        sys.exit(3)
    if fault == "garbage":
        sys.stdout.buffer.write(bytes(range(256)) * 20 + b"\x1b[31mred\x1b[0m\n")
        sys.exit(4)
    (Path(os.environ["TMPDIR"]) / "socket").touch()
    memory = share_memory()
    child = subprocess.Popen([sys.executable, __file__, "engine"])
    if fault == "ignores-sigterm":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=end, args=(child,)).start())
    print("the engine starts", flush=True)
    while fault == "never-ready":
        time.sleep(1)
    server = http.server.ThreadingHTTPServer((option("--host"), int(option("--port"))), Handler)
    print("the engine serves", flush=True)
    server.serve_forever()
    del memory


if __name__ == "__main__":
    if sys.argv[1] == "--version":
        print(VERSION)
    elif sys.argv[1] == "engine":
        engine()
    else:
        serve()
