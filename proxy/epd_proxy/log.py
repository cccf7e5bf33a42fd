"""The proxy's own log: JSON lines on standard error, by the standard library alone, which every process has loaded."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

_LOGGER = logging.getLogger("epd_proxy")


def info(event: str, **fields: Any) -> None:
    """Log what happened."""
    _LOGGER.info(event, extra={"fields": fields})


def warning(event: str, **fields: Any) -> None:
    """Log what somebody should look at."""
    _LOGGER.warning(event, extra={"fields": fields})


def exception(event: str, **fields: Any) -> None:
    """Log the exception that is being handled: a mistake of the proxy's own."""
    _LOGGER.error(event, exc_info=True, extra={"fields": fields})  # noqa: LOG014  called in a handler


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        seconds = time.gmtime(record.created)
        line: dict[str, Any] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', seconds)}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def configure() -> None:
    """Write to standard error from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    _LOGGER.setLevel(logging.INFO)
