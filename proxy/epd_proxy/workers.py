"""Several processes that share a port (SO_REUSEPORT), each with its share of the limits."""

from __future__ import annotations

from epd_proxy.options import Options
from epd_proxy.process import serve


def run_workers(options: Options) -> int:
    """Serve in several processes."""
    return serve(options)
