"""What is written while an object changes its revision: in the planner's steps, and in the order of the requests."""

import copy
from datetime import timedelta

from epd_operator.api.names import ANNOTATION_TRAFFIC_ENDED, LABEL_TRAFFIC, NO_TRAFFIC
from epd_operator.controller.child import keep_child
from epd_operator.controller.kinds import CHILDREN
from epd_operator.controller.traffic import NEVER, traffic_of
from tests.unit.controller.seen import LONGER, Small, changed, instance, revision, settled


def traffic(small: Small, name: str) -> bool:
    """Whether a revision gets new requests."""
    return traffic_of(small.children["Service", f"v-decode-{name}"]).open


def test_revisions_change_in_the_planners_steps() -> None:
    small = settled(encode={"replicas": 2})
    old = revision(small)
    changed(small, **LONGER)
    written = small.step()
    new = revision(small)
    assert new != old
    lowered = [f"apply Deployment v-decode-{old}", f"apply Deployment v-encode-{old}"]
    assert sorted(text for text in written if "Deployment" in text) == lowered
    assert (traffic(small, old), traffic(small, new)) == (True, False)
    assert small.step() == []  # an instance that goes is waited for
    small.make_ready()
    assert sorted(small.step()) == [f"apply Deployment v-decode-{new}", f"apply Deployment v-encode-{new}"]
    assert small.replicas() == {f"v-{role}-{name}": 1 for role in ("encode", "decode") for name in (old, new)} | {
        "v-proxy": 2
    }
    small.make_ready(["encode"])
    assert small.step() == [f"apply PodDisruptionBudget v-encode-{new}"]
    small.make_ready()
    assert f"apply Service v-decode-{new}" in small.step()
    assert traffic(small, new)
    small.settle()
    assert not [name for _, name in small.children if name.endswith(old)]
    assert small.replicas() == {f"v-encode-{new}": 2, f"v-decode-{new}": 2, "v-proxy": 2}
    services = small.log.index(f"remove Service v-decode-{old}")
    assert services < small.log.index(f"remove Deployment v-decode-{old}")
    assert small.step() == []


def test_what_is_given_up_gets_no_requests_before_it_goes() -> None:
    small = settled(decode={"replicas": 1})
    old = revision(small)
    changed(small, **LONGER)
    small.step()
    assert not traffic(small, old)
    assert small.replicas()[f"v-encode-{old}"] == 1
    now = small.decide().transition
    assert now is not None
    assert now.look_seconds == 10
    began = small.now
    for role, seconds in (("encode", 10), ("decode", 140)):
        name = f"v-{role}-{old}"
        while small.replicas()[name]:
            assert small.now < began + timedelta(seconds=seconds)
            assert small.sleep()
            small.step()
        assert small.now == began + timedelta(seconds=seconds)
    small.settle()
    assert small.replicas() == {f"v-encode-{revision(small)}": 1, f"v-decode-{revision(small)}": 1, "v-proxy": 2}
    assert traffic(small, revision(small))


def test_a_first_version_that_never_served_delays_nobody() -> None:
    small = Small(instance())
    small.step()
    old = revision(small)
    small.make_ready(["encode"])  # decode still starts, for hours maybe
    changed(small, **LONGER)
    small.step()
    assert {small.replicas()[f"v-{role}-{old}"] for role in ("encode", "decode")} == {0}
    assert traffic_of(small.children["Service", f"v-decode-{old}"]) == NEVER


def test_recreate_removes_first() -> None:
    recreate = {"rollout": {"strategy": "Recreate"}}
    small = settled(**recreate)
    old = revision(small)
    changed(small, **recreate, **LONGER)
    small.step()
    new = revision(small)
    assert (traffic(small, old), traffic(small, new)) == (False, False)
    while any(count for name, count in small.replicas().items() if old in name):
        assert not [name for name in small.names("Deployment") if new in name]
        small.make_ready()
        assert small.step() or small.sleep()
    small.settle()
    assert small.replicas() == {f"v-encode-{new}": 1, f"v-decode-{new}": 2, "v-proxy": 2}
    assert traffic(small, new)


def test_blue_green_moves_traffic_once_all_of_the_new_is_ready() -> None:
    blue_green = {"rollout": {"strategy": "BlueGreen"}}
    small = settled(**blue_green)
    old = revision(small)
    changed(small, **blue_green, **LONGER)
    small.step()
    new = revision(small)
    assert small.replicas() == {f"v-encode-{name}": 1 for name in (old, new)} | {
        f"v-decode-{name}": 2 for name in (old, new)
    } | {"v-proxy": 2}
    small.make_ready(["encode"])
    assert small.step() == [f"apply PodDisruptionBudget v-encode-{new}"]
    assert (traffic(small, old), traffic(small, new)) == (True, False)
    small.make_ready()
    small.step()
    assert (traffic(small, old), traffic(small, new)) == (False, True)
    small.settle()
    assert not [name for _, name in small.children if name.endswith(old)]


def test_a_rollback_amid_a_rollout_takes_what_is_left() -> None:
    small = settled(encode={"replicas": 2})
    old, before = revision(small), small.replicas()
    changed(small, **LONGER)
    small.step()
    small.make_ready()
    small.step()
    new = revision(small)
    changed(small, engine={"version": "0.33.0"})
    small.settle()
    assert small.replicas() == before
    assert not [name for _, name in small.children if name.endswith(new)]
    assert traffic(small, old)


def test_a_third_revision_amid_a_rollout_is_the_only_one_in_the_end() -> None:
    small = settled(encode={"replicas": 2})
    for length in (1024, 2048, 4096):
        changed(small, engine={"version": "0.33.0", "args": [f"--max-model-len={length}"]})
        small.step()
        small.make_ready()
        small.step()
    assert len({child.revision for child in small.children.values()}) > 2
    small.settle()
    latest = revision(small)
    assert small.replicas() == {f"v-encode-{latest}": 2, f"v-decode-{latest}": 2, "v-proxy": 2}
    assert {child.revision for child in small.children.values()} == {latest, None}


def test_replicas_change_amid_a_rollout() -> None:
    small = settled(encode={"replicas": 2})
    changed(small, **LONGER)
    small.step()
    small.make_ready()
    small.step()
    changed(small, encode={"scaling": {"mode": "External"}})
    small.settle()
    assert small.scales["encode"].replicas == 2  # neither what old nor what new has
    changed(small, decode={"replicas": 5}, engine={"version": "0.33.0"})
    small.step()
    changed(small, decode={"replicas": 3})
    small.settle()
    latest = revision(small)
    assert small.replicas() == {f"v-encode-{latest}": 2, f"v-decode-{latest}": 3, "v-proxy": 2}


def test_a_refused_change_amid_a_rollout_lets_it_end() -> None:
    small = settled(encode={"replicas": 2})
    changed(small, **LONGER)
    small.step()
    wrong = {"replicas": 1, "parallelism": {"tensor": 2}, "preprocessing": {"tensorIPC": "torch_shm"}}
    changed(small, encode=wrong, rollout={"paused": True})
    small.settle()
    latest = revision(small)
    assert small.replicas() == {f"v-encode-{latest}": 2, f"v-decode-{latest}": 2, "v-proxy": 2}


def test_suspension_amid_a_rollout_leaves_one_revision_that_comes_back() -> None:
    small = settled(encode={"replicas": 2})
    changed(small, **LONGER)
    small.step()
    small.make_ready()
    small.step()
    changed(small, suspend=True)
    small.settle()
    latest = revision(small)
    assert small.replicas() == {f"v-encode-{latest}": 0, f"v-decode-{latest}": 0, "v-proxy": 0}
    changed(small, suspend=False)
    small.settle()
    assert small.replicas() == {f"v-encode-{latest}": 2, f"v-decode-{latest}": 2, "v-proxy": 2}
    assert traffic(small, latest)


def test_an_old_revision_without_its_rendering_still_goes() -> None:
    small = settled(encode={"replicas": 2})
    old = revision(small)
    changed(small, **LONGER)
    small.step()
    small.renderings = small.renderings[1:]
    small.settle()
    assert not [name for _, name in small.children if name.endswith(old)]


def test_an_edited_moment_is_no_moment() -> None:
    small = settled()
    changed(small, **LONGER)
    small.step()
    old = small.renderings[0].revision
    body = copy.deepcopy(small.bodies["Service", f"v-decode-{old}"])
    body["metadata"]["labels"][LABEL_TRAFFIC] = NO_TRAFFIC
    body["metadata"]["annotations"] = {ANNOTATION_TRAFFIC_ENDED: "yesterday"}
    assert traffic_of(keep_child(CHILDREN["Service"], body, None)) == NEVER


def test_paused_makes_no_new_workload() -> None:
    small = settled()
    old = revision(small)
    changed(small, rollout={"paused": True}, **LONGER)
    small.settle()
    assert small.names("Deployment") == sorted([f"v-decode-{old}", f"v-encode-{old}", "v-proxy"])
    changed(small, rollout={}, **LONGER)
    small.settle()
    assert not [name for name in small.names("Deployment") if old in name]


def test_the_proxy_turns_to_a_new_topology_with_the_traffic() -> None:
    small = settled()
    before = small.bodies["ConfigMap", "v-proxy"]
    changed(small, prefill={})
    small.step()
    small.step()
    assert small.bodies["ConfigMap", "v-proxy"] == before
    small.settle()
    assert small.bodies["ConfigMap", "v-proxy"]["data"] != before["data"]
