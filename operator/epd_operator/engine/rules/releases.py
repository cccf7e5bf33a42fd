"""Rules about which vLLM it is."""

from collections.abc import Iterator

from epd_operator.api.finding import Severity
from epd_operator.engine.images import default_image
from epd_operator.engine.release import OLDEST, Release
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring


def _version(wiring: Wiring) -> str | None:
    return wiring.deployment.spec.engine.version


@rule(
    id="engine-version-missing",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="engine.version is required unless the image's tag names a vLLM release.",
    why="Rules, flags, defaults and the wire format between the roles differ by release.",
    source="the operator's capability tables",
)
def version_missing(wiring: Wiring) -> Iterator[Broken]:
    """No version, and no tag that says it."""
    if _version(wiring) is None and wiring.release is None:
        image = wiring.deployment.spec.engine.image
        found = f"the tag of image {image} names no vLLM release" if image else "nothing names a vLLM release"
        yield Broken(
            "spec.engine.version", None, f"{found}, so no rule can be checked", "set engine.version, for example 0.33.0"
        )


@rule(
    id="engine-version-unknown",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="engine.version must be a vLLM release, of a major that the operator knows.",
    why="Rules, flags, defaults and the wire format between the roles differ by release.",
    source="the operator's capability tables",
)
def version_unknown(wiring: Wiring) -> Iterator[Broken]:
    """A version that is none, or of a major that is not known."""
    version, release, known = _version(wiring), wiring.release, wiring.capabilities.version
    if version is not None and release is None:
        message = "is not a vLLM release, so no rule can be checked"
        yield Broken("spec.engine.version", version, message, f"write major.minor.patch, for example {known}")
    elif release is not None and release.major > Release.parse(known).major:
        message = f"this operator knows vLLM up to {known}, and another major is another engine"
        yield Broken(_where(wiring), _written(wiring), message, f"use {known}, or a newer operator")


@rule(
    id="engine-version-too-old",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what=f"vLLM {OLDEST.minor_text} is the oldest release that is supported.",
    why="Encoders of older releases report no metadata, so every consumer would preprocess all media again.",
    source="vLLM 0.27 and 0.28 entrypoints/openai/chat_completion/protocol.py (ec_transfer_params)",
    since=Release(0, 0),
)
def version_too_old(wiring: Wiring) -> Iterator[Broken]:
    """A release before the first one with metadata."""
    release = wiring.release
    if release is not None and release.minor_key < OLDEST.minor_key:
        message = f"encoders of vLLM before {OLDEST.minor_text} report no metadata to pass on"
        yield Broken(_where(wiring), _written(wiring), message, f"use {OLDEST} or later")


@rule(
    id="engine-version-newer",
    severity=Severity.WARNING,
    kind=Kind.ADVICE,
    what="A release newer than the operator knows is treated as the newest that it knows.",
    why="Flags, connectors and wire formats may have changed since; rules may be wrong in both directions.",
    source="the operator's capability tables",
)
def version_newer(wiring: Wiring) -> Iterator[Broken]:
    """A release without a table of its own."""
    release = wiring.release
    if release is not None and not wiring.capabilities.exact and release.minor_key >= OLDEST.minor_key:
        known = wiring.capabilities.version
        message = f"this operator knows vLLM up to {known} and treats later releases like it"
        yield Broken(_where(wiring), _written(wiring), message, "update the operator, or expect findings to be inexact")


@rule(
    id="engine-version-mismatch",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="engine.version and the release in the image's tag must agree.",
    why="The rules and the wire format would be those of a release that does not run.",
    source="the operator's capability tables",
)
def version_mismatch(wiring: Wiring) -> Iterator[Broken]:
    """Two different releases are named."""
    engine = wiring.deployment.spec.engine
    tagged = Release.of_image(engine.image) if engine.image and engine.version else None
    if tagged is not None and wiring.release is not None and tagged.minor_key != wiring.release.minor_key:
        message = f"the image's tag says vLLM {tagged}, so checks and wire format would be those of another release"
        yield Broken("spec.engine.version", engine.version, message, f"set it to {tagged} or remove it")


@rule(
    id="engine-image-missing",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="engine.image is required for devices and pre-releases that vLLM publishes no image for.",
    why="There is no image to run.",
    source="vLLM's published images",
    needs_release=True,
)
def image_missing(wiring: Wiring) -> Iterator[Broken]:
    """No image can be derived."""
    if wiring.deployment.spec.engine.image is not None or wiring.release is None or wiring.local:
        return
    version = _version(wiring) or ""
    if Release.is_pre_release(version):
        message = f"vLLM publishes images of releases, and {version} is none"
        yield Broken("spec.engine.image", None, message, f"name an image that has vLLM {version}")
        return
    for instance in wiring.instances.values():
        if default_image(wiring.release, instance.device_type) is None:
            message = f"vLLM publishes no image for {instance.device_type}"
            yield Broken("spec.engine.image", None, message, "name an image that has vLLM for this device")
            return


@rule(
    id="engine-image-one-device",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="One engine.image cannot serve roles on different types of device.",
    why="A vLLM image is built for one platform; the other role's engine finds no device.",
    source="vLLM's published images: one for each platform",
)
def image_one_device(wiring: Wiring) -> Iterator[Broken]:
    """An image is named and the roles are on different platforms."""
    image = wiring.deployment.spec.engine.image
    kinds = {instance.device_type for instance in wiring.instances.values()}
    if image is not None and len(kinds) > 1:
        message = f"one image is named for {' and '.join(sorted(kinds))}, and vLLM images are built for one of them"
        yield Broken("spec.engine.image", image, message, "remove image, or put all roles on one type of device")


def _where(wiring: Wiring) -> str:
    return "spec.engine.version" if _version(wiring) is not None else "spec.engine.image"


def _written(wiring: Wiring) -> str | None:
    return _version(wiring) or wiring.deployment.spec.engine.image


RULES = (
    version_missing,
    version_unknown,
    version_too_old,
    version_newer,
    version_mismatch,
    image_missing,
    image_one_device,
)
