"""The EPD operator: encode/prefill/decode serving of multimodal models on vLLM, as one Kubernetes object.

The way of an object: `api` parses it, `engine` checks it against what vLLM does, `plan` decides everything that will
exist, `manifests` turns that into Kubernetes objects, `local` into processes. `controller`, `local` and `cli` are the
shells that touch the world.
"""

__version__ = "0.1.0"
