"""A stand-in for `vllm serve` in a pod: its start, its flags, its wire, and transfers that really cross the network.

Each instance is a process of its own that knows nothing of the others but what its flags, its environment and the
proxy tell it. Embeddings and KV blocks are stood for by digests, which travel where the real ones would: through a
shared directory, or over the side channels' hosts and ports. An answer depends on every word and every byte of media,
so a client that knows how it is made (`answers`) sees when anything was mixed up or lost.
"""
