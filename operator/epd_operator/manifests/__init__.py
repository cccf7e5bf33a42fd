"""A plan becomes Kubernetes objects: YAML templates, one a kind, and the pods' overlays merged in afterwards."""

from epd_operator.manifests.render import CREATED_ONCE, render

__all__ = ["CREATED_ONCE", "render"]
