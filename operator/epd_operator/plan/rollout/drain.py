"""In which order the roles of a revision leave, so that its last requests find every role they still need."""

from collections.abc import Mapping

from epd_operator.api.role import Role
from epd_operator.engine.drain import ROUTING

ORDER = (Role.ENCODE, Role.PREFILL, Role.DECODE)
"""The order in which a request visits the roles, and so the order in which they become idle."""


def leave_after(longest: Mapping[Role, int]) -> dict[Role, int]:
    """Seconds from the moment in which a revision gets no new requests until instances of each role may leave.

    `longest`: seconds that a request may take at each role of the revision (--shutdown-timeout).

    The first role leaves once every proxy has noticed. Each next one must still be found by requests that were admitted
    last and took as long as the role before may take. What a peer may pull from an instance that leaves (embeddings,
    leased KV blocks) is in its own preStop: engine/drain.py.
    """
    offsets: dict[Role, int] = {}
    after = ROUTING
    for role in ORDER:
        if role in longest:
            offsets[role] = after
            after += ROUTING + longest[role]
    return offsets
