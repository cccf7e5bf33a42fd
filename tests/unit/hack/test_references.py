import pytest

from hack.cluster.kubectl import Object
from hack.cluster.testkubelet.references import CONFIG_MAP, SECRET, Reference, references


def pod(container: Object | None = None, volume: Object | None = None) -> Object:
    volumes = [{"name": "v", **volume}] if volume else []
    return {"spec": {"volumes": volumes, "containers": [{"name": "c", **(container or {})}]}}


def from_key(field: str, **more: object) -> Object:
    return {"env": [{"name": "A", "valueFrom": {field: {"name": "n", "key": "k", **more}}}]}


MAY = {"optional": True}

CASES = [
    ("nothing", pod(), []),
    ("a plain variable", pod({"env": [{"name": "A", "value": "1"}]}), []),
    ("a field", pod({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]}), []),
    ("a secret's key", pod(from_key("secretKeyRef")), [Reference(SECRET, "n", "k", container="c")]),
    ("a map's key", pod(from_key("configMapKeyRef")), [Reference(CONFIG_MAP, "n", "k", container="c")]),
    ("an optional key", pod(from_key("secretKeyRef", optional=True)), []),
    ("a whole secret", pod({"envFrom": [{"secretRef": {"name": "n"}}]}), [Reference(SECRET, "n", container="c")]),
    ("a secret volume", pod(volume={"secret": {"secretName": "n"}}), [Reference(SECRET, "n", volume="v")]),
    (
        "one item of a map volume",
        pod(volume={"configMap": {"name": "n", "items": [{"key": "k", "path": "p"}]}}),
        [Reference(CONFIG_MAP, "n", "k", volume="v")],
    ),
    (
        "a projected volume",
        pod(
            volume={
                "projected": {"sources": [{"secret": {"name": "n"}}, {"configMap": {"name": "m", "optional": True}}]}
            }
        ),
        [Reference(SECRET, "n", volume="v")],
    ),
    ("an empty directory", pod(volume={"emptyDir": {}}), []),
]


@pytest.mark.parametrize(("of", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_a_pod_needs(of: Object, expected: list[Reference]) -> None:
    assert list(references(of)) == expected


WORDS = [
    (Reference(SECRET, "n", "k", container="c"), None, 'secret "n" not found'),
    (Reference(CONFIG_MAP, "n", "k", container="c"), [], "couldn't find key k in ConfigMap ns/n"),
    (Reference(SECRET, "n", "k", volume="v"), ["other"], "references non-existent secret key: k"),
    (Reference(SECRET, "n", "k"), ["k"], ""),
    (Reference(SECRET, "n"), [], ""),
]


@pytest.mark.parametrize(("reference", "keys", "words"), WORDS)
def test_what_a_kubelet_says(reference: Reference, keys: list[str] | None, words: str) -> None:
    assert reference.complaint("ns", keys) == words
