"""As much of an API server as EndpointSlices need: list and watch over TLS, and the ways in which both break."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from epd_proxy.kube import ApiServer


class FakeApiServer:
    """Holds EndpointSlices and tells watchers of every change."""

    def __init__(self, account: Path) -> None:
        self.account = account
        self.slices: dict[str, dict[str, Any]] = {}
        self.version = 1
        self.lists = self.watches = 0
        self.refusing = False
        self.tokens: list[str] = []
        self._watchers: set[asyncio.StreamWriter] = set()
        (account / "token").write_text("first-token")

    async def start(self) -> None:
        """Listen."""
        context = _certified(self.account)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def address(self) -> ApiServer:
        """How a client finds it."""
        return ApiServer("127.0.0.1", self.port, self.account)

    def put(self, name: str, slice_: dict[str, Any]) -> None:
        """Create or change a slice."""
        kind = "MODIFIED" if name in self.slices else "ADDED"
        self.slices[name] = {**slice_, "metadata": {**slice_["metadata"], "name": name}}
        self._tell(kind, self.slices[name])

    def delete(self, name: str) -> None:
        """Delete a slice."""
        self._tell("DELETED", self.slices.pop(name))

    def put_silently(self, name: str, slice_: dict[str, Any] | None) -> None:
        """Change something without telling: what happens in a gap."""
        self.slices.pop(name, None)
        if slice_:
            self.slices[name] = {**slice_, "metadata": {**slice_["metadata"], "name": name}}

    def expire_watches(self) -> None:
        """Say that the resource version is too old."""
        self._send({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}})

    def break_watches(self) -> None:
        """Cut the connections of watchers."""
        for writer in list(self._watchers):
            writer.transport.abort()

    async def stop(self) -> None:
        """End."""
        self.break_watches()
        self._server.close()
        await asyncio.sleep(0.01)

    def _tell(self, kind: str, slice_: dict[str, Any]) -> None:
        self.version += 1
        self._send({"type": kind, "object": slice_})

    def _send(self, event: dict[str, Any]) -> None:
        line = json.dumps(event).encode() + b"\n"
        for writer in self._watchers:
            writer.write(b"%x\r\n%b\r\n" % (len(line), line))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            target = head.split(" ")[1]
            self.tokens.append(head.partition("authorization: Bearer ")[2].partition("\r\n")[0])
            query = parse_qs(urlsplit(target).query)
            if self.refusing:
                writer.write(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
            elif "watch" in query:
                self.watches += 1
                writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                self._watchers.add(writer)
                await reader.read()
            else:
                self.lists += 1
                found = {"metadata": {"resourceVersion": str(self.version)}, "items": list(self.slices.values())}
                body = json.dumps(found).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._watchers.discard(writer)
            writer.close()


def _certified(folder: Path) -> ssl.SSLContext:
    """Make a certificate for the loopback, its own authority, and return a server's context."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "api server of a test")])
    now = datetime.datetime.now(datetime.UTC)
    alternatives = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(alternatives, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "ca.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.crt", folder / "key.pem")
    return context
