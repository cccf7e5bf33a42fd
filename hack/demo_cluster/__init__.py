"""The operator installed in a cluster, and what an EPDDeployment needs there; `make demo-cluster` shows it at work."""
