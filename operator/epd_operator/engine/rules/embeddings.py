"""Rules about the transfer of embeddings."""

from collections.abc import Iterator

from epd_operator.api.finding import Severity
from epd_operator.api.role import Role
from epd_operator.engine import connectors
from epd_operator.engine.images import default_image, repository_of
from epd_operator.engine.release import Release
from epd_operator.engine.rules.known import unknown_connector
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

_CONNECTOR = "spec.transfer.embeddings.connector"


@rule(
    id="embeddings-connector-unknown",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="The embeddings connector must exist in the release.",
    why='The engine ends with "Unsupported connector type", after the image pull.',
    source="vLLM distributed/ec_transfer/ec_connector/factory.py, each release",
    proved=True,
    needs_release=True,
)
def connector_unknown(wiring: Wiring) -> Iterator[Broken]:
    """A connector that the release's factory does not register."""
    choice = wiring.embeddings
    known = wiring.capabilities.ec_connectors
    if choice is None or choice.chosen or choice.connector in known:
        return
    words = unknown_connector(wiring, choice.connector, "embeddings", known)
    yield Broken(_CONNECTOR, choice.connector, *words)


@rule(
    id="mooncake-embeddings-with-prefill",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="ECMooncakeConnector works only in E+PD.",
    why="The encoder pushes to the consumer that the proxy names; a prefill role in between gets no push.",
    source="vLLM 0.33 examples/disaggregated/disaggregated_encoder, ec_connector/mooncake",
    since=Release(0, 30),
)
def mooncake_with_prefill(wiring: Wiring) -> Iterator[Broken]:
    """Mooncake embeddings in E+P+D."""
    choice = wiring.embeddings_by(connectors.EC_MOONCAKE)
    if choice is not None and Role.PREFILL in wiring.instances:
        message = "ECMooncakeConnector pushes to one combined prefill and decode instance, and this object has prefill"
        yield Broken(_CONNECTOR, choice.connector, message, "remove prefill or use ECCPUConnector")


@rule(
    id="mooncake-producer-single-rank",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="An encoder with ECMooncakeConnector has tensor, pipeline and data parallelism 1.",
    why="vLLM refuses to start.",
    source="vLLM 0.30 to 0.33 ec_connector/mooncake/config.py",
    since=Release(0, 30),
    proved=True,
)
def mooncake_producer_single_rank(wiring: Wiring) -> Iterator[Broken]:
    """More than one rank on the producing side."""
    instance = wiring.instances.get(Role.ENCODE)
    if instance is None or wiring.embeddings_by(connectors.EC_MOONCAKE) is None:
        return
    many = [name for name, degree in instance.degrees.items() if degree > 1]
    if many:
        message = "an ECMooncakeConnector encoder has one rank (vLLM refuses to start)"
        remedy = f"set {' and '.join(many)} to 1 and raise encode.replicas instead"
        yield Broken(f"spec.encode.parallelism.{many[0]}", instance.degrees[many[0]], message, remedy)


@rule(
    id="nixl-in-image",
    severity=Severity.WARNING,
    kind=Kind.ADVICE,
    what="ECCPUConnector, chosen by default, needs the nixl package in the image.",
    why="nixl is no dependency of vLLM; an image of one's own may lack it, and the engine then ends with an error.",
    source="vLLM 0.33 requirements/kv_connectors.txt",
    since=connectors.EC_CPU_NIXL_SINCE,
    needs_release=True,
)
def nixl_in_image(wiring: Wiring) -> Iterator[Broken]:
    """The default connector with an image that is not vLLM's own."""
    engine = wiring.deployment.spec.engine
    image = engine.image
    choice = wiring.embeddings_by(connectors.EC_CPU)
    if choice is None or not choice.chosen or image is None or wiring.release is None:
        return
    own = {repository_of(default_image(wiring.release, i.device_type) or "") for i in wiring.instances.values()}
    tagged = Release.of_image(image)
    mismatch = tagged is not None and tagged.minor_key != wiring.release.minor_key  # has a rule of its own
    if not mismatch and repository_of(image) not in own:
        message = "ECCPUConnector was chosen by default and needs the nixl package in the image"
        remedy = "check that it has nixl, then name the connector in transfer.embeddings.connector"
        yield Broken("spec.engine.image", image, message, remedy)


RULES = (
    connector_unknown,
    mooncake_with_prefill,
    mooncake_producer_single_rank,
    nixl_in_image,
)
