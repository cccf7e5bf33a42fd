"""What the operator's own installation decides, beside the object."""

from dataclasses import dataclass

from epd_operator import __version__


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one operator."""

    proxy_image: str = f"epd-proxy:{__version__}"
    """Image of the proxy and the pruner where an object names none."""
    proxy_cluster_role: str = "epd-proxy"
    """ClusterRole that lets a proxy read EndpointSlices; bound in the namespace of each deployment."""


DEFAULT_SETTINGS = Settings()
