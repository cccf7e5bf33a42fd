"""Rules about the ports of a pod, which all its containers share."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from epd_operator.api import overlay
from epd_operator.api.finding import Severity
from epd_operator.engine.environment import wired_variables
from epd_operator.engine.instance import Instance
from epd_operator.engine.ports import fixed_ports
from epd_operator.engine.rules.overlay import overlays
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.site import POD
from epd_operator.engine.wiring import Wiring

EVENTS = "--kv-events-config"
EVENTS_ENDPOINT = "tcp://*:5557"
"""vLLM's default: config/kv_events.py, 0.28 to 0.33; plus the data-parallel rank (distributed/kv_events.py)."""
BOUND = re.compile(r"tcp://(?:\*|\[::\]|::|0\.0\.0\.0):(\d+)")


@rule(
    id="port-taken",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="Ports that the user adds to a pod are not those that the operator gives its engine.",
    why="The second one to listen ends with address in use, after the model was loaded.",
    source="vLLM 0.33 distributed/kv_events.py, offset_endpoint_port; the plan's ports",
    needs_release=True,
)
def port_taken(wiring: Wiring) -> Iterator[Broken]:
    """KV events, variables that name ports, and sidecars."""
    for instance in wiring.instances.values():
        taken = {number: name for name, number in fixed_ports(wiring, instance).items()}
        for path, value, number in _added(wiring, instance):
            if number in taken:
                message = f"port {number} is {taken[number]} of {instance.role}, so one of the two cannot listen on it"
                yield Broken(path, value, message, "use another port")


def _added(wiring: Wiring, instance: Instance) -> Iterator[tuple[str, Any, int]]:
    """Place, value and number of every port that the user adds to the pod of an instance."""
    given, events = instance.args.last(EVENTS), instance.user_value(EVENTS)
    if given is not None and isinstance(events, dict) and events.get("enable_kv_cache_events"):
        for endpoint in (events.get("endpoint", EVENTS_ENDPOINT), events.get("replay_endpoint")):
            found = BOUND.fullmatch(endpoint) if isinstance(endpoint, str) else None
            for rank in range(instance.data) if found else ():
                yield instance.arg_path(given), instance.written(given), int(found[1]) + rank if found else 0
    wired = wired_variables(wiring, instance, POD)  # another rule says where they differ
    for name, entry in instance.env.items():
        if name in wired:
            continue
        written = entry.variable.value or ""
        if name.startswith("VLLM_") and name.endswith("_PORT") and written.isascii() and written.isdecimal():
            yield entry.path, entry.shown, int(written)
    for found_overlay in overlays(wiring):
        if found_overlay.path == f"spec.{instance.role}.template":
            yield from _sidecars(found_overlay.spec.get("containers"), f"{found_overlay.path}.spec.containers")


def _sidecars(containers: Any, path: str) -> Iterator[tuple[str, Any, int]]:
    for index, container in enumerate(containers if isinstance(containers, list) else ()):
        ports = container.get("ports") if isinstance(container, Mapping) else None
        if not isinstance(ports, list) or container.get("name") == overlay.ENGINE:
            continue
        for position, port in enumerate(ports):
            number = port.get("containerPort") if isinstance(port, Mapping) else None
            if isinstance(number, int):
                yield f"{path}[{index}].ports[{position}]", port, number


RULES = (port_taken,)
