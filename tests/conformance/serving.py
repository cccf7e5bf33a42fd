"""The deployments that these tests ask: real engines, each started once a session."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hack.chat import Answer, ask, body
from hack.engine_env import EngineEnvironment
from hack.local_run import LocalRun
from hack.monolith import KEY, Monolith
from hack.pictures import png

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = "./tiny-qwen2-vl"
PICTURES = [png(320, 240, 1), png(64, 64, 2), png(200, 500, 3)]
QUESTIONS: dict[str, dict[str, Any]] = {
    "one picture": body(MODEL, "What is this?", PICTURES[:1]),
    "another picture": body(MODEL, "What is this?", PICTURES[1:2]),
    "three pictures": body(MODEL, "Compare these.", PICTURES),
    "the same picture twice": body(MODEL, "Are they equal?", [PICTURES[2]] * 2),
    "no picture": body(MODEL, "Who are you?"),
}


@dataclass
class Reference:
    """What one vLLM that does everything itself answers; each question is asked once."""

    monolith: Monolith
    _answers: dict[str, Answer] = field(default_factory=dict)

    def answer(self, name: str) -> Answer:
        """The answer to one of QUESTIONS."""
        if name not in self._answers:
            self._answers[name] = ask(self.monolith.wait_until_served(), QUESTIONS[name], KEY)
        return self._answers[name]


def example(name: str, engine: EngineEnvironment, folder: Path) -> Path:
    """A file of examples/; with KV blocks through files where NIXL cannot be installed."""
    file = EXAMPLES / name
    if engine.has_nixl:
        return file
    document = yaml.safe_load(file.read_text())
    if "kv" in document["spec"].get("transfer", {}):
        document["spec"]["transfer"]["kv"]["connector"] = "ExampleConnector"
    copy = folder / name
    copy.write_text(yaml.safe_dump(document))
    return copy


@contextmanager
def served(file: Path, models: Path, engine: EngineEnvironment) -> Iterator[LocalRun]:
    """`epd run` on a file, serving."""
    with LocalRun(file, models, engine) as run:
        run.wait_until_served()
        yield run
