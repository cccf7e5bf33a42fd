"""Cases of the rules about which vLLM it is."""

from tests.unit.rules.case import Breaks, Case, Spares

_IMAGE = "transfer: {embeddings: {connector: ECCPUConnector}}, engine: "

CASES = (
    Case(
        "engine-version-missing",
        (
            Breaks("engine: <absent>", "spec.engine.version", None),
            Breaks("engine: {version: <absent>, image: 'a/b:latest'}", "spec.engine.version", None),
            Breaks("engine: {version: <absent>, image: 'localhost:5000/b'}", "spec.engine.version", None),
        ),
        (Spares(f"{{{_IMAGE}{{version: <absent>, image: 'a/b:v0.33.0'}}}}"),),
    ),
    Case(
        "engine-version-unknown",
        (
            Breaks("engine: {version: latest}", "spec.engine.version", "latest", remedy="0.33.0"),
            Breaks("engine: {version: 0.33.x}", "spec.engine.version", "0.33.x"),
            Breaks("engine: {version: ' 0.33.0'}", "spec.engine.version", " 0.33.0"),
            Breaks("engine: {version: '1.0'}", "spec.engine.version", "1.0"),
        ),
        (Spares("engine: {version: v0.33}"), Spares("engine: {version: 0.33.0+cu130}")),
    ),
    Case(
        "engine-version-too-old",
        (
            Breaks("engine: {version: 0.27.1}", "spec.engine.version", "0.27.1", remedy="0.28.0"),
            Breaks("engine: {version: <absent>, image: 'a/b:v0.9.2'}", "spec.engine.image", "a/b:v0.9.2"),
        ),
        (
            Spares(
                "{engine: {version: 0.28.0}, transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}}"
            ),
        ),
    ),
    Case(
        "engine-version-newer",
        (Breaks("engine: {version: 0.99.0}", "spec.engine.version", "0.99.0"),),
        (Spares("engine: {version: 0.33.9}"),),
    ),
    Case(
        "engine-version-mismatch",
        (Breaks("engine: {version: 0.32.0, image: 'a/b:0.33.0'}", "spec.engine.version", "0.32.0", remedy="0.33.0"),),
        (
            Spares(f"{{{_IMAGE}{{version: 0.33.1, image: 'a/b:0.33.0'}}}}"),
            Spares(f"{{{_IMAGE}{{version: 0.33.1, image: 'a/b:mine'}}}}"),
        ),
    ),
    Case(
        "engine-image-missing",
        (
            Breaks("device: {type: XPU}", "spec.engine.image", None),
            Breaks("engine: {version: 0.33.0rc1}", "spec.engine.image", None, remedy="0.33.0rc1"),
        ),
        (
            Spares(f"{{device: {{type: XPU}}, {_IMAGE}{{image: a/b}}}}"),
            Spares("device: {type: XPU}", local=True),
        ),
    ),
    Case(
        "engine-image-one-device",
        (
            Breaks(
                f"{{encode: {{device: {{type: ROCm}}}}, {_IMAGE}{{image: a/b}}}}",
                "spec.engine.image",
                "a/b",
            ),
            Breaks(
                "{encode: {device: {type: CPU}}, engine: {image: a/b},"
                " transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}}",
                "spec.engine.image",
                "a/b",
            ),
        ),
        (Spares("{encode: {device: {type: ROCm}}}"), Spares(f"{{device: {{type: ROCm}}, {_IMAGE}{{image: a/b}}}}")),
    ),
)
