"""The project's container images: built by Docker or, without a daemon, by buildah; loaded into a cluster's nodes."""
