"""The committed fields of a pod are those of the API server."""

import json

import pytest

from epd_operator.api.podspec import TABLE, fields
from hack.cluster.access import Access
from hack.pod_schema import table


def test_the_table_is_what_the_server_says(cluster: Access) -> None:
    made = table(cluster.kubectl)
    if json.loads(made)["kubernetes"] != fields().kubernetes:
        pytest.skip(f"the cluster is no Kubernetes {fields().kubernetes}, from which the table was made")
    assert made == TABLE.read_text(encoding="utf-8")
