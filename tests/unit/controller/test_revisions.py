"""Which revisions there are, and what each consists of."""

import copy
from typing import Any

from epd_operator.api.role import Role
from epd_operator.controller.revisions import Revision, latest_rendering, revisions_of
from epd_operator.controller.traffic import NEVER, OPEN
from tests.unit.controller.seen import Small, instance


def revisions(small: Small) -> dict[str, Revision]:
    target = small.target(small.verdict())
    assert target is not None
    return revisions_of(small.observed(), target)


def changed(small: Small, **spec: Any) -> None:
    small.body = copy.deepcopy(small.body)
    small.body["spec"] |= spec
    small.body["metadata"]["generation"] += 1


def test_one_that_is_alone_serves_from_its_first_instance_on() -> None:
    (found,) = revisions(Small(instance())).values()
    assert (found.traffic, found.workloads) == (OPEN, {})
    assert found.roles == [Role.ENCODE, Role.DECODE]


def test_a_target_beside_another_waits_with_the_roles_that_it_will_have() -> None:
    small = Small(instance(decode={"replicas": 2, "drainTimeoutSeconds": 7}))
    small.settle()
    changed(small, prefill={}, rollout={"progressDeadlineSeconds": 5000})
    target, old = revisions(small).values()
    assert (target.traffic, old.traffic) == (NEVER, OPEN)
    assert (target.roles, old.roles) == ([Role.ENCODE, Role.PREFILL, Role.DECODE], [Role.ENCODE, Role.DECODE])
    assert (target.workloads, set(old.workloads)) == ({}, {Role.ENCODE, Role.DECODE})
    assert (target.progress_deadline_seconds(Role.DECODE), old.drain_seconds(Role.DECODE)) == (5000, 7)


def test_without_its_rendering_a_revision_has_the_roles_that_are_there() -> None:
    small = Small(instance())
    small.settle()
    old = small.renderings[-1].revision
    changed(small, engine={"version": "0.33.0", "args": ["--max-model-len=4096"]})
    small.step()
    small.renderings = small.renderings[1:]
    del small.children["Deployment", f"v-encode-{old}"]
    found = revisions(small)[old]
    assert (found.pieces, found.roles, found.drain_seconds(Role.DECODE)) == (None, [Role.DECODE], 600)


def test_the_latest_rendering_of_a_revision_counts() -> None:
    small = Small(instance())
    small.settle()
    changed(small, proxy={"replicas": 1, "service": {"port": 81}})
    small.settle()
    first, second = small.renderings
    assert first.revision == second.revision
    assert latest_rendering(small.observed(), first.revision) is second
    assert latest_rendering(small.observed(), "other") is None
