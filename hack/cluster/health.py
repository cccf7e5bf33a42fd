"""Asking a component whether it is ready."""

import ssl
import urllib.request
from pathlib import Path


def answers(url: str, authority: Path | None = None, timeout: float = 3) -> bool:
    """Whether a GET is answered with 200.

    Without `authority` the certificate is not checked: controller-manager and scheduler make their own, in memory.

    Raises OSError: no connection, or an answer of 400 or more.
    """
    context = ssl.create_default_context(cafile=str(authority)) if authority else ssl.create_default_context()
    if authority is None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    with opener.open(url, timeout=timeout) as response:
        return bool(response.status == 200)
