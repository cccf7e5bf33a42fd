"""Hypothesis strategies: any JSON, and documents whose shape is right, with odd but legal values."""

from typing import Any

from hypothesis import strategies as st

Strategy = st.SearchStrategy[Any]

JSON_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=20)
)
NAMES = st.from_regex(r"\A[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?\Z")
LABEL_VALUES = st.sampled_from(["", "a", "B-1.x_2", "08", "y"])
QUANTITIES = st.one_of(
    st.sampled_from(["0", "1", "64Mi", "1Gi", "4Gi", "16Gi", "1.5G", "500m", "1e3", "+2", ".5"]),
    st.integers(0, 1 << 40),
)
DEGREES = st.sampled_from([1, 1, 1, 2, 4, 1024])
SECONDS = st.integers(10, 86_400)
FLAGS = [
    "--max-model-len=4096",
    "--dtype",
    "float16",
    "--port=1",
    "-tp",
    "2",
    "--ec-transfer-config.ec_role",
    "x",
    "--enforce-eager",
    "--no-such-flag",
    "--mm-processor-kwargs={}",
    '--mm-processor-kwargs={"device": "cuda"}',
    "--mm-processor-cache-gb=-1",
    "--mm-processor-cache-type=shm",
    "--media-io-kwargs.video.backend=opencv",
    "",
    "-",
    "--",
    "\0",
]
VARIABLES = [
    "A",
    "HF_HUB_OFFLINE",
    "VLLM_WORKER_MULTIPROC_METHOD",
    "VLLM_NIXL_SIDE_CHANNEL_HOST",
    "VLLM_EC_SIDE_CHANNEL_PORT",
    "VLLM_PORT",
    "VLLM_API_KEY",
    "VLLM_SERVER_DEV_MODE",
]
CONNECTORS = ["ECExampleConnector", "ECCPUConnector", "ECMooncakeConnector", "NixlConnector", "eccpuconnector", "X"]
KV_CONNECTORS = ["NixlConnector", "MooncakeConnector", "ExampleConnector", "MultiConnector", "nixlconnector", "X"]
VERSIONS = ["0.33.0", "0.32.1", "0.31", "v0.30.0", "0.29.0", "0.28.0", "0.27.0", "0.99.0", "1.0", "latest", "0.33.0rc1"]


def json_values(max_leaves: int = 30) -> Strategy:
    """Anything that JSON can say."""
    return st.recursive(
        JSON_SCALARS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
        max_leaves=max_leaves,
    )


def some(**fields: Strategy) -> Strategy:
    """An object with any of the fields; a trailing underscore keeps a name from being a keyword."""
    return st.fixed_dictionaries({}, optional={name.rstrip("_"): value for name, value in fields.items()})


def _documents_of_known_fields() -> Strategy:
    """Objects whose field names are the API's and whose values are anything: most have many mistakes."""
    words = [
        "spec",
        "metadata",
        "name",
        "model",
        "id",
        "engine",
        "version",
        "encode",
        "decode",
        "args",
        "env",
        "device",
    ]
    more = ["type", "replicas", "scaling", "transfer", "embeddings", "connector", "volume", "proxy", "media", "limits"]
    inner = st.deferred(lambda: values)
    keys = st.sampled_from([*words, *more, "persistentVolumeClaim", "allowedDomains"]) | st.text(max_size=6)
    values: Strategy = JSON_SCALARS | st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4)
    return st.dictionaries(keys, values, max_size=5)


def documents() -> Strategy:
    """Any JSON, and EPDDeployments with anything for a spec."""
    identity = {"apiVersion": st.just("epd.dev/v1alpha1"), "kind": st.just("EPDDeployment")}
    named = st.fixed_dictionaries({**identity, "metadata": json_values(5), "spec": json_values()})
    nearly = st.fixed_dictionaries(
        {**identity, "metadata": st.just({"name": "m"}), "spec": _documents_of_known_fields()}
    )
    return json_values() | named | nearly


_DEVICE = some(
    type=st.sampled_from(["CUDA", "ROCm", "XPU", "CPU"]),
    resourceName=st.sampled_from(["nvidia.com/gpu", "example.com/x"]),
    product=st.just("A"),
    runtimeClassName=NAMES,
)
_ENV = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(VARIABLES)},
        optional={
            "value": st.sampled_from(["", "1", "spawn", "localhost", "\0"]),
            "valueFrom": st.just({"fieldRef": {"fieldPath": "status.podIP"}}) | json_values(3).map(lambda v: {"a": v}),
        },
    ),
    max_size=3,
    unique_by=lambda variable: str(variable["name"]),
)
_AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "rdma/hca"]), QUANTITIES, max_size=3)
_RESOURCES = some(limits=_AMOUNTS, requests=_AMOUNTS, claims=st.sampled_from([[], [{"name": "gpu"}]]))
_TEMPLATE = some(
    metadata=some(labels=st.dictionaries(st.sampled_from(["team", "epd.dev/revision"]), LABEL_VALUES, max_size=2)),
    spec=json_values(8).map(lambda value: value if isinstance(value, dict) else {"x": value})
    | some(
        hostNetwork=st.booleans(),
        containers=st.lists(some(name=st.just("engine"), image=st.text(max_size=3), env=json_values(4)), max_size=2),
    ),
)
_CLAIM = st.fixed_dictionaries({"persistentVolumeClaim": st.fixed_dictionaries({"claimName": NAMES})})
_EXTRA = st.dictionaries(
    st.sampled_from(["ec_cpu_bytes", "ec_enable_nixl", "shared_storage_path", "kv_lease_duration", "x"]),
    json_values(2),
    max_size=3,
)


def _role() -> Strategy:
    number: Strategy = st.one_of(
        st.just({}),
        st.integers(0, 10_000).map(lambda n: {"replicas": n}),
        st.just({"scaling": {"mode": "External"}}),
    )
    rest = some(
        device=_DEVICE,
        preprocessing=some(
            device=st.sampled_from(["Auto", "CPU", "Accelerator"]),
            tensorIPC=st.sampled_from(["torch_shm", "direct_rpc"]),
        ),
        parallelism=some(tensor=DEGREES, pipeline=DEGREES, data=DEGREES),
        sharedMemorySize=QUANTITIES,
        args=st.lists(st.sampled_from(FLAGS), max_size=4),
        env=_ENV,
        resources=_RESOURCES,
        startupTimeoutSeconds=SECONDS,
        drainTimeoutSeconds=st.integers(0, 86_400),
        template=_TEMPLATE,
    )
    return st.builds(lambda a, b: {**a, **b}, number, rest)


def specs() -> Strategy:
    """Specs whose shape is right; many of them break rules."""
    volume = st.sampled_from(
        [{"persistentVolumeClaim": {"claimName": "models"}}, {"emptyDir": {}}, {"hostPath": {"path": "/m"}}]
    )
    model = st.builds(
        lambda model_id, rest: {"id": model_id, **rest},
        st.sampled_from(["Qwen/Qwen3-VL-8B-Instruct", "./a", "/a/b", "../a", "/", "ünï/コード"]),
        some(
            revision=st.just("main"),
            servedName=st.just("vision"),
            tokenSecretRef=st.just({"name": "hf", "key": "token"}),
            volume=volume,
            architecture=st.just("Qwen3VLForConditionalGeneration"),
        ),
    )
    engine = some(
        version=st.sampled_from(VERSIONS),
        image=st.sampled_from(["vllm/vllm-openai:v0.33.0", "a/b:x", "localhost:5000/a"]),
        imagePullPolicy=st.sampled_from(["Always", "Never"]),
        imagePullSecrets=st.just([{"name": "s"}]),
        args=st.lists(st.sampled_from(FLAGS), max_size=3),
        env=_ENV,
    )
    transfer = some(
        embeddings=some(connector=st.sampled_from(CONNECTORS), volume=_CLAIM, cacheSize=QUANTITIES, extraConfig=_EXTRA),
        kv=some(connector=st.sampled_from(KV_CONNECTORS), volume=_CLAIM, extraConfig=_EXTRA),
    )
    proxy = some(
        replicas=st.integers(0, 10),
        image=st.just("proxy:1"),
        resources=_RESOURCES,
        template=_TEMPLATE,
        service=some(type=st.sampled_from(["ClusterIP", "NodePort"]), port=st.integers(1, 65535)),
        mediaForwarding=st.sampled_from(["Metadata", "Raw"]),
        media=some(allowedDomains=st.just(["a.example"]), maxSize=QUANTITIES, maxItems=st.integers(1, 1000)),
        limits=some(bodySize=QUANTITIES, inFlightSize=QUANTITIES, inFlightRequests=st.integers(1, 99)),
        apiKeysSecretRef=st.just({"name": "keys"}),
    )
    counts = st.sampled_from([0, 1, "0%", "25%", "100%"])
    return st.builds(
        lambda fixed, rest: {**fixed, **rest},
        st.fixed_dictionaries({"model": model, "engine": engine}),
        some(
            encode=_role(),
            prefill=_role(),
            decode=_role(),
            device=_DEVICE,
            transfer=transfer,
            proxy=proxy,
            rollout=some(maxSurge=counts, maxUnavailable=counts, strategy=st.sampled_from(["Recreate", "BlueGreen"])),
            preflight=st.sampled_from(["Warn", "Enforce"]),
            suspend=st.booleans(),
        ),
    )


def _with_identity(names: Strategy, spec: Strategy) -> Strategy:
    return st.builds(
        lambda name, spec: {
            "apiVersion": "epd.dev/v1alpha1",
            "kind": "EPDDeployment",
            "metadata": {"name": name},
            "spec": spec,
        },
        names,
        spec,
    )


def valid_documents() -> Strategy:
    """EPDDeployments whose shape is right."""
    return _with_identity(NAMES | st.sampled_from(["a" * 46, "a" * 47, "a.b"]), specs())


_HARMLESS = [
    [],
    ["--max-model-len=4096"],
    ["--dtype", "float16"],
    ["--mm-processor-cache-type=shm"],
    ["--enforce-eager"],
]


def _sane_role(*, encoder: bool) -> Strategy:
    degrees = st.sampled_from([1, 2, 4])
    parallelism = some(tensor=degrees, pipeline=degrees) if encoder else some(tensor=degrees, data=degrees)
    return some(
        replicas=st.integers(1, 9),
        parallelism=parallelism,
        device=some(product=st.just("A"), resourceName=st.just("example.com/x")),
        args=st.sampled_from(_HARMLESS),
        env=st.sampled_from([[], [{"name": "A", "value": "1"}], [{"name": "HF_HUB_ETAG_TIMEOUT", "value": "1"}]]),
        resources=some(limits=st.just({"memory": "256Gi"}), requests=st.just({"cpu": "4"})),
        startupTimeoutSeconds=SECONDS,
        drainTimeoutSeconds=st.integers(0, 86_400),
        template=some(spec=st.just({"nodeSelector": {"a": "b"}})),
    )


def acceptable_documents() -> Strategy:
    """EPDDeployments that break no rule: all topologies, releases and connectors."""
    claim = {"persistentVolumeClaim": {"claimName": "shared"}}
    embeddings = st.sampled_from(
        [
            {},
            {"connector": "ECCPUConnector", "cacheSize": "8Gi"},
            {"volume": claim},
            {"volume": claim, "cacheSize": "1Ti"},
        ]
    )
    kv = st.sampled_from([{}, {"connector": "MooncakeConnector"}, {"connector": "ExampleConnector", "volume": claim}])

    def assemble(parts: dict[str, Any]) -> dict[str, Any]:
        spec, transfer = {"decode": parts["decode"], **parts["rest"]}, {}
        for letter, role, part in (("E", "encode", "embeddings"), ("P", "prefill", "kv")):
            if letter in parts["roles"]:
                spec[role], transfer[part] = parts[role], parts[part]
        return spec | ({"transfer": transfer} if transfer else {})

    rest = st.fixed_dictionaries(
        {
            "model": st.sampled_from(
                [{"id": "a/b"}, {"id": "./a", "volume": {"emptyDir": {}}}, {"id": "a", "revision": "x"}]
            ),
            "engine": st.sampled_from([{"version": version} for version in ("0.30.0", "0.31.1", "0.32.0", "0.33.0")]),
        },
        optional={
            "device": st.sampled_from([{}, {"type": "CUDA"}, {"type": "ROCm"}]),
            "proxy": some(replicas=st.integers(0, 3), media=some(allowedDomains=st.just(["a.example"]))),
            "suspend": st.booleans(),
        },
    )
    parts = {
        "roles": st.sampled_from(["", "E", "P", "EP"]),
        "encode": _sane_role(encoder=True),
        "prefill": _sane_role(encoder=False),
        "decode": _sane_role(encoder=False),
        "embeddings": embeddings,
        "kv": kv,
        "rest": rest,
    }
    spec = st.fixed_dictionaries(parts).map(assemble)
    return _with_identity(st.sampled_from(["a", "a" * 46]), spec)
