"""Objects to render, and what Kubernetes does with what is rendered."""

import re
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from epd_operator.api.overlay import KEYS
from epd_operator.api.parse import parse
from epd_operator.manifests import render
from epd_operator.plan.build import build
from epd_operator.plan.plan import Plan

Object = dict[str, Any]

CLAIM = {"persistentVolumeClaim": {"claimName": "claim"}}
HOSTILE = [
    "'",
    '"',
    "\\",
    "a: b",
    "- a",
    "# a",
    "{{ plan }}",
    "{% raw %}",
    "{# a #}",
    "}}",
    "$(POD_IP)",
    "$$(POD_IP)",
    "$POD_IP",
    "`id`",
    "*a",
    "&a",
    "!!python/object/apply:os.system ['true']",
    "<<",
    "null",
    "true",
    "0777",
    "1e3",
    "2026-01-01",
    "line\nline: 2\n",
    "\ttab\r\n",
    "---\na: b\n...",
    "\x00\x01\x1f\x7f\x80\x85\x9f",
    "\u2028\u2029\ufeff\ufffe",
    "é \u00df 漢 😀",
    " leading and trailing ",
    "",
]


def deployment(name: str = "a", **spec: Any) -> Object:
    """An EPDDeployment; fields that are not given are those of a small one."""
    base = {"model": {"id": "org/model"}, "engine": {"version": "0.33.0"}, "decode": {}}
    return {
        "apiVersion": "epd.dev/v1alpha1",
        "kind": "EPDDeployment",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {**base, **spec},
    }


def planned(document: Mapping[str, Any]) -> Plan:
    parsed = parse(document)
    assert parsed.deployment is not None, parsed.findings
    return build(parsed.deployment)


def rendered(name: str = "a", **spec: Any) -> list[Object]:
    return render(planned(deployment(name, **spec)))


def one(objects: list[Object], kind: str, name: str = "") -> Object:
    """The only object of a kind whose name contains `name`."""
    found = [item for item in objects if item["kind"] == kind and name in item["metadata"]["name"]]
    assert len(found) == 1, [item["metadata"]["name"] for item in found]
    return found[0]


def pod(objects: list[Object], name: str) -> Object:
    """The pod's spec of a Deployment."""
    spec: Object = one(objects, "Deployment", name)["spec"]["template"]["spec"]
    return spec


def container(objects: list[Object], name: str) -> Object:
    """The main container of a Deployment."""
    first: Object = pod(objects, name)["containers"][0]
    return first


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """What kubelet makes of a word of a command: $(NAME) becomes the variable if there is one, $$ becomes $.

    https://kubernetes.io/docs/tasks/inject-data-application/define-command-argument-container/
    """

    def replaced(found: re.Match[str]) -> str:
        name = found[1]
        return "$" if name is None else variables.get(name, found[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", replaced, text)


texts = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
names = st.from_regex(r"[a-z]([-a-z0-9]{0,44}[a-z0-9])?", fullmatch=True).filter(lambda n: not n.startswith("vllm"))
label_values = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?", fullmatch=True)
label_keys = st.from_regex(r"(example\.com/)?[a-z][-a-z]{0,10}[a-z]", fullmatch=True)
env_names = st.from_regex(r"X_[A-Z]{1,8}", fullmatch=True)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)

pod_keys = st.sampled_from([*KEYS, "name", "mountPath", "command", "args", "image", "resources", "exec", "tolerations"])
pod_values = st.recursive(
    st.none() | st.integers(0, 2) | st.sampled_from(["engine", "WIRED", "/tmp", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(pod_keys, inner, max_size=4),
    max_leaves=20,
)
"""What looks like a part of a pod and is most often none."""


@st.composite
def overlays(draw: st.DrawFn) -> Object:
    """Overlays that break no rule."""
    metadata = {
        "labels": draw(st.dictionaries(label_keys, label_values, max_size=2)),
        "annotations": draw(st.dictionaries(label_keys, texts, max_size=2)),
    }
    variables = draw(st.dictionaries(env_names, texts, max_size=2))
    spec: Object = {
        "containers": [{"name": "engine", "env": [{"name": n, "value": v} for n, v in variables.items()]}],
        "tolerations": [{"key": draw(label_keys), "operator": "Exists"}],
        "priorityClassName": draw(label_keys),
    }
    return {"metadata": metadata, "spec": spec}


@st.composite
def roles(draw: st.DrawFn) -> Object:
    """One role."""
    role: Object = {}
    if draw(st.booleans()):
        role["scaling"] = {"mode": "External"}
    else:
        role["replicas"] = draw(st.integers(0, 50))
    variables = draw(st.dictionaries(env_names, texts, max_size=2))
    role["env"] = [{"name": name, "value": value} for name, value in variables.items()]
    if draw(st.booleans()):
        role["template"] = draw(overlays())
    if draw(st.booleans()):
        role["drainTimeoutSeconds"] = draw(st.integers(0, 86400))
    if draw(st.booleans()):
        role["startupTimeoutSeconds"] = draw(st.integers(10, 86400))
    return role


@st.composite
def deployments(draw: st.DrawFn) -> Object:
    """Objects of every topology that are accepted, with texts that try to break out of their place."""
    cpu = draw(st.booleans())
    spec: Object = {
        "model": {"id": "org/model", "servedName": draw(served_names)},
        "engine": {"version": draw(st.sampled_from(["0.30.0", "0.31.0", "0.32.1", "0.33.0"]))},
        "device": {"type": "CPU"} if cpu else {"type": draw(st.sampled_from(["CUDA", "ROCm", "XPU"]))},
        "decode": draw(roles()),
        "transfer": {},
        "suspend": draw(st.booleans()),
        "rollout": draw(rollouts),
    }
    if spec["device"]["type"] == "XPU":
        spec["engine"]["image"] = "registry.example/vllm-xpu:1"  # vLLM publishes none
    if not cpu and draw(st.booleans()):
        spec["device"]["product"] = draw(label_values)
    if draw(st.booleans()):
        spec["encode"] = draw(roles())
        spec["transfer"]["embeddings"] = {"connector": "ECExampleConnector", "volume": CLAIM}
    if draw(st.booleans()):
        spec["prefill"] = draw(roles())
        spec["transfer"]["kv"] = {"connector": "NixlConnector"}
    spec["proxy"] = {
        "replicas": draw(st.integers(0, 9)),
        "service": {
            "type": draw(st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer"])),
            "port": draw(st.integers(1, 65535)),
            "annotations": draw(st.dictionaries(label_keys, texts, max_size=2)),
        },
        "media": {"allowedDomains": draw(st.sampled_from([[], ["example.com"]])), "maxItems": 3},
    }
    if draw(st.booleans()):
        spec["proxy"]["apiKeysSecretRef"] = {"name": draw(names)}
    return deployment(draw(names), **spec)


served_names = st.one_of(
    st.sampled_from([text for text in HOSTILE if re.fullmatch(r"[^\s\x00-\x1f-][^\s\x00-\x1f]*", text)]),
    st.from_regex(r"[^\s\x00-\x1f-][^\s\x00-\x1f]{0,20}", fullmatch=True).filter(
        lambda text: not any(0xD800 <= ord(c) <= 0xDFFF for c in text)
    ),
)
rollouts = st.fixed_dictionaries(
    {},
    optional={
        "strategy": st.sampled_from(["Proportional", "Recreate", "BlueGreen"]),
        "maxSurge": st.sampled_from([0, 1, "0%", "25%"]),
        "maxUnavailable": st.sampled_from([1, 2, "50%"]),
        "progressDeadlineSeconds": st.integers(1, 86400),
        "paused": st.booleans(),
        "historyLimit": st.integers(0, 5),
    },
)
