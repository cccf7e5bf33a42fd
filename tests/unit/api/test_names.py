"""Names of all children are legal whenever the object's name is accepted."""

import re

from hypothesis import given
from hypothesis import strategies as st

from epd_operator.api import names
from epd_operator.api.role import Role
from tests.unit.objects import findings

LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


@given(st.text(alphabet="abz019-.A_", max_size=50) | st.text(max_size=8))
def test_accepted_names_make_legal_names(name: str) -> None:
    if findings(name=name):
        return
    made = [names.role_name(name, role, "0123abcd") for role in Role]
    made += [names.scale_name(name, role) for role in Role]
    made += [names.proxy_name(name), names.uuid_key_secret(name), names.engine_key_secret(name)]
    assert all(LABEL.fullmatch(one) for one in made)
    assert len(names.pruner_name(name)) <= names.MAX_CRON_JOB
    assert len(set(made)) == len(made)


def test_the_longest_accepted_name() -> None:
    assert findings(name="a" * names.MAX_NAME) == []
    assert [finding.rule for finding in findings(name="a" * (names.MAX_NAME + 1))] == ["name-too-long"]
    assert max(len(names.role_name("a" * names.MAX_NAME, role, "0" * 8)) for role in Role) == names.MAX_LABEL
