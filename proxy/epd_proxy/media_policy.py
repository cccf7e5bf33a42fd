"""Which media URLs are taken. The engines are told the same, and follow no redirects."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from typing import Final

from epd_proxy.config import Media
from epd_proxy.errors import ProxyError

_WEB: Final = re.compile(r"https?://([A-Za-z0-9.-]+)(?::\d{1,5})?(?:[/?#][!-\[\]-~]*)?\Z", re.IGNORECASE)
_DATA: Final = re.compile(r"data:", re.IGNORECASE)


class MediaPolicy:
    """The policy of one deployment."""

    def __init__(self, media: Media) -> None:
        self._domains = frozenset(media.allowed_domains)
        self._private = media.allow_private_addresses

    def host(self, url: str) -> str | None:
        """Return the host of a web URL whose addresses are still to be checked, None for a data: URL.

        Raises ProxyError for every other URL. One strict form is taken, printable ASCII with a plain host, so that no
        other reader of the URL can find another host in it.
        """
        if _DATA.match(url):
            return None
        scheme = url.partition(":")[0][:20].lower()
        if scheme not in ("http", "https"):
            raise _refused(f"media of scheme {scheme!r} are not taken; send a data: URL{self._or_domain()}")
        found = _WEB.match(url)
        if not found:
            raise _refused(
                "the media URL has user information, an address in brackets, a backslash, a blank or another character "
                "that is not plain; send https://host/path, percent-encoded"
            )
        host = found[1].lower()
        if host not in self._domains:
            raise _refused(f"media of host {host[:100]!r} are not taken; send a data: URL{self._or_domain()}")
        return host

    async def check_addresses(self, host: str) -> None:
        """Resolve a host and refuse it when any address is not a public one. Raises ProxyError."""
        if self._private:
            return
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError:
            raise _refused(f"media host {host!r} does not resolve") from None
        for entry in found:
            address = ipaddress.ip_address(str(entry[4][0]).partition("%")[0])
            if not public(address):
                raise _refused(f"media host {host!r} resolves to {address}, which is not a public address")

    def _or_domain(self) -> str:
        return f" or one of {', '.join(sorted(self._domains))}" if self._domains else ""


def public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Say whether an address is on the public internet, also when an IPv6 form wraps an IPv4 address."""
    if isinstance(address, ipaddress.IPv6Address):
        wrapped = address.ipv4_mapped or address.sixtofour
        if wrapped is None and address in _NAT64:
            wrapped = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if wrapped is not None:
            return public(wrapped)
    return address.is_global and not address.is_multicast


_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


def _refused(message: str) -> ProxyError:
    return ProxyError(400, message, param="messages")
