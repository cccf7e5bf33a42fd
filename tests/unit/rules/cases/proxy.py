"""Cases of the rules about the proxy."""

from tests.unit.rules.case import Breaks, Case, Spares

_DOMAIN = "spec.proxy.media.allowedDomains"
_DOMAINS = "proxy: {{media: {{allowedDomains: [{}]}}}}"
_BODY = "spec.proxy.limits.bodySize"

CASES = (
    Case(
        "proxy-size-zero",
        (
            Breaks("proxy: {limits: {bodySize: 0}}", _BODY, "0"),
            Breaks("proxy: {limits: {inFlightSize: 0}}", "spec.proxy.limits.inFlightSize", "0"),
            Breaks("proxy: {media: {maxSize: 0}}", "spec.proxy.media.maxSize", "0"),
        ),
        (Spares("proxy: {media: {maxSize: 1}}"),),
    ),
    Case(
        "proxy-sizes-out-of-order",
        (
            Breaks("proxy: {limits: {bodySize: 2Gi}}", _BODY, "2Gi", remedy="raise limits.inFlightSize"),
            Breaks("proxy: {media: {maxSize: 128Mi}}", "spec.proxy.media.maxSize", "128Mi"),
            Breaks(
                "proxy: {limits: {inFlightSize: 32Mi}}",
                "spec.proxy.limits.inFlightSize",
                "32Mi",
                remedy="lower limits.bodySize",
            ),
        ),
        (
            Spares("proxy: {limits: {bodySize: 2Gi, inFlightSize: 2Gi}}"),
            Spares("proxy: {limits: {bodySize: 1Mi}}"),
            Spares("proxy: {limits: {bodySize: 1Mi}, media: {maxSize: 1Mi}}"),
        ),
    ),
    Case(
        "allowed-domain-malformed",
        (
            Breaks(_DOMAINS.format("a..b"), f"{_DOMAIN}[0]", "a..b", remedy="example.com"),
            Breaks(_DOMAINS.format("ok.example, a-.b"), f"{_DOMAIN}[1]", "a-.b"),
            Breaks(_DOMAINS.format("10.0.0.1"), f"{_DOMAIN}[0]", "10.0.0.1", remedy="name a host"),
            Breaks(_DOMAINS.format("'1.2.3'"), f"{_DOMAIN}[0]", "1.2.3"),
        ),
        (Spares(_DOMAINS.format("images.example.com, a--b.example, localhost")), Spares(_DOMAINS.format("8.8.8.8"))),
    ),
)
