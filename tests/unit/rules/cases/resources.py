"""Cases of the rules about resources."""

from tests.unit.rules.case import Breaks, Case, Spares

CASES = (
    Case(
        "requests-above-limits",
        (
            Breaks(
                "decode: {resources: {limits: {cpu: 1}, requests: {cpu: 1500m}}}",
                "spec.decode.resources.requests.cpu",
                "1500m",
            ),
            Breaks(
                "proxy: {resources: {limits: {memory: 1Gi}, requests: {memory: 2Gi}}}",
                "spec.proxy.resources.requests.memory",
                "2Gi",
            ),
            Breaks(
                "decode: {resources: {limits: {rdma/hca: 1}, requests: {rdma/hca: 2}}}",
                "spec.decode.resources.requests[rdma/hca]",
                "2",
            ),
        ),
        (
            Spares("decode: {resources: {limits: {cpu: 1}, requests: {cpu: 1000m}}}"),
            Spares("decode: {resources: {requests: {cpu: 8}}}"),
        ),
    ),
    Case(
        "resource-refused",
        (
            Breaks(
                "decode: {resources: {limits: {gpu: 1}}}",
                "spec.decode.resources.limits.gpu",
                "1",
                remedy="with its domain",
            ),
            Breaks("proxy: {resources: {requests: {storage: 1Gi}}}", "spec.proxy.resources.requests.storage", "1Gi"),
            Breaks("decode: {resources: {limits: {a/b/c: 1}}}", "spec.decode.resources.limits[a/b/c]", "1"),
            Breaks(
                "decode: {resources: {limits: {rdma/hca: 1500m}}}", "spec.decode.resources.limits[rdma/hca]", "1500m"
            ),
            Breaks(
                "decode: {resources: {requests: {rdma/hca: 1}}}",
                "spec.decode.resources.requests[rdma/hca]",
                "1",
                remedy="set limits[rdma/hca] to 1 too",
            ),
            Breaks(
                "decode: {resources: {limits: {rdma/hca: 2}, requests: {rdma/hca: 1}}}",
                "spec.decode.resources.requests[rdma/hca]",
                "1",
            ),
            Breaks(
                "proxy: {resources: {limits: {hugepages-2Mi: 1Gi}}}",
                "spec.proxy.resources.limits.hugepages-2Mi",
                "1Gi",
                remedy="add cpu or memory",
            ),
        ),
        (
            Spares("decode: {resources: {limits: {rdma/hca: 1, ephemeral-storage: 1Gi}, requests: {rdma/hca: 1}}}"),
            Spares("decode: {resources: {limits: {hugepages-2Mi: 1Gi, memory: 64Gi}}}"),
            Spares("decode: {resources: {requests: {nvidia.com/gpu: 1}}}"),
            Spares("decode: {device: {resourceName: a.b/c}, resources: {requests: {a.b/c: 1}}}"),
        ),
    ),
    Case(
        "resource-claim-unknown",
        (
            Breaks("decode: {resources: {claims: [{name: gpu}]}}", "spec.decode.resources.claims[0]", {"name": "gpu"}),
            Breaks(
                "encode: {resources: {claims: [{name: a}, {}]}, template: {spec: {resourceClaims: [{name: a}]}}}",
                "spec.encode.resources.claims[1]",
                {},
            ),
        ),
        (
            Spares(
                "decode: {resources: {claims: [{name: a, request: b}]},"
                " template: {spec: {resourceClaims: [{name: a}]}}}"
            ),
        ),
    ),
)
