from epd_operator.api.role import Role
from epd_operator.engine.ports import fixed_ports
from tests.unit.objects import wiring


def test_no_two_ports_of_a_pod_are_the_same() -> None:
    wired = wiring("prefill: {parallelism: {data: 8}}\nencode: {parallelism: {data: 1}}")
    for role, numbers in {
        Role.ENCODE: {8000, 5500},
        Role.PREFILL: {8000, *range(5600, 5608)},
        Role.DECODE: {8000, 5600},
    }.items():
        ports = fixed_ports(wired, wired.instances[role])
        assert set(ports.values()) == numbers
        assert len(ports) == len(numbers)
        assert all(len(name) <= 15 for name in ports)
