"""One certificate authority and the certificates it signs for the components."""

import datetime
import ipaddress
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hack.cluster.settings import Settings

LIFETIME = datetime.timedelta(days=3650)
CA = "ca"
SERVICE_ACCOUNT = "service-account"


@dataclass(frozen=True)
class Leaf:
    """A certificate: its user name and group as Kubernetes reads them, and whether a server or a client shows it."""

    name: str
    group: str = ""
    server: bool = False


def leaves(node_name: str) -> dict[str, Leaf]:
    """Every certificate by its file name. Client certificates have the name of the kubeconfig that carries them."""
    return {
        "apiserver": Leaf("kube-apiserver", server=True),
        "kubelet-server": Leaf(node_name, server=True),
        "apiserver-kubelet-client": Leaf("kube-apiserver-kubelet-client", "system:masters"),
        "front-proxy-client": Leaf("front-proxy-client"),
        "admin": Leaf("admin", "system:masters"),
        "controller-manager": Leaf("system:kube-controller-manager"),
        "scheduler": Leaf("system:kube-scheduler"),
        "kubelet": Leaf(f"system:node:{node_name}", "system:nodes"),
        "proxy": Leaf("system:kube-proxy"),
    }


def make_certificates(directory: Path, settings: Settings) -> None:
    """Write `NAME.crt` and `NAME.key` for the authority and each certificate, and the key that signs tokens.

    They are kept from then on, and made anew only when a name or an address that they must cover changes.
    """
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    names = [str(name.value) for name in _server_names(settings)]
    stamp = directory / "made-for"
    if stamp.exists() and stamp.read_text() == "\n".join(names):
        return
    authority_key = _write_key(directory / f"{CA}.key")
    authority = _sign(_name(Leaf("epd-local-cluster")), None, authority_key, authority_key, _authority_extensions())
    _write_certificate(directory / f"{CA}.crt", authority)
    for file, leaf in leaves(settings.node_name).items():
        key = _write_key(directory / f"{file}.key")
        extensions = _leaf_extensions(list(_server_names(settings)) if leaf.server else [])
        _write_certificate(directory / f"{file}.crt", _sign(_name(leaf), authority, key, authority_key, extensions))
    token_key = _write_key(directory / f"{SERVICE_ACCOUNT}.key")
    (directory / f"{SERVICE_ACCOUNT}.pub").write_bytes(
        token_key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    stamp.write_text("\n".join(names))


def _server_names(settings: Settings) -> Iterator[x509.DNSName | x509.IPAddress]:
    service = ["kubernetes", "default", "svc", "cluster", "local"]
    for name in ("localhost", settings.node_name, *(".".join(service[:length]) for length in (1, 2, 3, 5))):
        yield x509.DNSName(name)
    for address in ("127.0.0.1", settings.bridge_address, settings.apiserver_service):
        yield x509.IPAddress(ipaddress.ip_address(address))


def _name(leaf: Leaf) -> x509.Name:
    group = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, leaf.group)] if leaf.group else []
    return x509.Name([*group, x509.NameAttribute(NameOID.COMMON_NAME, leaf.name)])


_Extension = tuple[x509.ExtensionType, bool]


def _authority_extensions() -> list[_Extension]:
    return [(x509.BasicConstraints(ca=True, path_length=None), True), (_key_usage(authority=True), True)]


def _leaf_extensions(server_names: list[x509.DNSName | x509.IPAddress]) -> list[_Extension]:
    purpose = ExtendedKeyUsageOID.SERVER_AUTH if server_names else ExtendedKeyUsageOID.CLIENT_AUTH
    extensions: list[_Extension] = [(_key_usage(authority=False), True), (x509.ExtendedKeyUsage([purpose]), False)]
    if server_names:
        extensions.append((x509.SubjectAlternativeName(server_names), False))
    return extensions


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _sign(
    subject: x509.Name,
    issuer: x509.Certificate | None,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    extensions: list[_Extension],
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + LIFETIME)
        # Strict verifiers (Python's from 3.13) ask for both identifiers.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(issuer_key, hashes.SHA256())


def _write_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(pem)
    return key


def _write_certificate(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
