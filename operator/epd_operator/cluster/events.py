"""Events about an object, in events.k8s.io/v1."""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from epd_operator.cluster.resources import EVENTS, Object

MAX_NOTE = 1024
"""Bytes of a note (Kubernetes: core/validation/events.go)."""
COMPONENT = "epd-operator"


def event_about(
    body: Mapping[str, Any], *, kind: Literal["Normal", "Warning"], reason: str, action: str, note: str, instance: str
) -> Object:
    """An event that regards `body`. `action`: what was done or tried; `instance`: which operator says it."""
    metadata = body["metadata"]
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": f"{metadata['name'][:200]}.{uuid.uuid4().hex[:16]}", "namespace": metadata["namespace"]},
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": COMPONENT,
        "reportingInstance": instance[:128],
        "action": action,
        "type": kind,
        "reason": reason,
        "note": _shortened(note),
        "regarding": {
            "apiVersion": body["apiVersion"],
            "kind": body["kind"],
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata.get("resourceVersion", ""),
        },
    }


def _shortened(note: str) -> str:
    content = note.encode()
    return note if len(content) <= MAX_NOTE else content[: MAX_NOTE - 3].decode(errors="ignore") + "..."
