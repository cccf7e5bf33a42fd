"""A real Kubernetes cluster on one machine, without Docker and without an image registry.

etcd, the Kubernetes components, kubectl and CoreDNS are built from Go modules (`go/`). The control plane alone needs no
root and runs no pods; `testkubelet` then plays the nodes. A node of its own needs root and containerd.
"""
