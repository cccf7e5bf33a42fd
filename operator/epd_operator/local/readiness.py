"""Whether an instance or the proxy serves the model: the one sign of readiness that counts."""

import http.client
import json
from dataclasses import dataclass
from typing import Any

TIMEOUT_SECONDS = 2.0
_MAX_ANSWER = 1 << 20


@dataclass(frozen=True, slots=True)
class Probe:
    """What a server said."""

    serves: bool
    says: str
    """For people: what came instead of the model."""


def probe(host: str, port: int, model: str, key: str | None, timeout_seconds: float = TIMEOUT_SECONDS) -> Probe:
    """Ask for GET /v1/models and look for the model there. Raises nothing."""
    connection = http.client.HTTPConnection(host, port, timeout=timeout_seconds)
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        connection.request("GET", "/v1/models", headers=headers)
        answer = connection.getresponse()
        body = answer.read(_MAX_ANSWER)
    except ConnectionRefusedError:
        return Probe(serves=False, says="does not listen yet")
    except (OSError, http.client.HTTPException) as error:
        return Probe(serves=False, says=f"does not answer: {error or type(error).__name__}")
    finally:
        connection.close()
    if answer.status != 200:
        return Probe(serves=False, says=f"answers GET /v1/models with status {answer.status}")
    names = _model_names(body)
    if model not in names:
        return Probe(serves=False, says=f"serves {', '.join(names) or 'no model'} instead of {model}")
    return Probe(serves=True, says=f"serves {model}")


def _model_names(body: bytes) -> list[str]:
    try:
        answer: Any = json.loads(body)
        return [str(model["id"]) for model in answer["data"]]
    except (ValueError, KeyError, TypeError):
        return []
