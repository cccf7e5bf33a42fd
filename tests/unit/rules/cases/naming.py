"""Cases of the rules about names."""

from tests.unit.rules.case import Breaks, Case, Spares

CASES = (
    Case(
        "name-not-a-label",
        (
            Breaks("", "metadata.name", "a.b", name="a.b"),
            Breaks("", "metadata.name", "1a", name="1a"),
            Breaks("", "metadata.name", "1" * 60, name="1" * 60),
        ),
        (Spares("", name="a-1"),),
    ),
    Case(
        "name-too-long",
        (
            Breaks("", "metadata.name", "a" * 47, name="a" * 47, remedy="46"),
            Breaks("", "metadata.name", "a" * 253, name="a" * 253),
        ),
        (Spares("", name="a" * 46),),
    ),
    Case(
        "name-begins-with-vllm",
        (
            Breaks("", "metadata.name", "vllm", name="vllm"),
            Breaks("", "metadata.name", "vllm-qwen", name="vllm-qwen"),
        ),
        (Spares("", name="my-vllm"),),
    ),
)
