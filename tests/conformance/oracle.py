"""The real vLLM as a judge: one process for a release and platform that answers whether it accepts a configuration."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from hack import engine_env
from hack.vllm import fetch

ROOT = Path(__file__).resolve().parents[2]
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What vLLM says of one instance's flags and variables."""

    accepted: bool
    error: str = ""
    """vLLM's own words where it refuses."""
    derived: Mapping[str, Any] = field(default_factory=dict)
    """What it makes of them where it accepts."""


@dataclass(frozen=True, slots=True)
class Oracle:
    """One release on one platform, ready to be asked."""

    release: str
    """major.minor."""
    platform: str
    questions: IO[str]
    answers: IO[str]
    log: Path

    def ask(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> Verdict:
        """Put an instance before vLLM: what stands after `vllm serve`, and the variables that are set."""
        return self._answer({"argv": list(argv), "env": dict(env or {})})

    def parse(self, argv: Sequence[str]) -> Verdict:
        """Have only the flags read; `derived` then holds what they set, by argparse's names."""
        return self._answer({"argv": list(argv), "parse": True})

    def connectors(self, question: str, **arguments: Any) -> Any:
        """Put a question of `hack.vllm.connectors`; raises AssertionError where vLLM's code fails at it."""
        verdict = self._answer({"connectors": {"ask": question, **arguments}})
        assert verdict.accepted, verdict.error
        return verdict.derived["answer"]

    def _answer(self, question: Mapping[str, Any]) -> Verdict:
        print(json.dumps(question), file=self.questions, flush=True)
        answer = self.answers.readline()
        if not answer:
            last = "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
            raise AssertionError(f"vLLM {self.release} ({self.platform}) ended instead of answering:\n{last}")
        return Verdict(**json.loads(answer))


@contextmanager
def oracle(release: str, platform: str = "cuda") -> Iterator[Oracle]:
    """Start the judge of a release; it takes about ten seconds.

    Raises FetchError or EngineEnvironmentError where the release or the engine environment cannot be installed.
    """
    sources = fetch.ensure(release)
    engine = engine_env.ensure()
    # vLLM keeps what it learned about a model's class in its cache, by the hash of the class's source.
    environ = os.environ | QUIET | {"PYTHONPATH": str(sources)}
    environ["VLLM_CACHE_ROOT"] = str(engine_env.cache_directory() / "inspected" / f"{release}-{platform}")
    with tempfile.TemporaryDirectory(prefix="epd-oracle-") as directory:
        log = Path(directory) / "stderr"
        command = [str(engine.python), "-m", "hack.vllm.ask", platform]
        with log.open("w", encoding="utf-8") as errors:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            yield Oracle(release, platform, process.stdin, process.stdout, log)
            process.stdin.close()
            process.terminate()
