"""Rules about volumes."""

from collections.abc import Iterator

from epd_operator.api.device import DeviceType
from epd_operator.api.finding import Severity
from epd_operator.api.role import PreprocessingDevice, Role
from epd_operator.engine import connectors
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import TransferChoice, Wiring


@rule(
    id="shared-directory-without-claim",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="A connector that moves data through a shared directory needs a PersistentVolumeClaim.",
    why="Each pod would write to a directory of its own: nothing is transferred, and vLLM says no word about it.",
    source="vLLM ec_connector/example_connector.py, kv_connector/v1/example_connector.py (path defaults to /tmp)",
    proved=True,
)
def shared_directory_without_claim(wiring: Wiring) -> Iterator[Broken]:
    """A shared directory and no volume, in a cluster."""
    if wiring.local:
        return
    transfer = wiring.deployment.spec.transfer
    embeddings = transfer.embeddings.volume if transfer and transfer.embeddings else None
    kv = transfer.kv.volume if transfer and transfer.kv else None
    choice = wiring.embeddings
    if choice is not None and embeddings is None and connectors.embeddings_needs(choice.connector).shared_directory:
        if not (choice.chosen and _device_is_wrong(wiring)):
            yield _without_claim(choice)
        return  # a claim of the embeddings serves the KV blocks too
    choice = wiring.kv
    missing = kv is None and embeddings is None
    if choice is not None and missing and connectors.kv_needs(choice.connector).shared_directory:
        yield _without_claim(choice)


def _device_is_wrong(wiring: Wiring) -> bool:
    """Whether another rule wants a device changed, with which the default connector may change."""
    encode, prefill, decode = (wiring.instances.get(role) for role in Role)
    if prefill is not None and decode is not None and prefill.device_type is not decode.device_type:
        return True
    return encode is not None and (
        encode.device_type is DeviceType.CPU and encode.wanted_preprocessing is PreprocessingDevice.ACCELERATOR
    )


def _without_claim(choice: TransferChoice) -> Broken:
    how = " (the default here)" if choice.chosen else ""
    message = f"{choice.connector}{how} moves data through a directory that both roles must mount"
    path = f"{choice.path}.volume"
    remedy = f"set {path.removeprefix('spec.')}.persistentVolumeClaim.claimName"
    return Broken(path, None, message, remedy)


@rule(
    id="volume-without-use",
    severity=Severity.WARNING,
    kind=Kind.STRICTER,
    what="A transfer volume is used only by connectors that move data through a shared directory.",
    why="The volume would not be mounted.",
    source="the API of EPDDeployment",
)
def volume_without_use(wiring: Wiring) -> Iterator[Broken]:
    """A volume beside a connector of another kind."""
    transfer = wiring.deployment.spec.transfer
    kv_shares = wiring.kv is not None and connectors.kv_needs(wiring.kv.connector).shared_directory
    for part, choice, shared in (
        (transfer.embeddings if transfer else None, wiring.embeddings, kv_shares),
        (transfer.kv if transfer else None, wiring.kv, False),
    ):
        if part is None or part.volume is None or choice is None or shared:
            continue
        needs = connectors.EMBEDDINGS.get(choice.connector) or connectors.KV.get(choice.connector)
        if needs is not None and not needs.shared_directory:
            claim = part.volume.persistent_volume_claim.claim_name
            message = f"{choice.connector} moves nothing through a directory, so the volume is not mounted"
            yield Broken(f"{choice.path}.volume", claim, message, "remove it or change the connector")


@rule(
    id="model-path-without-volume",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="A model given as a path needs a model volume.",
    why="The path would not exist in the pods.",
    source="the API of EPDDeployment",
)
def model_path_without_volume(wiring: Wiring) -> Iterator[Broken]:
    """A path, no volume, in a cluster."""
    model = wiring.deployment.spec.model
    if model.id.startswith(("/", "./")) and model.volume is None and not wiring.local:
        message = "is a path inside the model volume, and there is no model volume"
        yield Broken("spec.model.id", model.id, message, "set model.volume, or use a Hugging Face id")


@rule(
    id="model-path-escapes",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="A model path stays inside the model volume.",
    why="`..` would name a directory of the container.",
    source="the API of EPDDeployment",
)
def model_path_escapes(wiring: Wiring) -> Iterator[Broken]:
    """A path with `..`, or one that begins with a dot and is neither a path in the volume nor a Hugging Face id."""
    model = wiring.deployment.spec.model
    if ".." in model.id.split("/"):
        yield Broken("spec.model.id", model.id, "leads out of the model volume", "write it without ..")
    elif model.id.startswith(".") and not model.id.startswith("./"):
        message = "is neither a path in the model volume nor a Hugging Face id"
        yield Broken("spec.model.id", model.id, message, "begin a path with ./ or write a Hugging Face id")


@rule(
    id="volume-read-only",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="Volumes that engines write to are not read-only: shared directories, and the cache of downloads.",
    why="Every engine makes its directory there before it starts, and downloads go there.",
    source="the plan; vLLM up to 0.32 makes directories on lookups too (ec_connector/example_connector.py)",
)
def volume_read_only(wiring: Wiring) -> Iterator[Broken]:
    """A claim with readOnly, or an image as the cache."""
    if wiring.local:
        return
    transfer, model = wiring.deployment.spec.transfer, wiring.deployment.spec.model
    kv_shares = wiring.kv is not None and connectors.kv_needs(wiring.kv.connector).shared_directory
    shares = wiring.embeddings is not None and connectors.embeddings_needs(wiring.embeddings.connector).shared_directory
    for path, part, used in (
        ("spec.transfer.embeddings", transfer.embeddings if transfer else None, shares or kv_shares),
        ("spec.transfer.kv", transfer.kv if transfer else None, kv_shares),
    ):
        if used and part is not None and part.volume is not None and part.volume.persistent_volume_claim.read_only:
            message = "instances write to this directory, and the claim would be mounted read-only"
            yield Broken(f"{path}.volume.persistentVolumeClaim.readOnly", True, message, "remove it")
    if model.volume is None or model.id.startswith(("/", "./")):
        return
    claim, image = model.volume.persistent_volume_claim, model.volume.image
    message = "the model is downloaded, and the volume that keeps downloads would be mounted read-only"
    if claim is not None and claim.read_only:
        remedy = "remove it, or set model.id to the path of the weights in the claim"
        yield Broken("spec.model.volume.persistentVolumeClaim.readOnly", True, message, remedy)
    if image is not None:
        remedy = "set model.id to the path of the weights in the image, for example /"
        yield Broken("spec.model.volume.image", image.reference, message, remedy)


@rule(
    id="model-id-malformed",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="A model that is no path is a Hugging Face id, name or organization/name, or an address such as s3://.",
    why="vLLM asks the hub for it, which refuses the name, and every engine ends at its start.",
    source="huggingface_hub, utils/_validators.py (validate_repo_id)",
)
def model_id_malformed(wiring: Wiring) -> Iterator[Broken]:
    """An address of a web page, a path of somebody's home, or too many parts."""
    model_id = wiring.deployment.spec.model.id
    scheme, separator, rest = model_id.partition("://")
    page = separator and scheme.lower() in ("http", "https", "hf")
    parts = (rest.removeprefix("huggingface.co/") if page else model_id).strip("/").split("/")
    home = model_id.startswith("~")
    if model_id.startswith((".", "/")) or not (page or home or (not separator and len(parts) > 2)):
        return
    named = "/".join(parts[:2])
    remedy = f"write {named}" if page else "begin a path in the model volume with ./, or write organization/name"
    yield Broken("spec.model.id", model_id, "is neither a Hugging Face id nor a path in the model volume", remedy)


RULES = (
    shared_directory_without_claim,
    volume_without_use,
    volume_read_only,
    model_path_escapes,
    model_id_malformed,
    model_path_without_volume,
)
