"""The webhook's certificate: trusted before it is used, replaced in time."""

import ssl
from datetime import UTC, datetime, timedelta

from cryptography import x509

from epd_operator.controller.certificates import (
    CERTIFICATE,
    KEY,
    LIFETIME,
    NEXT_CERTIFICATE,
    RENEW_BEFORE,
    decoded,
    encoded,
    rotate,
)

NAMES = ("epd-webhook.epd.svc", "127.0.0.1")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_young_certificate_stays() -> None:
    first = rotate(None, NAMES, NOW)
    assert rotate(first.data, NAMES, NOW + LIFETIME - RENEW_BEFORE - timedelta(days=1)) == first
    assert decoded(encoded(first.data)) == first.data


def test_it_is_replaced_and_trusted_before_it_is_used() -> None:
    first = rotate(None, NAMES, NOW)
    due = NOW + LIFETIME - RENEW_BEFORE
    waiting = rotate(first.data, NAMES, due)
    assert waiting.data[CERTIFICATE] == first.data[CERTIFICATE]
    assert waiting.trusted == first.data[CERTIFICATE] + waiting.data[NEXT_CERTIFICATE]
    assert rotate(waiting.data, NAMES, due + timedelta(minutes=1)) == waiting
    used = rotate(waiting.data, NAMES, due + timedelta(minutes=6))
    assert used.data[CERTIFICATE] == waiting.data[NEXT_CERTIFICATE]
    assert first.data[CERTIFICATE] in used.trusted  # servers that have not read the new one yet
    assert set(used.data) == {CERTIFICATE, KEY}
    later = rotate(used.data, NAMES, due + timedelta(days=1))
    assert later.trusted == used.data[CERTIFICATE]


def test_what_is_of_no_use_is_replaced_at_once() -> None:
    first = rotate(None, NAMES, NOW)
    for data, names, now in (
        ({CERTIFICATE: b"x", KEY: b"y"}, NAMES, NOW),
        ({CERTIFICATE: first.data[CERTIFICATE]}, NAMES, NOW),
        (first.data, ("other.svc",), NOW),
        (first.data, NAMES, NOW + LIFETIME + timedelta(days=1)),
    ):
        again = rotate(data, names, now)
        assert again.data[CERTIFICATE] != first.data[CERTIFICATE]
        assert again.trusted == again.data[CERTIFICATE]


def test_it_is_for_its_names_and_for_a_server() -> None:
    certificate = x509.load_pem_x509_certificate(rotate(None, NAMES, NOW).data[CERTIFICATE])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == list(NAMES)
    context = ssl.create_default_context(cadata=rotate(None, NAMES).trusted.decode())
    assert context.cert_store_stats()["x509"] >= 1
