from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import NameOID

from hack.cluster.pki import leaves, make_certificates
from hack.cluster.settings import Settings


def certificate(directory: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((directory / f"{name}.crt").read_bytes())


def test_every_certificate_is_signed_and_names_its_user(tmp_path: Path) -> None:
    make_certificates(tmp_path, Settings())
    authority = certificate(tmp_path, "ca")
    for name, leaf in leaves(Settings.node_name).items():
        found = certificate(tmp_path, name)
        found.verify_directly_issued_by(authority)
        assert [each.value for each in found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == [leaf.name]
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.glob("*.key"))


def test_servers_answer_to_all_their_names(tmp_path: Path) -> None:
    make_certificates(tmp_path, Settings())
    names = certificate(tmp_path, "apiserver").extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"localhost", "kubernetes.default.svc"} <= set(names.get_values_for_type(x509.DNSName))
    addresses = {str(address) for address in names.get_values_for_type(x509.IPAddress)}
    assert addresses == {"127.0.0.1", "10.244.0.1", "10.96.0.1"}


def test_certificates_are_kept_until_an_address_changes(tmp_path: Path) -> None:
    make_certificates(tmp_path, Settings())
    first = (tmp_path / "ca.crt").read_bytes()
    make_certificates(tmp_path, Settings())
    assert (tmp_path / "ca.crt").read_bytes() == first
    make_certificates(tmp_path, Settings(pod_cidr="10.9.0.0/24"))
    assert (tmp_path / "ca.crt").read_bytes() != first
