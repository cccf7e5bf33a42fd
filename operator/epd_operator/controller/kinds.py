"""The kinds of object that an EPDDeployment has as children, and the two kinds of this project."""

from epd_operator.api.deployment import GROUP, KIND, PLURAL, VERSION
from epd_operator.api.role_scale import SCALE_KIND, SCALE_PLURAL
from epd_operator.cluster import resources
from epd_operator.cluster.resources import Resource

EPD_DEPLOYMENTS = Resource(GROUP, VERSION, KIND, PLURAL)
ROLE_SCALES = Resource(GROUP, VERSION, SCALE_KIND, SCALE_PLURAL)

CHILDREN: dict[str, Resource] = {
    resource.kind: resource
    for resource in (
        resources.SERVICE_ACCOUNTS,
        resources.ROLE_BINDINGS,
        resources.CONFIG_MAPS,
        resources.NETWORK_POLICIES,
        resources.SERVICES,
        resources.POD_DISRUPTION_BUDGETS,
        resources.DEPLOYMENTS,
        resources.CRON_JOBS,
    )
}
"""Kinds that are rendered, applied, compared and removed."""

CREATED_NOT_APPLIED = frozenset({"ServiceAccount", "ConfigMap"})
"""Kinds whose objects a first apply would silently merge with a stranger's of the same name, since nothing in them
conflicts: they are created, which the API server refuses where the name is taken."""
