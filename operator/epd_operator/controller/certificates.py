"""The webhook's certificate: signed by itself, trusted by name in the webhook's configuration, and replaced in time.

A new certificate is trusted before it is used: it waits in the Secret as `next` while API servers learn of it.
"""

import base64
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=90)
RENEW_BEFORE = timedelta(days=30)
SETTLE = timedelta(minutes=5)
"""How long API servers may take to learn of a new certificate."""
CERTIFICATE, KEY = "tls.crt", "tls.key"
NEXT_CERTIFICATE, NEXT_KEY = "next.crt", "next.key"


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True)
class Rotation:
    """What the Secret shall hold, and whom the API server shall trust."""

    data: Mapping[str, bytes]
    trusted: bytes
    """PEM certificates, for caBundle."""


def make_pair(names: Sequence[str], now: datetime) -> Pair:
    """A new certificate for some DNS names and addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "epd-operator webhook")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectAlternativeName([_name(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def rotate(data: Mapping[str, bytes] | None, names: Sequence[str], now: datetime | None = None) -> Rotation:
    """The next state of the Secret. Call it now and then; nothing changes while the certificate is young.

    `data`: the Secret's, None where there is none. What cannot be read, or is for other names, is replaced at once.
    """
    now = now or datetime.now(UTC)
    current = _pair(data, CERTIFICATE, KEY)
    if current is None or not _good(current, names, now):
        pair = make_pair(names, now)
        return Rotation({CERTIFICATE: pair.certificate, KEY: pair.key}, pair.certificate)
    following = _pair(data, NEXT_CERTIFICATE, NEXT_KEY)
    if following is not None and not _good(following, names, now):
        following = None
    if following is None:
        if _loaded(current).not_valid_after_utc - now > RENEW_BEFORE:
            return Rotation({CERTIFICATE: current.certificate, KEY: current.key}, current.certificate)
        following = make_pair(names, now)
    elif now >= _loaded(following).not_valid_before_utc + timedelta(minutes=5) + SETTLE:
        trusted = following.certificate + current.certificate
        return Rotation({CERTIFICATE: following.certificate, KEY: following.key}, trusted)
    both = {
        CERTIFICATE: current.certificate,
        KEY: current.key,
        NEXT_CERTIFICATE: following.certificate,
        NEXT_KEY: following.key,
    }
    return Rotation(both, current.certificate + following.certificate)


def encoded(data: Mapping[str, bytes]) -> dict[str, str]:
    """As in a Secret's data."""
    return {name: base64.b64encode(content).decode() for name, content in data.items()}


def decoded(data: Mapping[str, str] | None) -> dict[str, bytes]:
    """From a Secret's data."""
    return {name: base64.b64decode(content) for name, content in (data or {}).items()}


def _pair(data: Mapping[str, bytes] | None, certificate: str, key: str) -> Pair | None:
    if not data or not data.get(certificate) or not data.get(key):
        return None
    return Pair(data[certificate], data[key])


def _good(pair: Pair, names: Sequence[str], now: datetime) -> bool:
    try:
        certificate = _loaded(pair)
        serialization.load_pem_private_key(pair.key, None)
        held = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    in_time = certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc
    return in_time and set(held) == {_name(name) for name in names}


def _loaded(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def _name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
