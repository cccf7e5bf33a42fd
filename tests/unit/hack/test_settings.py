from pathlib import Path

import pytest

from hack.cluster.errors import ClusterError
from hack.cluster.ports import Ports
from hack.cluster.settings import Settings


def test_settings_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "a" / "settings.json"
    assert Settings.load(file) == Settings()
    chosen = Settings(pod_cidr="10.9.0.0/24", ports=Ports.block(24000), audit=True)
    chosen.save(file)
    assert Settings.load(file) == chosen


def test_addresses_follow_from_the_ranges() -> None:
    settings = Settings(pod_cidr="10.9.0.0/24", service_cidr="10.10.0.0/16")
    addresses = settings.bridge_address, settings.apiserver_service, settings.dns_address
    assert addresses == ("10.9.0.1", "10.10.0.1", "10.10.0.10")


def test_ranges_of_existing_data_stay() -> None:
    assert Settings().changed(pod_cidr=Settings.pod_cidr, audit=None, fake_gpus=2) == Settings(fake_gpus=2)
    with pytest.raises(ClusterError, match=r"pod_cidr is 10\.244\.0\.0/24"):
        Settings().changed(pod_cidr="10.9.0.0/24")


@pytest.mark.parametrize(
    "ranges", [("10.96.0.0/24", "10.96.0.0/16"), ("10.1.0.0/28", "10.2.0.0/16"), ("10.1.0.1/24", "x")]
)
def test_ranges_that_cannot_be_are_refused(ranges: tuple[str, str]) -> None:
    with pytest.raises(ClusterError):
        Settings(pod_cidr=ranges[0], service_cidr=ranges[1])
