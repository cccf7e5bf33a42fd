import json
from pathlib import Path

import pytest

from hack.cluster.audit import WRITES, AuditLog
from hack.cluster.kubectl import Kubectl

# Does as the API server would for the request by which the log is known to be complete.
SCRIPT = """
for word; do case $word in audit-*) name=$word;; esac; done
printf '{"auditID": "%s", "verb": "get", "objectRef": {"name": "%s"}}\\n' $name $name >> LOG
"""


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    path = tmp_path / "audit.log"
    script = SCRIPT.replace("LOG", str(path))
    return AuditLog(path, Kubectl(["sh", "-c", script], tmp_path / "kubeconfig", tmp_path))


def write(log: AuditLog, identity: str, verb: str, agent: str, **reference: str) -> None:
    event = {
        "auditID": identity,
        "verb": verb,
        "userAgent": agent,
        "objectRef": reference,
        "responseStatus": {"code": 200},
        "user": {"username": "system:someone"},
    }
    with log.path.open("a") as file:
        file.write(json.dumps(event) + "\n")


def test_requests_are_told_apart(log: AuditLog) -> None:
    write(log, "1", "list", "operator/1", resource="pods", namespace="a")
    write(log, "2", "patch", "operator/1", resource="pods", subresource="status", namespace="a", name="p")
    write(log, "3", "patch", "kubectl", resource="pods", namespace="b")
    assert [request.verb for request in log.requests(user_agent="operator")] == ["list", "patch"]
    assert [request.name for request in log.requests(user_agent="operator", verbs=WRITES)] == ["p"]
    assert [request.user_agent for request in log.requests(resource="pods/status")] == ["operator/1"]
    assert len(log.requests(namespace="b")) == 1


def test_a_watch_counts_once(log: AuditLog) -> None:
    for _ in ("it starts", "it ends"):
        write(log, "1", "watch", "operator", resource="pods")
    assert len(log.requests(user_agent="operator")) == 1


def test_a_restart_forgets(log: AuditLog) -> None:
    write(log, "1", "create", "operator", resource="pods")
    log.restart()
    write(log, "2", "delete", "operator", resource="pods")
    assert [request.verb for request in log.requests(user_agent="operator")] == ["delete"]


def test_half_a_line_is_left_for_later(log: AuditLog) -> None:
    write(log, "1", "create", "operator")
    assert len(log.requests(user_agent="operator")) == 1
    with log.path.open("a") as file:
        file.write('{"auditID"')
    assert [request.verb for request in log._read()] == ["create", "get"]


def test_a_line_that_is_being_written_at_a_restart_comes_after_it(log: AuditLog) -> None:
    write(log, "1", "create", "operator")
    whole = json.dumps({"auditID": "2", "verb": "delete", "userAgent": "operator"}) + "\n"
    with log.path.open("a") as file:
        file.write(whole[:20])
        file.flush()
        log.restart()
        file.write(whole[20:])
    assert [request.verb for request in log.requests(user_agent="operator")] == ["delete"]
