"""Any object becomes a plan or findings; what holds for every plan."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from epd_operator.api import names
from epd_operator.api.finding import Severity
from epd_operator.api.parse import parse
from epd_operator.api.role import Role, Topology
from epd_operator.engine.command import wired_flags
from epd_operator.engine.rules import check
from epd_operator.engine.rules.arguments import OWNED
from epd_operator.engine.wiring import Defaults, wire
from epd_operator.plan.build import Unacceptable, build
from epd_operator.plan.plan import Plan
from tests.unit.objects import deployment
from tests.unit.rules.test_cases import complaints
from tests.unit.strategies import acceptable_documents, valid_documents

patient = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def planned(document: dict[str, Any]) -> Plan:
    """The plan of a document that breaks no rule."""
    parsed = parse(document)
    assert parsed.deployment is not None, [str(finding) for finding in parsed.findings]
    return build(parsed.deployment)


@patient
@given(valid_documents())
def test_every_object_gets_a_verdict(document: dict[str, Any]) -> None:
    parsed = parse(document)
    assert parsed.deployment is not None
    for local in (False, True):
        found = check(wire(parsed.deployment, local=local))
        assert len({finding.path for finding in found}) == len(found)
        json.dumps([finding.as_json() for finding in found])
        for finding in found:
            assert complaints(finding) == [], str(finding)
        if all(finding.severity is Severity.WARNING for finding in found):
            assert build(parsed.deployment, local=local).warnings == tuple(found)
        else:
            with pytest.raises(Unacceptable) as verdict:
                build(parsed.deployment, local=local)
            assert list(verdict.value.findings) == found


@patient
@given(acceptable_documents())
def test_what_holds_for_every_plan(document: dict[str, Any]) -> None:
    plan = planned(document)
    assert len(names.pruner_name(plan.name)) <= names.MAX_CRON_JOB
    assert len(plan.revision) == names.REVISION_LENGTH
    for role in plan.roles:
        assert len(role.name) <= names.MAX_LABEL
        numbers = [port.number for port in role.ports]
        assert len(set(numbers)) == len(numbers)
        assert all(0 < number < 65536 for number in numbers)
        assert all(len(port.name) <= 15 for port in role.ports)
        assert role.drain.grace_seconds > role.drain.pre_stop_seconds + role.drain.shutdown_timeout_seconds
        assert len({mount.path for mount in role.mounts}) == len(role.mounts)
        assert len({mount.name for mount in role.mounts}) == len(role.mounts)
        assert role.command.argv[0] == plan.roles[0].command.argv[0]
        assert all(len(value) <= 63 for value in {**role.labels, **role.service_labels}.values())
        assert set(role.selector.items()) <= set(role.labels.items())


@patient
@given(acceptable_documents())
def test_the_same_object_gives_the_same_plan(document: dict[str, Any]) -> None:
    assert planned(document) == planned(document)


@patient
@given(acceptable_documents())
def test_every_wired_flag_is_one_that_users_may_not_write(document: dict[str, Any]) -> None:
    wiring = planned(document).wiring
    for role in wiring.instances:
        known = {wiring.capabilities.flag(flag) for flag in wired_flags(wiring, role)}
        assert {flag.name for flag in known if flag is not None} <= OWNED.keys()


@pytest.mark.parametrize(
    ("spec", "topology", "roles"),
    [
        ("encode: <absent>", Topology.PD, {Role.DECODE: (None, None)}),
        (
            "{encode: <absent>, prefill: {}}",
            Topology.P_D,
            {Role.PREFILL: (None, "kv_producer"), Role.DECODE: (None, "kv_consumer")},
        ),
        ("", Topology.E_PD, {Role.ENCODE: ("ec_producer", None), Role.DECODE: ("ec_consumer", None)}),
        (
            "prefill: {}",
            Topology.E_P_D,
            {
                Role.ENCODE: ("ec_producer", None),
                Role.PREFILL: ("ec_consumer", "kv_producer"),
                Role.DECODE: (None, "kv_consumer"),
            },
        ),
    ],
)
def test_topologies(spec: str, topology: Topology, roles: dict[Role, tuple[str | None, str | None]]) -> None:
    plan = build(deployment(spec))
    assert plan.topology is topology
    assert {role.role for role in plan.roles} == roles.keys()
    for role in plan.roles:
        given_configs = {
            flag: json.loads(value)
            for flag, value in zip(role.command.argv, role.command.argv[1:], strict=False)
            if flag in ("--ec-transfer-config", "--kv-transfer-config")
        }
        ec_role, kv_role = roles[role.role]
        assert given_configs.get("--ec-transfer-config", {}).get("ec_role") == ec_role
        assert given_configs.get("--kv-transfer-config", {}).get("kv_role") == kv_role


def test_errors_keep_a_plan_from_being_made() -> None:
    with pytest.raises(Unacceptable, match="name-too-long") as raised:
        build(deployment("decode: {replicas: 0}", name="a" * 47))
    assert [finding.rule for finding in raised.value.findings] == ["role-scaled-to-zero", "name-too-long"]


def test_warnings_go_with_the_plan() -> None:
    plan = build(deployment("decode: {replicas: 0}"))
    assert [finding.rule for finding in plan.warnings] == ["role-scaled-to-zero"]


@pytest.mark.parametrize(
    ("spec", "scales", "replicas"),
    [
        ("", {}, 1),
        ("decode: {replicas: 3}", {}, 3),
        ("decode: {replicas: 3}", {Role.DECODE: 7}, 3),
        ("decode: {scaling: {mode: External}}", {}, 1),
        ("decode: {scaling: {mode: External}}", {Role.DECODE: 7}, 7),
        ("decode: {scaling: {mode: External}}", {Role.DECODE: 0}, 0),
        ("{decode: {replicas: 3}, suspend: true}", {}, 0),
        ("{decode: {scaling: {mode: External}}, suspend: true}", {Role.DECODE: 7}, 0),
    ],
)
def test_replicas(spec: str, scales: dict[Role, int], replicas: int) -> None:
    plan = build(deployment(spec), scales=scales)
    decode = plan.role(Role.DECODE)
    assert decode is not None
    assert decode.replicas == replicas
    assert (plan.proxy.replicas == 0) is plan.suspended


def test_a_default_once_chosen_stays() -> None:
    volume = "transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}"
    plan = build(deployment(volume), defaults=Defaults(embeddings_connector="ECExampleConnector"))
    assert plan.defaults.embeddings_connector == "ECExampleConnector"
    later = build(deployment(), defaults=Defaults(embeddings_connector="ECMooncakeConnector"))
    assert later.defaults == Defaults(embeddings_connector="ECMooncakeConnector")


def test_what_the_user_names_wins_over_what_was_chosen() -> None:
    spec = "transfer: {embeddings: {connector: ECMooncakeConnector}}"
    plan = build(deployment(spec), defaults=Defaults(embeddings_connector="ECCPUConnector"))
    assert plan.defaults.embeddings_connector == "ECMooncakeConnector"
