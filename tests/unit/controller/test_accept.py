"""Verdict and rendering: what an operator with other templates or rules leaves as it is."""

import copy
from typing import Any

import pytest

from epd_operator.api.finding import Severity
from epd_operator.api.names import ANNOTATION_RENDER
from epd_operator.cluster.resources import Object
from epd_operator.engine.rules import table
from epd_operator.engine.rules.rule import Broken, Kind, Rule
from epd_operator.manifests.render import render as render_objects
from epd_operator.plan.plan import Plan
from tests.unit.controller.seen import Small, instance


@pytest.fixture
def small() -> Small:
    """An object that an operator accepted and made."""
    small = Small(instance())
    small.settle()
    small.log.clear()
    return small


@pytest.fixture
def other_templates(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next operator of the object renders everything otherwise."""
    original = render_objects

    def render(plan: Plan) -> list[Object]:
        objects = copy.deepcopy(original(plan))
        for body in objects:
            body["metadata"].setdefault("annotations", {})["rendered-by"] = "another"
            if body["kind"] == "Deployment":
                body["spec"]["template"]["metadata"]["annotations"]["rendered-by"] = "another"
        return objects

    monkeypatch.setattr("epd_operator.controller.accept.render", render)


def changed(small: Small, **spec: Any) -> None:
    small.body = copy.deepcopy(small.body)
    small.body["spec"] |= spec
    small.body["metadata"]["generation"] += 1


def rolled(small: Small) -> list[str]:
    return sorted(
        name
        for (kind, name), body in small.bodies.items()
        if kind == "Deployment"
        and (kind, name) in small.children
        and "rendered-by" in body["spec"]["template"]["metadata"]["annotations"]
    )


@pytest.mark.usefixtures("other_templates")
@pytest.mark.parametrize(
    "spec",
    [{}, {"encode": {"replicas": 5}}, {"suspend": True}, {"preflight": "Enforce"}, {"proxy": {"replicas": 4}}],
)
def test_another_operator_restarts_nothing(small: Small, spec: dict[str, Any]) -> None:
    changed(small, **spec)
    small.settle()
    assert rolled(small) == []
    assert not [text for text in small.log if not text.startswith("apply Deployment")]


@pytest.mark.usefixtures("other_templates")
def test_a_change_takes_the_new_rendering_where_it_is(small: Small) -> None:
    changed(small, encode={"env": [{"name": "A", "value": "1"}]})
    small.settle()
    assert [name.split("-")[1] for name in rolled(small)] == ["encode"]


@pytest.mark.usefixtures("other_templates")
def test_proxy_settings_restart_no_engine_and_no_proxy(small: Small) -> None:
    changed(small, proxy={"media": {"maxItems": 3}})
    small.settle()
    assert rolled(small) == []
    assert "maxItems: 3" in str(small.bodies["ConfigMap", "v-proxy"]["data"])


@pytest.mark.usefixtures("other_templates")
def test_a_new_revision_takes_the_new_rendering(small: Small) -> None:
    changed(small, engine={"version": "0.33.0", "args": ["--max-model-len=4096"]})
    small.settle()
    assert [name.split("-")[1] for name in rolled(small)] == ["decode", "encode"]


@pytest.mark.usefixtures("other_templates")
def test_the_annotation_asks_for_the_new_rendering(small: Small) -> None:
    small.body = instance(annotations={ANNOTATION_RENDER: "now"})
    small.settle()
    assert len(rolled(small)) == 3
    small.log.clear()
    small.settle()
    assert small.log == []


def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator with a rule that forbids two decoders' worth of replicas."""

    def check(wiring: Any) -> Any:
        model = wiring.deployment.spec.model
        if model.id == "a/b":
            yield Broken("spec.model.id", model.id, "is forbidden now", "take another")

    rule = Rule(id="new-rule", severity=Severity.ERROR, kind=Kind.STRICTER, what="", why="", source="", check=check)
    original = table.check
    monkeypatch.setattr("epd_operator.plan.build.check", lambda wiring: original(wiring, (*table.RULES, rule)))


def test_what_was_accepted_may_be_changed_elsewhere(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    strict(monkeypatch)
    verdict = small.verdict()
    assert not verdict.refused
    assert [f.rule for f in verdict.findings if f.rule == "new-rule"] == ["new-rule"]
    changed(small, encode={"env": [{"name": "A", "value": "1"}]})
    assert not small.verdict().refused
    small.settle()
    assert [text for text in small.log if "v-encode" in text]
    assert Small(instance()).verdict().refused  # a new object is not excused


def test_an_object_of_a_wrong_shape_keeps_what_was_accepted(small: Small) -> None:
    changed(small, encode={"replicas": "many"})
    verdict = small.verdict()
    assert verdict.refused
    assert verdict.kept is not None
    assert small.step() == []


def test_a_chosen_default_stays(small: Small) -> None:
    facts = small.renderings[-1].content().facts
    assert facts["defaults"] == {"embeddingsConnector": "ECCPUConnector", "kvConnector": None}
    small.body["status"] = {"defaults": {"embeddingsConnector": "ECExampleConnector"}}
    assert small.verdict().kept is small.renderings[-1]  # the rendering says what was chosen, not the status
