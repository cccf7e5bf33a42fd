"""A plan becomes Kubernetes objects."""
