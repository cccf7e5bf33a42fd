"""EPDDeployment: one multimodal model served by encode, prefill and decode instances behind a proxy."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from epd_operator.api.base import Annotations, APIModel, Bool, Labels, Name, OpenObject
from epd_operator.api.device import Device
from epd_operator.api.engine import Engine
from epd_operator.api.model import Model
from epd_operator.api.proxy import Proxy
from epd_operator.api.role import Role, RoleSpec
from epd_operator.api.rollout import Preflight, Rollout
from epd_operator.api.transfer import Transfer

GROUP = "epd.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "EPDDeployment"
PLURAL = "epddeployments"
NAMESPACE = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


class EPDDeploymentSpec(APIModel):
    """What is wanted."""

    model_config = ConfigDict(
        json_schema_extra={
            "required": ["model", "engine", "decode"],
            "x-kubernetes-validations": [
                {
                    "rule": "has(self.operatorClass) == has(oldSelf.operatorClass)"
                    " && (!has(self.operatorClass) || self.operatorClass == oldSelf.operatorClass)",
                    "message": "operatorClass is immutable: delete the object and create it anew for another operator",
                }
            ],
        }
    )

    model: Model
    """The model that is served."""
    engine: Engine = Engine()
    """Which vLLM serves it."""
    device: Device | None = None
    """Device of every role that names none. Default CUDA."""
    encode: RoleSpec | None = None
    """Encoders. Without them the consumers encode media themselves. Adding or removing them makes a new revision."""
    prefill: RoleSpec | None = None
    """Prefill instances. Without them the decode instances prefill too. A change of presence makes a new revision."""
    decode: RoleSpec | None = None
    """Decode instances."""
    transfer: Transfer | None = None
    """How embeddings and KV blocks get from one role to the next."""
    proxy: Proxy | None = None
    """The proxy in front of the roles."""
    rollout: Rollout | None = None
    """How a new revision replaces the old one."""
    preflight: Preflight | None = None
    """What a cluster that lacks the device means. Warn (default): pods are made, since node autoscalers act on them.
    Enforce: no pod is made until a node offers it."""
    suspend: Bool | None = None
    """Scale every role and the proxy to 0 and delete nothing. Default false."""
    operator_class: Annotated[Name | None, Field(max_length=63)] = None
    """Which operator serves the object, where there are several. Immutable. Default: the one without a class."""

    def role(self, role: Role) -> RoleSpec | None:
        """What is wanted of one role; None if the deployment does not have it."""
        return {Role.ENCODE: self.encode, Role.PREFILL: self.prefill, Role.DECODE: self.decode}[role]

    def roles(self) -> dict[Role, RoleSpec]:
        """The roles that the deployment has, in the order a request visits them."""
        return {role: spec for role in Role if (spec := self.role(role)) is not None}


class ObjectMeta(APIModel):
    """Kubernetes' metadata, of which the operator reads a few fields."""

    model_config = ConfigDict(extra="allow")

    name: Name
    """Name of the object; all names of its children derive from it."""
    namespace: Annotated[Name, Field(max_length=63, pattern=NAMESPACE)] | None = None
    """Namespace of the object. Default: the client's."""
    annotations: Annotations | None = None
    """Annotations; epd.dev/render asks for a rendering with the defaults of the running operator."""
    labels: Labels | None = None
    """Labels."""
    generation: int | None = None
    """Counted up by the API server with each change of the spec."""
    uid: str | None = None
    """Identity of this object, whatever its name."""


class EPDDeployment(APIModel):
    """One multimodal model served by encode, prefill and decode instances of vLLM behind a proxy."""

    api_version: Literal["epd.dev/v1alpha1"]
    kind: Literal["EPDDeployment"]
    metadata: ObjectMeta
    spec: EPDDeploymentSpec
    status: OpenObject | None = None
    """What the operator reports: see epd_operator.api.status. Not read when an object is judged."""

    @property
    def name(self) -> str:
        """Name of the object."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Namespace of the object, `default` where none is given."""
        return self.metadata.namespace or "default"
