"""Talking to the Kubernetes API server."""
