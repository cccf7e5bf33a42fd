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
)
