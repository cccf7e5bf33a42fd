"""Names of everything that belongs to a deployment: from metadata.name, role and revision only.

Model ids never become names or labels: they hold slashes, dots, upper case and any length.
"""

from epd_operator.api.role import Role

REVISION_LENGTH = 8
MAX_LABEL = 63
"""Longest DNS label: Service names, label values and pods' host names.
https://kubernetes.io/docs/concepts/overview/working-with-objects/names/"""
PROXY = "proxy"
LONGEST_SUFFIX = len(f"-{Role.PREFILL}-") + REVISION_LENGTH
MAX_NAME = MAX_LABEL - LONGEST_SUFFIX
"""Longest metadata.name whose children all have legal names."""
MAX_CRON_JOB = 52
"""Longest name of a CronJob: its Jobs add a dash and ten digits."""

LABEL_NAME = "app.kubernetes.io/name"
LABEL_INSTANCE = "app.kubernetes.io/instance"
LABEL_COMPONENT = "app.kubernetes.io/component"
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
LABEL_REVISION = "epd.dev/revision"
LABEL_ROLE = "epd.dev/role"
LABEL_ENGINE_VERSION = "epd.dev/engine-version"
LABEL_EMBEDDINGS_CONNECTOR = "epd.dev/embeddings-connector"
LABEL_KV_CONNECTOR = "epd.dev/kv-connector"
LABEL_DATA_PARALLEL = "epd.dev/data-parallel-size"
LABEL_TENSOR_PARALLEL = "epd.dev/tensor-parallel-size"
LABEL_TRAFFIC = "epd.dev/traffic"
"""On the Service of a revision's decode role, and so on its EndpointSlices: "false" where the revision gets no new
requests. Every revision decodes, so one Service says it for all roles, in one write."""
NO_TRAFFIC = "false"
ANNOTATION_TRAFFIC_ENDED = "epd.dev/traffic-ended"
"""Beside the label: when the revision ceased to get requests, RFC 3339. Absent where it never got any."""
ANNOTATION_DESIRED = "epd.dev/desired-replicas"
"""On the Deployment of a role: what was desired when its revision was last the target; what it carries as a whole."""
ANNOTATION_TEMPLATE_HASH = "epd.dev/template-hash"
ANNOTATION_RENDER = "epd.dev/render"
SECRET_KEY = "key"  # noqa: S105  (the entry's name, not a secret)


def role_name(deployment: str, role: Role, revision: str) -> str:
    """Name of the workload and of the headless Service of one role of one revision."""
    return f"{deployment}-{role}-{revision}"


def proxy_name(deployment: str) -> str:
    """Name of the proxy's Deployment, Service, ConfigMap, ServiceAccount and PodDisruptionBudget."""
    return f"{deployment}-{PROXY}"


def scale_name(deployment: str, role: Role) -> str:
    """Name of the EPDRoleScale of a role."""
    return f"{deployment}-{role}"


def uuid_key_secret(deployment: str) -> str:
    """Name of the Secret with the key of content-derived uuids."""
    return f"{deployment}-uuid-key"


def engine_key_secret(deployment: str) -> str:
    """Name of the Secret with the API key of the engines."""
    return f"{deployment}-engine-key"


def pruner_name(deployment: str) -> str:
    """Name of the CronJob that prunes the shared embeddings directory; such names have at most 52 characters."""
    return f"{deployment}-prune"


def engines_policy(deployment: str) -> str:
    """Name of the NetworkPolicy of all engines."""
    return f"{deployment}-engines"
