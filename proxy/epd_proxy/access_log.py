"""One JSON line a request, without any of its content. Lines are gathered and written a few times a second."""

from __future__ import annotations

import asyncio
import json
import os
import time

from epd_proxy.request import Request

_FLUSH_SECONDS = 0.2
_FLUSH_LINES = 512


class AccessLog:
    """Writes to a file descriptor; a reader that is too slow loses lines and holds nobody up."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._lines: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._waiting = False
        self.lost = 0

    def write(self, request: Request, now: float) -> None:
        """Note a request that has ended; `now` is the loop's time."""
        line = {
            "time": round(time.time(), 3),
            "request": request.id.decode("latin-1"),
            "method": request.method.decode("latin-1"),
            "path": request.path[:200].decode("latin-1"),
            "status": request.status,
            "stage": request.stage,
            "tenant": request.tenant,
            "bytes": request.length,
            "seconds": round(now - request.started, 6),
        }
        self._lines.append(json.dumps(line, separators=(",", ":")))
        if len(self._lines) >= _FLUSH_LINES:
            self.flush()
        elif not self._waiting:
            self._waiting = True
            self._loop.call_later(_FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what was gathered."""
        self._waiting = False
        if self._lines:
            lines, self._lines = self._lines, []
            try:
                os.write(self._descriptor, ("\n".join(lines) + "\n").encode())
            except OSError:
                self.lost += len(lines)
